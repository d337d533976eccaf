"""`holdfast identity`: the keys with which the server signs who calls, for back ends."""

from holdfast.cli.invocation import Invocation, group
from holdfast.cli.operation_commands import Fields, derive, table

app = group("List and rotate the keys with which back ends verify who calls.")

COLUMNS = {"kid": "KEY", "signs": "SIGNS", "usable": "USABLE", "active_from": "FROM", "created_by": "BY"}


def _show_rotation(invocation: Invocation, given: Fields, found: Fields) -> None:
    table(COLUMNS)(invocation, given, found)
    new = found["keys"][-1]
    invocation.output.say(f"The new key {new['kid']} signs from {new['active_from']} on.")


derive(app, "keys", "list_identity_keys", table(COLUMNS))
derive(app, "rotate", "rotate_identity_keys", _show_rotation)
