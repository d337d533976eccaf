"""`holdfast config`: show settings."""

from dataclasses import asdict

from holdfast.cli.invocation import Invocation, command, group

app = group("Show settings.")


@command(app, local=True)
def show(invocation: Invocation) -> None:
    """Show every setting, its value and where the value comes from. Secrets are masked.

    These are the settings of this terminal and folder. A running server may have others.

    The order of precedence is: flags, environment variables (HOLDFAST_…), holdfast.toml, the default.
    """
    rows = [asdict(row) for row in invocation.config().describe()]
    invocation.output.rows(rows, {"key": "SETTING", "value": "VALUE", "origin": "FROM"})
