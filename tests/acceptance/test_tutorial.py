"""The tutorial, followed step by step as a reader would, with the program that is installed."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.program import MODULE, Done, Program
from tests.processes import Process

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
STARTS = "holdfast up shop.py"

pytestmark = [pytest.mark.acceptance, pytest.mark.req("AGENT-03", "STM-06", "ENG-01")]


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the page, each with what the page says that it prints."""
    told: list[tuple[str, list[str]]] = []
    for line in "\n".join(re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)).splitlines():
        if line.startswith("$ "):
            told.append((line[2:], []))
        elif line:
            told[-1][1].append(line)
    return told


def start(program: Program) -> Process:
    server = Process([*MODULE, "up", "shop.py", "--port", "0", "--json"], program.environment, program.folder)
    server.wait_for('"url"')
    return server


def test_a_reader_gets_what_the_page_shows(tmp_path: Path) -> None:
    (app,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "shop.py").write_text(app, "utf-8")
    program = Program(tmp_path)
    server: Process | None = None
    answers: list[tuple[str, Done, list[str]]] = []

    try:
        for command, printed in steps():
            if command == STARTS:
                if server is not None:
                    server.kill()  # the plug
                    server.end()
                server = start(program)
                continue
            answers.append((command, program(*shlex.split(command)[1:]), printed))
    finally:
        if server is not None:
            server.end()

    assert len(answers) >= 8
    for command, done, printed in answers:
        assert done.code == 0, command + done.stderr
        for line in printed:
            assert line in done.stdout, command + done.stdout
