"""Which server a command talks to: the one that is named, with a key, before any on the data folder."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Place, serving
from tests.cli.desk import at_desk
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "UI-05")

NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Remote:
    """A server somewhere else, and a key of its tenant `acme` for ann."""

    url: str
    key: str
    there: Program

    @property
    def environment(self) -> dict[str, str]:
        """What makes commands talk to it."""
        return {"HOLDFAST_SERVER_URL": self.url, "HOLDFAST_KEY": self.key}


@pytest.fixture(scope="module")
def remote_desk(tmp_path_factory: pytest.TempPathFactory, place: Place) -> Iterator[Remote]:
    program = at_desk(tmp_path_factory.mktemp("there"), place())
    with serving(program, "desk.py"):
        assert program("tenants", "create", "acme").code == 0
        key = program("keys", "create", "--tenant", "acme", "--user", "ann").stdout.strip()
        url: str = json.loads((program.data / "server.json").read_text())["url"]
        yield Remote(url, key, program)


@pytest.fixture
def here(tmp_path: Path) -> Program:
    """The program on a data folder of its own, in which nothing is made by these commands."""
    return Program(tmp_path)


def test_a_named_server_answers_as_its_key_says(here: Program, remote_desk: Remote) -> None:
    by_option = here("memory", "add", "Ann drinks tea.", "--server", remote_desk.url,
                     environment={"HOLDFAST_KEY": remote_desk.key})  # fmt: skip
    by_environment = here("memory", "search", "tea", "--json", environment=remote_desk.environment)
    there = remote_desk.there("memory", "search", "tea", "--user", "ann", "--tenant", "acme", "--json")

    assert by_option.code == 0, by_option.stderr
    [hit] = by_environment.json["hits"]
    assert hit["memory"]["content"] == "Ann drinks tea."
    assert [each["memory"]["id"] for each in there.json["hits"]] == [hit["memory"]["id"]]
    assert not here.data.exists()


def test_a_tenant_that_the_key_does_not_reach_is_refused(here: Program, remote_desk: Remote) -> None:
    refused = here("memory", "search", "tea", "--tenant", "default", "--json", environment=remote_desk.environment)

    assert (refused.code, refused.error["code"]) == (4, "forbidden")


def test_a_server_that_wants_a_key_says_where_it_is_taken_from(here: Program, remote_desk: Remote) -> None:
    refused = here("memory", "search", "tea", "--server", remote_desk.url, "--json")

    assert (refused.code, refused.error["code"]) == (4, "unauthenticated")
    assert "HOLDFAST_KEY" in refused.error["next"]


def test_a_chat_is_with_the_named_server(here: Program, remote_desk: Remote) -> None:
    key = remote_desk.there("keys", "create", "--user", "ann").stdout.strip()

    said = here("chat", "desk", "Hello!", "--server", remote_desk.url, environment={"HOLDFAST_KEY": key})

    assert (said.code, said.stdout.strip()) == (0, "Good morning.")
    assert not here.data.exists()


@pytest.mark.parametrize(
    ("url", "code"),
    [(NOWHERE, 6), ("example.com", 2), ("ftp://example.com", 2), ("http://", 2), ("http://h/?a=1", 2)],
)
def test_an_address_that_cannot_be_used_is_refused(here: Program, url: str, code: int) -> None:
    for words in (["runs", "ls"], ["chat", "desk", "Hello!"]):
        refused = here(*words, "--server", url, "--json")

        assert refused.code == code, refused.stderr
        assert refused.stdout == ""
    assert not here.data.exists()


def test_an_address_of_another_server_says_so(here: Program, remote_desk: Remote) -> None:
    refused = here("runs", "ls", "--server", f"{remote_desk.url}/static", "--json")

    assert refused.code != 0
    assert refused.error["what"]


@pytest.mark.parametrize("words", [["up"], ["db", "url"], ["doctor"], ["config", "show"], ["models", "ls"], ["mcp"]])
def test_a_command_that_asks_no_server_takes_none(here: Program, words: list[str]) -> None:
    refused = here(*words, "--server", NOWHERE, "--json")

    assert (refused.code, refused.error["what"]) == (2, "this command uses no server")
    assert "--server" not in here(*words, "--help").stdout


def test_which_server_is_asked_is_said_on_demand(prepared: Program, remote_desk: Remote) -> None:
    named = prepared("runs", "ls", "--verbose", environment=remote_desk.environment)
    running = remote_desk.there("runs", "ls", "--verbose")
    own = prepared("runs", "ls", "--verbose")
    quiet = prepared("runs", "ls")

    assert f"Asking the server at {remote_desk.url}." in named.stderr
    assert f"Asking the server at {remote_desk.url}, which runs on {remote_desk.there.data}" in running.stderr
    assert f"No server runs on {prepared.data}: asking its database." in own.stderr
    assert quiet.stderr == ""


@pytest.mark.parametrize(
    ("write", "read", "shown"),
    [
        (["tenants", "create", "acme"], ["tenants", "ls"], "acme"),
        (["keys", "create", "--label", "laptop"], ["keys", "ls"], "laptop"),
        (["memory", "add", "likes tea", "--user", "ann"], ["memory", "search", "tea", "--user", "ann"], "likes tea"),
        (["notes", "edit", "--user", "ann", "--agent", "desk", "--operation", "overwrite", "--content", "# Tea\n"],
         ["notes", "show", "--user", "ann", "--agent", "desk"], "# Tea"),
        (["secrets", "set", "crm"], ["secrets", "ls"], "crm"),
        (["commands", "invoke", "translate", "--id", "c7", "--wait", "0"], ["commands", "show", "c7"], "translate"),
        (["skills", "import", "refunds"], ["skills", "ls"], "refunds"),
        (["topics", "create", "orders"], ["topics", "ls"], "orders"),
    ],
    ids=["tenants", "keys", "memory", "notes", "secrets", "commands", "skills", "topics"],
)  # fmt: skip
def test_commands_read_and_write_without_a_server(
    prepared: Program, write: list[str], read: list[str], shown: str
) -> None:
    skill = prepared.folder / "refunds"
    skill.mkdir(exist_ok=True)
    (skill / "SKILL.md").write_text("---\nname: refunds\ndescription: How to refund an order.\n---\nBe kind.\n")

    written = prepared(*write, typed="a value")
    found = prepared(*read)

    assert written.code == 0, written.stderr
    assert found.code == 0, found.stderr
    assert shown in found.stdout
