"""The official conformance suite, once for each era: what it expects of a server, we do."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from holdfast.mcp.protocol import LEGACY, MODERN
from tests.conformance.mcp.peers import Check, Peers

BOTH = (
    "completion-complete",
    "dns-rebinding-protection",
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "server-sse-multiple-streams",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-progress",
    "tools-list",
)
OF_MODERN = (
    *BOTH,
    "caching",
    "http-custom-header-server-validation",
    "http-header-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
    "sep-2164-resource-not-found",
    "server-stateless",
)
OF_LEGACY = (
    *BOTH,
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "logging-set-level",
    "ping",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-polling",
    "tools-call-elicitation",
    "tools-call-sampling",
    "tools-call-with-logging",
)
EXTENSIONS = ("tasks-", "sep-2640-")  # of the protocol, which a server need not have and ours does not claim to


@pytest.mark.req("MCP-01", "MCP-02")
async def test_the_suite_finds_nothing_wrong_with_the_modern_era(peers: Peers, url: str, tmp_path: Path) -> None:
    checks = await _checks(peers, url, tmp_path, OF_MODERN, MODERN, "--requirements", MODERN)

    assert (lost := _lost(checks, OF_MODERN)) == [], _lines(lost)


@pytest.mark.req("MCP-01", "MCP-02")
async def test_the_suite_finds_nothing_wrong_with_the_era_before(peers: Peers, url: str, tmp_path: Path) -> None:
    checks = await _checks(peers, url, tmp_path, OF_LEGACY, LEGACY[0], "--suite", "all", "--spec-version", LEGACY[0])

    assert (lost := _lost(checks, OF_LEGACY)) == [], _lines(lost)


@pytest.mark.req("MCP-02", "MCP-05")
async def test_no_scenario_of_the_modern_era_is_lost_by_going_through_a_gateway(
    peers: Peers, federated_url: str, tmp_path: Path
) -> None:
    checks = await _checks(peers, federated_url, tmp_path, OF_MODERN, MODERN, "--requirements", MODERN)

    assert (lost := _lost(checks, OF_MODERN)) == [], _lines(lost)


@pytest.mark.req("MCP-02", "MCP-05")
async def test_no_scenario_of_the_era_before_is_lost_by_going_through_a_gateway(
    peers: Peers, federated_url: str, tmp_path: Path
) -> None:
    words = ("--suite", "all", "--spec-version", LEGACY[0])
    checks = await _checks(peers, federated_url, tmp_path, OF_LEGACY, LEGACY[0], *words)

    assert (lost := _lost(checks, OF_LEGACY)) == [], _lines(lost)


async def _checks(
    peers: Peers, url: str, folder: Path, expected: Sequence[str], version: str, *words: str
) -> Mapping[str, Sequence[Check]]:
    """What the suite looked at. It waits 0.8 s for what a stream tells: a scenario that failed has a second try."""
    checks = dict(await peers.suite(url, folder / "checks", *words))
    for name in expected:
        if not all(check.passed for check in checks.get(name, ())):
            checks |= await peers.suite(url, folder / name, "--scenario", name, "--spec-version", version)
    return checks


def _lost(checks: Mapping[str, Sequence[Check]], expected: Sequence[str]) -> list[str]:
    """What was not passed, in the suite's own words; a scenario that nobody expects is not passed, either."""
    ours = {name for name in checks if not name.startswith(EXTENSIONS)}
    lost = [f"{name}: the suite did not run it" for name in expected if name not in ours]
    lost += [f"{name}: nobody has said whether it is expected" for name in sorted(ours - {*expected})]
    for name in expected:
        failed = [check for check in checks.get(name, ()) if not check.passed]
        lost += [f"{name}: {check.status} {check.id}: {check.said}" for check in failed]
    return lost


def _lines(lost: Sequence[str]) -> str:
    return "\n".join(["the suite says:", *lost])
