"""The base of all other packages. It uses no database and no network.

`errors` defines the errors, and `wires` maps them to HTTP, JSON-RPC, MCP and exit codes. `settings` defines the
settings, `sources` reads their values, `config` combines them, `reference` documents them. `text` makes text and JSON
storable, `ids` creates identifiers. Import from the modules: this file imports nothing, so a program that needs only
the errors does not load the settings.
"""
