import asyncio
import json
import os
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from holdfast.embeddings.store import Store
from tests.access.issuing import SECRET, issuer_server
from tests.cli.program import Done, Program

pytestmark = pytest.mark.req("UI-02")


def parts(done: Done) -> dict[str, dict[str, Any]]:
    """What was found, by part."""
    return {check["part"]: check for check in done.json["checks"]}


@pytest.fixture
def free_port() -> dict[str, str]:
    """Settings with a port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return {"HOLDFAST_SERVER__PORT": str(probe.getsockname()[1])}


def test_on_a_new_machine_everything_is_tried_and_nothing_is_left(
    holdfast: Program, free_port: dict[str, str], fast_folder: Path
) -> None:
    temporary = fast_folder / "temporary"
    temporary.mkdir()

    done = holdfast("doctor", "--json", environment={**free_port, "TMPDIR": str(temporary)})

    found = parts(done)
    assert done.code == 0, done.stdout
    # Models are fetched when they are first needed, and not by the doctor.
    assert "holdfast models fetch" in found["models"]["found"]
    assert {part: check["state"] for part, check in found.items() if check["state"] != "ok"} == {"models": "warn"}
    assert {
        "python",
        "settings",
        "data folder",
        "programs",
        "database",
        "pgvector",
        "clock",
        "server",
        "port",
    } <= found.keys()
    assert "temporary folder" in found["database"]["found"]
    assert not holdfast.data.exists()
    assert list(temporary.iterdir()) == []


def test_people_get_a_table_with_what_to_do(holdfast: Program) -> None:
    done = holdfast("doctor", environment={"HOLDFAST_SERVER__PROT": "1"})

    assert (done.code, done.stderr) == (2, "")
    assert done.stdout.splitlines()[0].split() == ["STATE", "PART", "FOUND"]
    assert "HOLDFAST_SERVER__PORT" in done.stdout


def test_a_database_in_use_is_checked_with_its_schema_roles_and_keys(
    prepared: Program, free_port: dict[str, str]
) -> None:
    prepared("keys", "create")

    done = prepared("doctor", "--json", environment=free_port)

    found = parts(done)
    assert done.code == 0, done.stdout
    assert found["schema"]["found"] == "up to date"
    assert "holdfast_app" in found["roles"]["found"]
    assert found["keys"]["state"] == "ok"


def test_keys_made_under_another_secret_are_a_warning(prepared: Program, free_port: dict[str, str]) -> None:
    prepared("keys", "create")

    done = prepared("doctor", "--json", environment={**free_port, "HOLDFAST_SECRET": "another one" * 3})

    assert (done.code, done.json["ok"], parts(done)["keys"]["state"]) == (0, True, "warn")
    assert "HOLDFAST_SECRET_FILE" in parts(done)["keys"]["next"]


@pytest.mark.req("ENG-04")
def test_a_role_that_passes_row_level_security_is_a_failure(prepared: Program, free_port: dict[str, str]) -> None:
    prepared("db", "psql", "--", "-c", "alter role holdfast_app bypassrls")

    done = prepared("doctor", "--json", environment=free_port)

    prepared("db", "psql", "--", "-c", "alter role holdfast_app nobypassrls")
    assert (done.code, done.json["ok"], parts(done)["roles"]["state"]) == (4, False, "fail")
    assert "nobypassrls" in parts(done)["roles"]["next"]


def test_a_schema_that_is_not_migrated_yet_is_a_warning(holdfast: Program, free_port: dict[str, str]) -> None:
    holdfast("db", "migrate", "--plan")

    done = holdfast("doctor", "--json", environment=free_port)

    assert (done.code, parts(done)["schema"]["state"]) == (0, "warn")
    assert "0001_foundation" in parts(done)["schema"]["found"]


def test_a_running_server_and_its_port_are_told(served: Program) -> None:
    done = served("doctor", "--json")

    assert parts(done)["server"]["found"].startswith("http://127.0.0.1:")


def test_a_port_of_another_program_is_a_failure_that_names_it(prepared: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        environment = {"HOLDFAST_SERVER__PORT": str(other.getsockname()[1])}
        done = prepared("doctor", "--json", environment=environment)

    assert (done.code, parts(done)["port"]["state"]) == (6, "fail")
    assert f"process {os.getpid()}" in parts(done)["port"]["found"]


def test_a_database_that_is_away_does_not_hide_the_rest(holdfast: Program, free_port: dict[str, str]) -> None:
    away = {"HOLDFAST_DATABASE_URL": "postgresql://x@127.0.0.1:1/x", "HOLDFAST_DATABASE__CONNECT_TIMEOUT": "1"}

    done = holdfast("doctor", "--json", environment={**free_port, **away})

    found = parts(done)
    assert (done.code, found["database"]["state"], found["database"]["code"]) == (6, "fail", "database_away")
    assert found["port"]["state"] == "ok"


def test_a_data_folder_of_another_version_or_no_folder_at_all_is_a_failure(
    holdfast: Program, free_port: dict[str, str]
) -> None:
    (holdfast.data / "postgres").mkdir(parents=True)
    (holdfast.data / "postgres" / "PG_VERSION").write_text("15\n")
    (holdfast.folder / "file").touch()

    older = holdfast("doctor", "--json", environment=free_port)
    file = holdfast("doctor", "--json", "--data", "file/inside", environment=free_port)

    assert (older.code, parts(older)["database"]["code"]) == (6, "data_folder_unusable")
    assert "PostgreSQL 15" in parts(older)["database"]["found"]
    assert (file.code, parts(file)["data folder"]["state"]) == (6, "fail")


@pytest.mark.req("MCP-06")
async def test_issuers_whose_tokens_cannot_be_checked_are_failures(
    prepared: Program, free_port: dict[str, str]
) -> None:
    async with issuer_server() as good, issuer_server() as odd:
        away = "http://127.0.0.1:1"
        issuers = [
            {"issuer": good.url, "jwks_url": good.jwks_url, "audience": "holdfast"},
            {"issuer": "a platform", "secret": SECRET, "audience": ["holdfast", "desk"]},
            {"issuer": away, "audience": "holdfast"},
            {"issuer": "nobody's", "jwks_url": good.jwks_url},
            {"issuer": odd.url, "jwks_url": odd.jwks_url, "audience": "holdfast", "algorithms": ["ES256"]},
        ]
        settings = {**free_port, "HOLDFAST_ACCESS__ISSUERS": json.dumps(issuers)}
        done = await asyncio.to_thread(prepared, "doctor", "--json", environment=settings)

    found = [check for check in done.json["checks"] if check["part"] == "issuer"]
    assert [check["state"] for check in found] == ["ok", "ok", "fail", "fail", "fail"]
    assert found[0]["found"] == f"tokens of {good.url} for holdfast can be checked"
    assert f"tokens of {away} cannot be verified now" in found[2]["found"]
    assert "server.public_url" in found[3]["next"]
    assert found[4]["found"] == f"none of the keys of {odd.url} is for ES256"
    assert (done.code, done.stderr) == (6, "")


@pytest.mark.req("EMB-02")
def test_models_that_are_here_are_tried(holdfast: Program, free_port: dict[str, str], models: Store) -> None:
    english = models.find("bge-small-en-v1.5-q")
    assert english is not None
    folder = english.onnx.parent.parent

    done = holdfast("doctor", "--json", environment={**free_port, "HOLDFAST_MEMORY__EMBEDDING__FOLDER": str(folder)})

    assert parts(done)["models"] == {
        "part": "models",
        "state": "ok",
        "found": "bge-small-en-v1.5-q, bge-small-zh-v1.5-q",
        "next": "",
        "code": "",
    }


class _Provider(BaseHTTPRequestHandler):
    """A provider that knows one key and one model."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        status = 401 if self.headers["authorization"] != "Bearer right" else 200 if body["model"] == "known" else 404
        chunk = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}], "model": "known"}
        told = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n" if status == 200 else '{"error": {"message": "no"}}'
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if status == 200 else "application/json")
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a provider."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.req("UI-05")
@pytest.mark.parametrize(
    ("key", "model", "state", "said"),
    [
        ("right", "known", "ok", "openai:known answers in"),
        ("wrong", "known", "fail", "The key is not accepted"),
        ("right", "unknown", "fail", "knows no such model"),
    ],
)
def test_the_key_of_the_model_is_tried_with_one_small_request(
    prepared: Program, free_port: dict[str, str], provider: str, key: str, model: str, state: str, said: str
) -> None:
    _Provider.asked.clear()
    settings = {
        "HOLDFAST_LLM__MODEL": f"openai:{model}", "HOLDFAST_LLM__BASE_URL": provider, "HOLDFAST_LLM__API_KEY": key,
    }  # fmt: skip

    done = prepared("doctor", "--json", environment={**free_port, **settings})

    found = parts(done)["language model"]
    assert found["state"] == state, found
    assert said in f"{found['found']} {found['next']}"
    assert [len(str(body)) < 500 for body in _Provider.asked] == [True]
    assert "right" not in done.stdout


