"""Other people's programs for MCP, which run on Node: the official conformance suite, and Inspector's command line."""

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.npm import NODE, modules_or_skip

HERE = Path(__file__).parent
PATIENCE = 120  # seconds for the whole suite
TAIL = 4000

_SUITE = "@modelcontextprotocol/conformance/dist/index.js"
_INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
_RESULTS = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_PASSED = {"SUCCESS", "INFO", "SKIPPED"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the suite looked at."""

    id: str
    status: str
    said: str

    @property
    def passed(self) -> bool:
        """Whether the suite has nothing against it: what it only warns of is not passed."""
        return self.status in _PASSED


class Peers:
    """The programs, in the folder of modules that npm has put them into."""

    def __init__(self, modules: Path) -> None:
        self._modules = modules

    async def suite(self, url: str, folder: Path, *words: str) -> Mapping[str, Sequence[Check]]:
        """Have the suite look at a server: its checks by scenario. What it writes goes into `folder`."""
        await self._run(_SUITE, "server", "--url", url, "--output-dir", str(folder), *words)  # it fails where one did
        found: dict[str, list[Check]] = {}
        for file in sorted(folder.glob("*/checks.json")):
            name = _RESULTS.fullmatch(file.parent.name)
            assert name is not None, file
            checks: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
            found.setdefault(name["scenario"], []).extend(
                Check(check["id"], check["status"], check.get("errorMessage") or check["description"])
                for check in checks
            )
        return found

    async def inspector(self, home: Path, *words: str) -> Any:
        """What Inspector's command line says, which is JSON; what it remembers goes into `home`."""
        settings = ("--format", "json", "--stored-auth-only")
        code, said, complained = await self._run(_INSPECTOR, "--cli", *words, *settings, HOME=str(home))
        assert code == 0, complained[-TAIL:] or said[-TAIL:]
        return json.loads(said)

    async def _run(self, program: str, *words: str, **environment: str) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            NODE,
            self._modules / program,
            *words,
            env={**os.environ, **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                said, complained = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        assert process.returncode is not None
        return process.returncode, said.decode(), complained.decode()


def peers_or_skip() -> Peers:
    """The programs, fetched where they are not here yet; without them tests are skipped, which a CI does not accept."""
    return Peers(modules_or_skip(HERE, "mcp-peers"))
