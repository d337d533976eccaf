"""`holdfast doctor`: checks every part, and says what to do."""

import logging
from dataclasses import asdict

from holdfast.cli.checks import examine
from holdfast.cli.invocation import Invocation, command, single
from holdfast.core.wires import EXIT_CODE

app = single()


@command(app, local=True)
async def doctor(invocation: Invocation) -> int:
    """Check every part, and say what to do.

    Nothing is changed: where no database has been made yet, PostgreSQL is tried in a temporary folder. The exit code
    is 0 when nothing failed.
    """
    logging.disable(logging.WARNING)  # the checks tell what is wrong
    output = invocation.output
    with output.progress() as progress:
        checks = await examine(invocation.config, progress)
    failures = [check for check in checks if check.state == "fail"]
    output.record({"ok": not failures, "checks": [asdict(check) for check in checks]})
    if not invocation.json:
        rows = [
            {"part": check.part, "state": check.state, "found": f"{check.found}. {check.next}".rstrip(" .")}
            for check in checks
        ]
        output.rows(rows, {"state": "STATE", "part": "PART", "found": "FOUND"})
    return EXIT_CODE[failures[0].code] if failures else 0