def test_a_provider_that_cannot_be_reached_is_told(prepared: Program, free_port: dict[str, str]) -> None:
    settings = {"HOLDFAST_LLM__MODEL": "openai:x", "HOLDFAST_LLM__BASE_URL": "http://127.0.0.1:1/v1"}

    done = prepared("doctor", "--json", environment={**free_port, **settings})

    assert (done.code, parts(done)["language model"]["state"]) == (6, "fail")


def test_without_a_model_nobody_is_asked(prepared: Program, free_port: dict[str, str]) -> None:
    done = prepared("doctor", "--json", environment=free_port)

    assert parts(done)["language model"]["state"] == "ok"
    assert "offline model" in parts(done)["language model"]["found"]


@pytest.mark.req("EXEC-03")
def test_the_attacks_on_the_sandbox_are_shown_in_groups_and_each_on_request(
    prepared: Program, free_port: dict[str, str]
) -> None:
    found = parts(prepared("doctor", "--json", environment=free_port))
    whole = prepared("--verbose", "doctor", environment=free_port)

    groups = {part.removeprefix("sandbox: ") for part in found if part.startswith("sandbox: ")}
    assert {"files", "environment", "network", "signals", "forks", "memory", "disk", "time", "ptrace"} <= groups
    assert found["sandbox: files"]["state"] == "ok"
    assert found["sandbox: files"]["found"] == f"{20 * 3} attacks blocked"
    assert {each["outcome"] for each in found["sandbox: files"]["details"]} == {"blocked"}
    assert "escape by a symbolic link" in whole.stdout
