"""Runs scripts in the sandbox: tools that are scripts, scripts of skills, and code that a model writes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.errors import InvalidInput, NotFound, Unavailable
from holdfast.core.settings import SandboxSettings
from holdfast.core.text import parse, render, restore
from holdfast.execution.runner import Result
from holdfast.execution.sandbox.languages import Language
from holdfast.execution.sandbox.limits import SandboxLimits
from holdfast.execution.sandbox.probe import SandboxProbe, is_script
from holdfast.execution.sandbox.processes import Surroundings
from holdfast.execution.sandbox.sandbox import Sandbox, SandboxResult
from holdfast.execution.sandbox_executions import SandboxExecutions
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements
from holdfast.skills.run import Run
from holdfast.skills.skills import Skills
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools

ARGUMENTS = "ARGUMENTS"  # the variable with the arguments as JSON
MAX_VARIABLE = 100_000  # bytes: the kernel takes no longer ones
MAX_SHOWN = 20_000  # characters of an error output that the model reads: the end is what tells most

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Script:
    """A script to run. `files` are in its work folder; `path` is the script's own among them, or it is written there.

    `input` is its standard input, `words` are its arguments on the command line.
    """

    language: Language
    code: str
    path: str | None = None
    files: Mapping[str, bytes] | None = None
    executable: frozenset[str] = frozenset()
    input: bytes = b""
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


class Scripts:
    """Runs and records the scripts of one tenant."""

    def __init__(self, database: Database, sandbox: Sandbox, probe: SandboxProbe, settings: SandboxSettings) -> None:
        self._sandbox = sandbox
        self._probe = probe
        self._settings = settings
        self.executions = SandboxExecutions(database)

    async def run(self, script: Script, run: Run, *, timeout: float) -> SandboxResult:
        """Run a script for at most `timeout` seconds. Raises an Unavailable if the sandbox refuses its language."""
        interpreter = await self._probe.check(script.language)
        limits = limits_of(self._settings, seconds=timeout)
        files, path = dict(script.files or {}), script.path
        if path is None:
            path = interpreter.file_of(script.code)
            files[path] = script.code.encode(errors="replace")
        environment = dict(script.environment or {})
        result = await self._sandbox.run(
            [*interpreter.command(path, memory_mb=limits.memory_mb), *script.words],
            limits=limits,
            surroundings=Surroundings(
                files=files,
                executable=script.executable,
                environment=environment,
                network=self._settings.network,
            ),
            stdin=script.input,
        )
        environment.pop(ARGUMENTS, None)  # they are the input of the execution
        await self.executions.record(run, result, language=script.language, code=script.code, environment=environment)
        return result


class ScriptRunner:
    """Runs tools whose kind is a language. Arguments are JSON on the standard input, the result is what it prints."""

    def __init__(self, database: Database, scripts: Scripts) -> None:
        self._database = database
        self._scripts = scripts
        self._skills = Skills(database, Tools(database))

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Run the script of a tool."""
        script = await self._script(tool, arguments)
        result = await self._scripts.run(script, run, timeout=timeout)
        if result.reason is None and result.ending.exit_code == 0:
            return Result(value_of(result.stdout))
        return Result(failure_text(result, seconds=timeout), failed=True)

    async def _script(self, tool: Tool, arguments: Mapping[str, Any]) -> Script:
        row = await self._database.one(sql("script"), tool.id)
        if row is None or not (row["code"] or row["reference"]) or not is_script(tool.kind):
            raise Unavailable(f"the tool {tool.name} has no script", next="Register it with its `script`.")
        language: Language = tool.kind  # pyright: ignore[reportAssignmentType] - checked above
        script = Script(language, restore(row["code"] or ""), environment=variables_of(arguments))
        path, of_skill, skill = restore(row["reference"] or "").partition(":")
        if not of_skill:
            return replace(script, input=render(dict(arguments)))
        try:
            files = await self._skills.files(skill)
        except NotFound as error:
            raise Unavailable(
                f"the tool {tool.name} has lost its script",
                why=error.what,
                next="Import the skill again, or remove the tool.",
            ) from None
        if path not in files:
            raise Unavailable(
                f"the tool {tool.name} has lost its script",
                why=f"the skill {skill} has no file {path}",
                next="Import the skill again, or remove the tool.",
            )
        script = replace(
            script,
            path=path,
            code=files[path].content.decode(errors="replace"),
            files={name: file.content for name, file in files.items()},
            executable=frozenset(name for name, file in files.items() if file.executable),
        )
        if is_free_form(tool.parameters):
            words = tuple(map(str, arguments.get("args") or ()))
            if any("\0" in word for word in words):
                raise InvalidInput("`args` contains a NUL character", next="Remove it.")
            return replace(script, words=words, input=str(arguments.get("input") or "").encode(errors="replace"))
        return replace(script, input=render(dict(arguments)))


def limits_of(settings: SandboxSettings, *, seconds: float | None) -> SandboxLimits:
    """Return the limits of the settings."""
    return SandboxLimits(
        seconds=seconds,
        cpu_seconds=settings.cpu_seconds,
        memory_mb=settings.memory_mb,
        processes=settings.processes,
        files=settings.files,
        disk_mb=settings.disk_mb,
        output_bytes=settings.output_bytes,
    )


def variables_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the variable with the arguments. Too long ones are only on the standard input."""
    text = render(dict(arguments)).decode(errors="replace")
    return {ARGUMENTS: text} if len(text.encode()) <= MAX_VARIABLE else {}


def is_free_form(parameters: Mapping[str, Any]) -> bool:
    """Whether a tool takes words of a command line and an input, as a script of a skill without a schema does."""
    return set(parameters.get("properties", {})) == {"args", "input"}


def value_of(output: bytes) -> Any:
    """Return the result that a script has printed: JSON if it is JSON, otherwise text."""
    text = output.decode(errors="replace").removesuffix("\n")
    if not text:
        return None
    try:
        return parse(text.encode())
    except Exception:  # noqa: BLE001 - a script may print anything
        return text


def failure_text(result: SandboxResult, *, seconds: float) -> str:
    """Return what the model reads of a script that failed: why, and what the script printed."""
    code = result.ending.exit_code
    stopped = {
        "time": f"it was stopped because it ran longer than its {seconds:g} seconds",
        "cpu": "it was stopped because it used more CPU time than execution.sandbox.cpu_seconds",
        "memory": "it was stopped because it used more memory than execution.sandbox.memory_mb",
        "processes": "it was stopped because it had more processes than execution.sandbox.processes",
        "files": "it was stopped because it made more files than execution.sandbox.files",
        "disk": "it was stopped because it wrote more than execution.sandbox.disk_mb",
        "output": "it was stopped because it printed more than execution.sandbox.output_bytes",
        "stopped": "it was stopped",
    }
    why = stopped[result.reason] if result.reason else f"it ended with {_exit(code)}"
    parts = [why]
    for name, output in (("standard error", result.stderr), ("standard output", result.stdout)):
        text = output.decode(errors="replace").strip()
        if text:
            parts.append(f"{name}:\n{text[-MAX_SHOWN:]}")
    return "\n".join(parts)


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"the signal {-code}"
