"""Says whether scripts of a language can be trusted to the sandbox of this machine: it has withstood all attacks here.

The answer is kept in a file. It holds until the kernel, the user, the interpreter or the sandbox changes.
"""

import asyncio
import hashlib
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.threads import run_in_thread
from holdfast.execution.sandbox.attack_result import AttackResult
from holdfast.execution.sandbox.languages import LANGUAGES, Interpreter, Language, find_interpreter
from holdfast.execution.sandbox.processes import landlock_version
from holdfast.execution.sandbox.sandbox import Sandbox

DOCTOR = "`holdfast doctor --verbose` shows each attack; docs/sandbox.md says what the sandbox needs."


@dataclass(frozen=True, slots=True)
class SandboxVerdict:
    """Whether scripts of a language run here, or why not. `basis` is what the answer depends on."""

    basis: str
    why: str | None
    next: str
    results: tuple[AttackResult, ...]
    at: float

    @property
    def runs(self) -> bool:
        """Whether scripts run."""
        return self.why is None


class SandboxProbe:
    """Tries the sandbox once for each language, and remembers the verdicts in `file`."""

    def __init__(self, sandbox: Sandbox, file: Path, programs: Mapping[str, str | None]) -> None:
        self._sandbox = sandbox
        self._file = file
        self._programs = programs
        self._verdicts: dict[str, SandboxVerdict] | None = None
        self._lock = asyncio.Lock()

    def known(self, language: Language) -> SandboxVerdict | None:
        """Return the verdict on a language, or None if the sandbox has not been tried as it is now."""
        try:
            interpreter = self.interpreter(language)
        except Unavailable as error:
            return _refused("", error)
        if self._verdicts is None:
            self._verdicts = self._read()
        verdict = self._verdicts.get(language)
        return verdict if verdict is not None and verdict.basis == _basis(interpreter) else None

    async def verdict(self, language: Language) -> SandboxVerdict:
        """Return the verdict on a language. The first time, make the attacks: it takes some seconds."""
        async with self._lock:
            verdict = self.known(language)
            if verdict is None:
                verdict = await self._try(self.interpreter(language))
                self._verdicts = {**self._read(), language: verdict}
                if verdict.results:  # what kept the attacks from being made may pass
                    await run_in_thread(self._write, name="sandbox verdicts")
        return verdict

    async def check(self, language: Language) -> Interpreter:
        """Return the interpreter of a language. Raises an Unavailable if the sandbox cannot hold its scripts."""
        verdict = self.known(language) or await self.verdict(language)
        if verdict.why is not None:
            raise Unavailable(f"scripts in {language} are refused", why=verdict.why, next=verdict.next)
        return self.interpreter(language)

    def interpreter(self, language: Language) -> Interpreter:
        """Return the interpreter of a language. Raises an Unavailable if there is none."""
        return find_interpreter(language, self._programs)

    async def _try(self, interpreter: Interpreter) -> SandboxVerdict:
        from holdfast.execution.sandbox.attacks import run_attacks  # it takes long to import, and is seldom needed

        basis = _basis(interpreter)
        try:
            results = await run_attacks(self._sandbox, interpreter)
        except HoldfastError as error:
            return _refused(basis, error)
        passed = [each.attack for each in results if each.succeeds]
        why = f"the sandbox does not stop an attack on this machine: {', '.join(passed)}" if passed else None
        return SandboxVerdict(basis, why, DOCTOR if passed else "", tuple(results), time.time())

    def _read(self) -> dict[str, SandboxVerdict]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, SandboxVerdict])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _write(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            written = self._file.with_suffix(f".{os.getpid()}")
            written.write_bytes(msgspec.json.encode(self._verdicts))
            written.replace(self._file)
        except OSError:
            return  # the next process tries the sandbox again


def _refused(basis: str, error: HoldfastError) -> SandboxVerdict:
    return SandboxVerdict(basis, f"{error.what}: {error.why}" if error.why else error.what, error.next, (), time.time())


def _basis(interpreter: Interpreter) -> str:
    program = interpreter.program
    changed = program.stat().st_mtime_ns
    kernel = f"{platform.release()} {platform.machine()} landlock {landlock_version()}"
    return f"{kernel} user {os.geteuid()} {program} {changed} sandbox {_own_version()}"


@cache
def _own_version() -> str:
    """Return a hash of the sandbox's own code."""
    folder = Path(__file__).parent
    files = sorted((*folder.glob("*.py"), *folder.glob("attack_programs/*")))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def is_script(kind: str) -> bool:
    """Whether tools of a kind are scripts."""
    return kind in LANGUAGES
