"""MCP servers that are programs: people's own, and one that misbehaves."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from holdfast.core.errors import Forbidden, HoldfastError
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.skills.request import McpServer
from tests.execution.mcp.federation import gateway, own
from tests.npm import NODE, modules_or_skip
from tests.server.mcp_wire import ask, call
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-05", "EXEC-01")

HERE = Path(__file__).parent
FAULTY = (sys.executable, str(HERE / "faulty_program.py"))
SHORT = 2.0  # seconds for a call of a source with a limit of its own
LONG = 20.0
LIMIT = 1_000_000  # bytes of a response


@pytest.fixture
async def site(
    server: EmbeddedServer, template: str, tmp_path: Path, no_models: None, servers: Path
) -> AsyncIterator[Site]:
    """A gateway that may start programs."""
    readable = tmp_path / "readable"
    for folder in (tmp_path, readable, tmp_path / "shared"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)  # as root, programs run as other users
    settings: dict[str, Any] = {
        "execution.folders": [str(HERE), str(servers.parent.parent), str(readable)],
        "execution.writable_folders": [str(tmp_path / "shared")],
        "execution.commands": [sys.executable, str(NODE)],
        "execution.max_response_bytes": LIMIT,
        "gateway.timeout": LONG,
    }
    async with gateway(server, template, tmp_path, **settings) as site:
        yield site


@pytest.fixture(scope="session")
def servers() -> Path:
    """The folder of the servers that npm has."""
    return modules_or_skip(HERE / "programs", "mcp-servers") / "@modelcontextprotocol"


async def add(site: Site, name: str, *command: str, **more: Any) -> list[str]:
    """Add a program as a source, and return the names of its tools."""
    timeout = more.pop("timeout", None)
    report = await (await own(site)).sources.add(name, mcp=McpServer(command=command, **more), timeout=timeout)
    return [*report.added]


async def text_of(site: Site, name: str, arguments: dict[str, Any] | None = None) -> str:
    """The text of a tool's result."""
    result = (await call(site, name, arguments or {})).json()["result"]
    return str(result["content"][0]["text"])


async def test_the_everything_server_is_listed_and_called(site: Site, servers: Path) -> None:
    tools = await add(site, "everything", str(NODE), str(servers / "server-everything/dist/index.js"), "stdio")

    said = await text_of(site, "everything_echo", {"message": "hello"})
    prompts = (await ask(site, "prompts/list")).json()["result"]["prompts"]
    resources = (await ask(site, "resources/list")).json()["result"]["resources"]

    assert "everything_echo" in tools
    assert "hello" in said
    assert any(each["name"].startswith("everything_") for each in prompts)
    assert any(each["uri"].startswith("everything+") for each in resources)


async def test_the_filesystem_server_reads_its_folder_and_nothing_else(
    site: Site, servers: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "shared"
    (folder / "note.txt").write_text("buy milk", "utf-8")
    (tmp_path / "secret.txt").write_text("hidden", "utf-8")
    await add(site, "files", str(NODE), str(servers / "server-filesystem/dist/index.js"), str(folder))

    inside = await text_of(site, "files_read_text_file", {"path": str(folder / "note.txt")})
    outside = (await call(site, "files_read_text_file", {"path": str(tmp_path / "secret.txt")})).json()["result"]

    assert inside == "buy milk"
    assert outside["isError"] is True
    assert "hidden" not in json.dumps(outside)


async def test_the_memory_server_stores_what_it_is_given_in_its_file(site: Site, servers: Path, tmp_path: Path) -> None:
    file = tmp_path / "shared" / "graph.jsonl"
    variables = {"MEMORY_FILE_PATH": str(file)}
    await add(site, "graph", str(NODE), str(servers / "server-memory/dist/index.js"), env=variables)
    ann = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}

    await text_of(site, "graph_create_entities", {"entities": [ann]})
    found = await text_of(site, "graph_search_nodes", {"query": "tea"})

    assert "Ann" in found
    assert "likes tea" in file.read_text("utf-8")


async def test_a_program_writes_only_in_the_folders_for_that(site: Site, tmp_path: Path) -> None:
    for name in ("shared", "readable"):
        await add(site, name, *FAULTY, env={"FOLDER": str(tmp_path / name)})

    said = [await text_of(site, f"{name}_write") for name in ("shared", "readable")]

    assert said == ["written", "PermissionError"]


async def test_one_process_answers_all_calls_of_a_user(site: Site) -> None:
    await add(site, "faulty", *FAULTY)
    executions = (await own(site)).executions

    calls = await asyncio.gather(*(executions.call("faulty_answer", user="ann") for _ in range(20)))

    assert len({call.text for call in calls}) == 1


