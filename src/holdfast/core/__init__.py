"""What every other part stands on; it talks to no database and no network.

`errors` and `wires` say what can go wrong and how each wire tells it. `settings` has the keys, `sources` finds their
values, `config` puts them together, `reference` documents them. `text` makes text and JSON storable, `ids` identifiers.
Import from the modules: nothing is imported here, so that whoever needs only the errors does not load the settings.
"""
