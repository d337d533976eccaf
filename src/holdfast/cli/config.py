"""`holdfast config`: the settings that are in force."""

from dataclasses import asdict

from holdfast.cli.invocation import Invocation, command, group

app = group("The settings that are in force.")


@command(app, local=True)
def show(invocation: Invocation) -> None:
    """Show every setting, its value and where it came from; secrets are masked.

    A value comes from the first that has it: flags, HOLDFAST_… in the environment, holdfast.toml, the default.
    """
    rows = [asdict(row) for row in invocation.config().describe()]
    invocation.output.rows(rows, {"key": "SETTING", "value": "VALUE", "origin": "FROM"})
