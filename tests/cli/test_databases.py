"""A command answers from the database that the settings name, and from no other, whichever server runs."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from holdfast.postgres.address import place_of
from tests.cli.conftest import serving
from tests.cli.program import Program
from tests.cli.terminal import Terminal
from tests.remote import RemoteServer

pytestmark = pytest.mark.req("UI-02", "UI-05")

AtTerminal = Callable[..., Terminal]
NOWHERE = "postgresql://nobody@127.0.0.1:1/x"


def test_an_address_that_leads_nowhere_is_not_answered_by_the_running_server(desk: Program) -> None:
    done = desk("runs", "ls", "--json", environment={"HOLDFAST_DATABASE_URL": NOWHERE})
    chat = desk("chat", "desk", "Hello!", "--json", environment={"HOLDFAST_DATABASE_URL": NOWHERE})

    assert (done.code, done.stdout, done.error["code"]) == (6, "", "database_away")
    assert (chat.code, chat.stdout) == (6, "")


def test_another_database_answers_for_itself_beside_a_running_server(
    desk: Program, remote_url: str, at_terminal: AtTerminal
) -> None:
    desk("tenants", "create", "here")

    there = desk("tenants", "ls", "--json", environment={"HOLDFAST_DATABASE_URL": remote_url})
    words = at_terminal(desk, "tenants", "ls", HOLDFAST_DATABASE_URL=remote_url)
    words.wait()
    here = desk("tenants", "ls", "--json")

    assert "here" not in [tenant["name"] for tenant in there.json]
    assert "here" in [tenant["name"] for tenant in here.json]
    assert f"No server for the database {place_of(remote_url)}" in words.shown.replace("\n", "")


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, remote: RemoteServer) -> Iterator[tuple[Program, str]]:
    """A server that uses a PostgreSQL of its own; commands beside it are called without its address."""
    program = Program(tmp_path_factory.mktemp("far"))
    url = remote.make_database(f"far_{uuid4().hex[:8]}")
    server = Program(program.folder, program.data)
    server.environment["HOLDFAST_DATABASE_URL"] = url
    with serving(server):
        yield program, url


def test_a_server_with_a_database_of_its_own_is_refused_where_the_settings_name_none(far: tuple[Program, str]) -> None:
    program, url = far

    refused = program("runs", "ls", "--json")
    answered = program("runs", "ls", "--json", environment={"HOLDFAST_DATABASE_URL": url})

    assert (refused.code, refused.error["code"]) == (2, "bad_setting")
    assert place_of(url) in refused.error["what"]
    assert "HOLDFAST_DATABASE_URL" in refused.error["next"]
    assert not (program.data / "postgres").exists()
    assert (answered.code, answered.json) == (0, [])


def test_without_a_server_a_person_is_told_which_folder_answers_and_a_program_nothing(
    prepared: Program, at_terminal: AtTerminal
) -> None:
    piped = prepared("runs", "ls")
    seen = at_terminal(prepared, "runs", "ls")

    assert seen.wait() == 0
    assert f"No server runs on {prepared.data}: asking its database." in seen.shown
    assert (piped.code, piped.stderr) == (0, "")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ann:secret@db.example.com/shop", "db.example.com:5432/shop"),
        ("postgresql://ann@DB.example.com:6000/shop?sslmode=require", "db.example.com:6000/shop"),
        ("postgresql://ann@a:1,b:2/shop", "a:1,b:2/shop"),
        ("postgresql:///shop?host=/run/postgresql&port=5433", "/run/postgresql:5433/shop"),
        ("postgresql://ann@[::1]/shop", "[::1]:5432/shop"),
        ("postgresql://ann@localhost", "localhost:5432/ann"),
    ],
)
def test_two_addresses_lead_to_one_place_whoever_logs_in(url: str, place: str) -> None:
    assert place_of(url) == place
