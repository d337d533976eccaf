"""The access matrix: every way into the engine, who calls, whose object they name, and what comes of it.

`rules` are the tables of outcomes. `http_rows` and `gateway_rows` have a row for each operation, tool, resource, method
and frame: the kind of object that it names, how it is called, and its rule. `objects` makes the objects, `world` the
server and the callers; `transports` sends what a row says, and `trial` judges the answers.

A new operation needs a row:

    on("get_parcel", of.parcel, OWN, shows=True),

`of.parcel` is a kind in `objects`: a function that makes such an object for a user of a tenant, and what names one that
is missing. `OWN` is a rule; where none fits, `OWN.but("...", agent="403")` is another one. A call that needs a new
object each time has `uses_up=True`; one that shows many objects is `lists(...)`.
"""
