"""`holdfast doctor`: check every part and say how to fix problems."""

import logging
from dataclasses import asdict

from holdfast.cli.doctor_checks import Check, examine
from holdfast.cli.invocation import Invocation, command, single
from holdfast.core.wires import EXIT_CODE

app = single()


@command(app, local=True)
async def doctor(invocation: Invocation) -> int:
    """Check every part of the installation and say how to fix problems.

    The command changes nothing. If no database exists yet, it tests PostgreSQL in a temporary folder. The first time,
    it makes a list of attacks on the sandbox, and remembers the results; with --verbose, it shows each. The exit code
    is 0 if no check fails.
    """
    logging.disable(logging.WARNING)  # the checks report the problems
    output = invocation.output
    with output.progress() as progress:
        checks = await examine(invocation.config, progress)
    failures = [check for check in checks if check.state == "fail"]
    output.record({"ok": not failures, "checks": [_record(check) for check in checks]})
    if not invocation.json:
        rows = [
            {"part": check.part, "state": check.state, "found": f"{check.found}. {check.next}".rstrip(" .")}
            for check in checks
        ]
        output.rows(rows, {"state": "STATE", "part": "PART", "found": "FOUND"})
        details = [detail for check in checks for detail in check.details] if invocation.verbose else []
        if details:
            attacks = [{**each, "result": each["outcome"]} for each in details]
            output.rows(attacks, {"result": "RESULT", "language": "LANGUAGE", "attack": "ATTACK", "detail": "DETAIL"})
    return EXIT_CODE[failures[0].code] if failures else 0


def _record(check: Check) -> dict[str, object]:
    fields = asdict(check)
    if not check.details:
        del fields["details"]
    return fields
