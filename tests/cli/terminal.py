"""A program at a terminal of its own, as a person uses it."""

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# It makes the terminal its own first, so that Ctrl-C reaches it.
OWN = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """One running program; what it shows is kept."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, *, kind: str = "dumb"
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._popen = subprocess.Popen(
            [sys.executable, "-c", OWN, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={**environment, "TERM": kind},
        )
        os.close(theirs)
        self._shown = b""
        self._before = 0  # how much was shown when a key was last pressed
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def shown(self) -> str:
        """What is to be seen so far."""
        return self._shown.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, text: str, *, timeout: float = 60) -> None:
        """Wait until `text` is to be seen after the last key that was pressed."""

        def is_shown() -> bool:
            return text in self.shown[self._before :]

        with self._news:
            found = self._news.wait_for(lambda: is_shown() or not self._reader.is_alive(), timeout)
        assert found, f"{text!r} was not shown in {timeout} s: {self.shown}"
        assert is_shown(), f"ended without {text!r}: {self.shown}"

    def press(self, keys: str) -> None:
        """Press keys."""
        self._before = len(self.shown)
        os.write(self._ours, keys.encode())

    def press_until_it_ends(self, keys: str, *, timeout: float = 60) -> int:
        """Its exit code: keys are pressed again where they came before the program had begun to listen."""
        for _ in range(round(timeout)):
            self.press(keys)
            with suppress(subprocess.TimeoutExpired):
                return self.wait(timeout=1)
        raise AssertionError(f"it did not end in {timeout} s: {self.shown}")

    def say(self, text: str) -> None:
        """Type a line."""
        self.press(f"{text}\n")

    def wait(self, *, timeout: float = 60) -> int:
        """Its exit code, when it has ended."""
        code = self._popen.wait(timeout)
        self._reader.join(timeout)
        return code

    def end(self) -> None:
        """End it if it still runs."""
        if self._popen.poll() is None:
            self._popen.kill()
        self.wait()
        os.close(self._ours)

    def _read(self) -> None:
        while part := self._part():
            with self._news:
                self._shown += part
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def _part(self) -> bytes:
        try:
            return os.read(self._ours, 10_000)
        except OSError:  # nobody has the other end any more
            return b""