async def test_calls_of_clients_that_can_be_asked_share_a_few_processes(site: Site) -> None:
    await add(site, "faulty", *FAULTY)

    answers = await asyncio.gather(*(text_of(site, "faulty_answer") for _ in range(20)))

    assert 1 <= len({*answers}) <= 4


async def test_a_reload_starts_a_program_anew_and_lists_what_its_new_files_say(site: Site, tmp_path: Path) -> None:
    program = tmp_path / "readable" / "server.py"
    program.write_text(Path(FAULTY[1]).read_text())
    await add(site, "edited", sys.executable, str(program))
    engine = await own(site)
    before = await engine.executions.call("edited_answer", user="ann")
    program.write_text(program.read_text().replace('"answer"', '"reply"'))

    report = await engine.sources.reload("edited")
    await engine.sources.proposals.approve("edited", {tool.name: tool.hash for tool in report.held})
    after = await engine.executions.call("edited_reply", user="ann")

    assert ([tool.name for tool in report.held], report.removed) == (["edited_reply"], ("edited_answer",))
    assert (before.status, after.status) == ("done", "done")
    assert before.text != after.text  # the numbers of the processes


async def test_whoever_adds_a_program_that_cannot_read_its_files_is_told_so(site: Site, tmp_path: Path) -> None:
    program = tmp_path / "hidden.py"
    program.write_text("")

    refused = await site.ask(
        "POST", "/api/sources", json={"name": "hidden", "mcp": {"command": [sys.executable, str(program)]}}
    )

    assert refused.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "Permission denied" in refused.json()["what"]
    assert "execution.folders" in refused.json()["next"]


async def test_a_program_that_the_operator_has_not_allowed_is_not_started(site: Site) -> None:
    with pytest.raises(Forbidden) as refused:
        await add(site, "shell", "sh", "-c", "echo")

    assert "execution.commands" in refused.value.next


async def test_a_program_gets_the_variables_of_its_source_and_few_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    engine = await own(site)
    await engine.secrets.set("token", "s3cret-value")
    await add(site, "faulty", *FAULTY, env={"GREETING": "hello", "API_TOKEN": "{{secret:token}}"})

    said = await text_of(site, "faulty_environment")

    assert '"GREETING": "hello"' in said
    assert "hunter2" not in said
    assert "s3cret-value" not in said  # it is there, and struck out of the result


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("die", "the MCP server ended its connection"),
        ("hang", "did not respond within 2 seconds"),
        ("flood", "was cut off"),
        ("noise", "was cut off"),
        ("blank", "was cut off"),
        ("questions", "was cut off"),
        ("wrong_id", "did not respond within 2 seconds"),
        ("huge", "1,000,000 bytes"),
        ("no_result", "without a result"),
    ],
)
async def test_a_fault_of_a_program_fails_its_call_and_no_other(site: Site, tool: str, expected: str) -> None:
    await add(site, "faulty", *FAULTY, timeout=SHORT if expected.startswith("did not") else None)
    await text_of(site, "faulty_answer")  # starts the program

    began = monotonic()
    failed = (await call(site, f"faulty_{tool}")).json()["result"]
    lasted = monotonic() - began
    after = await text_of(site, "faulty_answer")

    assert failed["isError"] is True
    assert expected in failed["content"][0]["text"]
    assert lasted < LONG
    assert after.startswith("pid ")


async def test_lines_that_are_not_messages_and_second_responses_are_skipped(site: Site) -> None:
    await add(site, "faulty", *FAULTY)

    assert await text_of(site, "faulty_garbage") == "after garbage"
    assert await text_of(site, "faulty_twice") == "first"
    assert (await text_of(site, "faulty_answer")).startswith("pid ")


async def test_a_call_that_ran_out_of_time_is_cancelled_at_the_program(site: Site) -> None:
    await add(site, "faulty", *FAULTY, timeout=SHORT)

    await call(site, "faulty_hang")

    assert await text_of(site, "faulty_cancelled") == "cancelled"


async def test_a_program_that_fails_to_start_says_why_and_is_not_started_again_at_once(site: Site) -> None:
    with pytest.raises(HoldfastError) as first:
        await add(site, "faulty", *FAULTY, "broken")
    with pytest.raises(HoldfastError) as second:
        await add(site, "faulty", *FAULTY, "broken")

    assert "no configuration" in str(first.value)
    assert "not started again" in str(second.value)


async def test_users_do_not_share_a_process_unless_the_source_says_so(site: Site) -> None:
    engine = await own(site)
    await add(site, "faulty", *FAULTY)
    await add(site, "common", *FAULTY, shared=True)

    async def of(user: str, tool: str) -> str:
        return (await engine.executions.call(tool, user=user)).text

    assert await of("ann", "faulty_answer") != await of("bob", "faulty_answer")
    assert await of("ann", "faulty_answer") == await of("ann", "faulty_answer")
    assert await of("ann", "common_answer") == await of("bob", "common_answer")
