"""The tool with which an agent runs code that it writes. An agent has it if its definition names it."""

from typing import Annotated

from msgspec import Meta

from holdfast.execution.sandbox.languages import Language
from holdfast.execution.sandbox.sandbox import SandboxResult
from holdfast.execution.scripts import Script, Scripts, failure_text
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

NOTHING = "(it printed nothing)"
SHARE = 0.9  # of a call's time limit that the code has: the rest is for its start and its record


def code_tools(scripts: Scripts, *, timeout: float) -> list[Tool]:
    """Return the tools that an agent has if its definition names them. A call takes at most `timeout` seconds."""
    seconds = SHARE * timeout

    async def run_code(run: Run, language: Language, code: Annotated[str, Meta(min_length=1)], input: str = "") -> str:
        """Run a program, and read what it prints. It runs in a sandbox without network and without your files.

        Nothing is kept between two calls: a program has an empty folder, which is removed at its end.

        Args:
            language: python, javascript (Node.js) or bash.
            code: the whole program. Print what you want to know.
            input: its standard input.
        """
        script = Script(language, code, input=input.encode(errors="replace"))
        result = await scripts.run(script, run, timeout=seconds)
        return output_text(result, seconds=seconds)

    return [tool_of(run_code, idempotent=True, timeout=timeout)]


def output_text(result: SandboxResult, *, seconds: float) -> str:
    """Return what a program printed, as the model reads it."""
    if result.reason is not None or result.ending.exit_code != 0:
        return failure_text(result, seconds=seconds)
    printed = result.stdout.decode(errors="replace").removesuffix("\n")
    warned = result.stderr.decode(errors="replace").strip()
    return f"{printed}\nstandard error:\n{warned}" if warned else printed or NOTHING
