"""Sources, each test with a running server and without one: there must be no difference."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from holdfast.cli import sources
from holdfast.skills.sources.settings import FILE
from holdfast.skills.sources.sources import MAX_DOCUMENT_BYTES
from tests.cli.page import Page
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "MCP-03")

ANSWER = {"responses": {"200": {"description": "so"}}}


@pytest.fixture
def word() -> str:
    """What nobody else has in a path: tools are called by it."""
    return uuid4().hex[:8]


def document(word: str, *more: str, summary: str = "One", **said: Any) -> str:
    """A document with one marked operation, one that is not, and `more` that are."""
    get = {"summary": summary, "parameters": [{"name": "size", "in": "query", "schema": {"type": "integer"}}], **ANSWER}
    paths: dict[str, Any] = {f"/{word}": {"get": {**get, "x-ai-enabled": True}, "post": {"tags": ["write"], **ANSWER}}}
    paths |= {f"/{word}/{each}": {"get": {"x-ai-enabled": True, **ANSWER}} for each in more}
    info, servers = {"title": "Shop", "version": "1.2"}, [{"url": "https://shop.example.com"}]
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": servers, "paths": paths, **said})


def test_a_file_becomes_tools_that_are_shown_reloaded_and_removed(served: Program, word: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    file.write_text(document(word))
    added = served("sources", "add", word, str(file), "--auth", f"key={word}", "--follow-changes")
    shown = served("sources", "show", word)
    file.write_text(document(word, "new", summary="Another"))

    rehearsed = served("sources", "reload", word, str(file), "--dry-run")
    reloaded = served("sources", "reload", word, str(file))
    again = served("sources", "reload", word, str(file), "--json")
    listed = served("sources", "ls", "--json")
    removed = served("sources", "rm", word)

    assert added.code == 0, added
    assert added.stdout.split()[-2:] == ["added", f"get_{word}"]
    assert f"holdfast secrets set {word}" in added.stderr
    assert f"POST /{word}" in shown.stdout
    assert "x-ai-enabled" in shown.stdout
    for done in (rehearsed, reloaded):
        assert [line.split() for line in done.stdout.splitlines()[1:]] == [
            ["added", f"get_{word}_new"],
            ["changed", f"get_{word}", "description"],
        ]
    assert (again.json["written"], again.json["unchanged"]) == (False, [f"get_{word}", f"get_{word}_new"])
    (entry,) = [source for source in listed.json if source["name"] == word]
    assert (entry["title"], entry["tools"], entry["version"]) == ("Shop", 2, 2)
    assert (removed.code, f"Removed {word} and its 2 tools." in removed.stderr) == (0, True)
    assert served("sources", "show", word, "--json").error["code"] == "not_found"


@pytest.mark.req("UI-05", "SKILL-07")
def test_a_document_in_which_nothing_is_marked_leaves_no_source(served: Program, word: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    file.write_text(document(word).replace("x-ai-enabled", "x-other"))

    done = served("sources", "add", word, str(file), "--json")
    wrong = served("sources", "add", word, str(file), "--operation", "nothing", "--json")
    listed = [source["name"] for source in served("sources", "ls", "--json").json]

    assert (done.code, done.error["code"]) == (2, "invalid_input")
    assert "x-ai-enabled" in done.error["why"]
    assert "--all" in done.error["next"]
    assert "nothing" in wrong.error["why"]
    assert word not in listed


def test_what_is_chosen_becomes_tools_and_what_a_source_is_told_can_be_changed(
    served: Program, word: str, tmp_path: Path
) -> None:
    file = tmp_path / "shop.json"
    file.write_text(document(word))

    chosen = served(
        "sources", "add", word, str(file), "--tag", "write", "--operation", "nothing", "--base-url", "http://shop.lan/v1",
        "--header", "X-Team: {{secret:team}} of ours", "--auth", "key=a", "--timeout", "5", "--json",
    )  # fmt: skip
    changed = served("sources", "change", word, "--auth", "key=", "--auth", "token=b", "--header", "X-Team:", "--json")
    everything = served("sources", "change", word, str(file), "--all", "--json")

    assert chosen.code == 0, chosen
    assert chosen.json["added"] == [f"get_{word}", f"post_{word}"]
    assert [each["operation"] for each in chosen.json["skipped"]] == ["nothing"]
    backend = chosen.json["source"]["backend"]
    assert (backend["base_url"], backend["timeout"]) == ("http://shop.lan/v1", 5)
    assert backend["headers"] == {"X-Team": "{{secret:team}} of ours"}
    told = changed.json["source"]["backend"]
    assert (told["auth"], told.get("headers", {}), told["timeout"]) == ({"token": "b"}, {}, 5)
    assert everything.json["source"]["choice"]["everything"] is True


def test_a_document_comes_through_a_pipe(served: Program, word: str) -> None:
    done = served("sources", "add", word, "-", "--json", typed=document(word))
    unknown = served("sources", "reload", word, "--json")

    assert done.json["added"] == [f"get_{word}"]
    assert (unknown.code, unknown.error["code"]) == (2, "invalid_input")


class Library(BaseHTTPRequestHandler):
    """Gives whatever document it has, after a redirect."""

    document = b""

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/api.json")
        else:
            self.send_response(200 if self.path == "/api.json" else 404)
        self.end_headers()
        if self.path == "/api.json":
            self.wfile.write(self.document)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def library() -> Iterator[str]:
    """The address of documents on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Library)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_is_fetched_from_where_the_command_is_called(served: Program, word: str, library: str) -> None:
    Library.document = document(word).encode()
    added = served("sources", "add", word, f"{library}/moved", "--follow-changes", "--json")
    Library.document = document(word, "new").encode()
    reloaded = served("sources", "reload", word, "--json")
    missing = served("sources", "add", "missing", f"{library}/no.json", "--json")

    assert added.json["source"]["location"] == f"{library}/moved"
    assert reloaded.json["added"] == [f"get_{word}_new"]
    assert (missing.code, missing.error["code"]) == (6, "unavailable")


@pytest.mark.req("MCP-11")
@pytest.mark.req("SKILL-05")
def test_what_each_import_changed_is_listed_and_shown(served: Program, word: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    file.write_text(document(word))
    served("sources", "add", word, str(file), "--every", "5m", "--follow-changes")
    file.write_text(document(word, "new", summary="Another"))
    served("sources", "reload", word, str(file))

    history = json.loads(served("sources", "history", word, "--json").stdout)
    last = served("sources", "diff", word)
    first = served("sources", "diff", word, str(history[-1]["revision"]))
    changed = served("sources", "change", word, "--no-reload", "--json")

    assert [(each["added"], each["changed"]) for each in history] == [(1, 1), (1, 0)]
    assert f"changed get_{word}: description" in last.stdout
    assert '-  "description": "One",' in last.stdout
    assert '+  "description": "Another",' in last.stdout
    assert first.stdout.startswith(f"added get_{word}\n")
    assert json.loads(changed.stdout)["source"]["reload_seconds"] == 0


@pytest.mark.req("SKILL-05")
def test_files_of_the_server_are_named_only_where_it_has_a_folder_for_them(served: Program, word: str) -> None:
    refused = served("sources", "add", word, "file:shop.yaml")
    outside = served("sources", "add", word, "file:../shop.yaml")
    both = served("sources", "add", word, "file:shop.yaml", "--every", "1m", "--no-reload")

    assert "sources.folder" in refused.stderr
    assert "not a name in the folder" in outside.stderr
    assert "exclude each other" in both.stderr


def test_a_source_needs_a_document_or_the_address_of_a_service(served: Program, word: str) -> None:
    done = served("sources", "add", word, "--json")
    away = served("sources", "add", word, "--rpc", "http://127.0.0.1:9/rpc", "--json")

    assert (done.code, "--rpc" in done.error["next"]) == (2, True)
    assert (away.code, away.error["code"]) == (4, "forbidden")  # a private address


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.json"], "nowhere.json"),
        (["."], "cannot be read"),
        (["http://"], "cannot be fetched"),
        (["broken.json"], "line 2"),
        (["shop.json", "--auth", "key"], "SCHEME=SECRET"),
        (["shop.json", "--header", "X-Team"], "NAME: VALUE"),
        (["shop.json", "--header", "Authorization: Bearer abc"], "{{secret:NAME}}"),
        (["shop.json", "--base-url", "shop.lan"], "http://"),
        (["latin.json"], "line 1 is not UTF-8"),
    ],
)
def test_what_cannot_be_used_is_refused(served: Program, words: list[str], said: str) -> None:
    (served.folder / "shop.json").write_text(document("shop"))
    (served.folder / "broken.json").write_text('{"openapi": "3.1.0",\n"paths": {')
    (served.folder / "latin.json").write_bytes('{"openapi": "é"}'.encode("latin-1"))

    done = served("sources", "add", "refused", *words)

    assert (done.code in (2, 6), done.stdout) == (True, "")
    assert said in done.stderr


def test_a_source_whose_tools_skills_work_with_is_removed_by_force_alone(
    served: Program, word: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.json").write_text(document(word))
    served("sources", "add", word, str(tmp_path / "shop.json"))
    folder = tmp_path / f"skill-{word}"
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\nname: skill-{word}\ndescription: Orders.\n---\nOrder.\n")
    assert served("skills", "import", str(folder)).code == 0
    assert served("skills", "link", f"skill-{word}", f"get_{word}").code == 0

    refused = served("sources", "rm", word)
    removed = served("sources", "rm", word, "--force", "--json")

    assert (refused.code, f"get_{word} (skill-{word})" in refused.stderr) == (5, True)
    assert removed.json == {"name": word, "tools": [f"get_{word}"]}


def test_what_the_command_knows_of_documents_is_so() -> None:
    assert (sources.MAX_BYTES, sources.FILE) == (MAX_DOCUMENT_BYTES, FILE)


@pytest.mark.req("EXEC-01", "EXEC-04")
def test_every_example_of_the_pages_works(neighbour: Program, tmp_path: Path) -> None:
    for name, languages in (("sources.md", ["sh", "python", "sh", "sh"]), ("secrets.md", ["sh"])):
        folder = tmp_path / name
        folder.mkdir()
        page = Page(name, neighbour, folder)

        done = page.run_all()

        assert page.languages == languages
        assert "opensesame" not in "".join(each.stdout + each.stderr for each in done)


@pytest.mark.req("MCP-04")
def test_a_graphql_schema_is_imported_with_selections_of_its_own(served: Program, word: str) -> None:
    (served.folder / "shop.graphql").write_text(
        "type Query { order(id: ID!): Order total: Int } type Order { id: ID! title: String customer: Order }"
    )
    service = "http://127.0.0.1:9/graphql/"
    words = ["shop.graphql", "--graphql", service, "--selection", "order={ id }"]

    empty = served("sources", "add", word, *words, "--json")
    added = served("sources", "add", word, *words, "--operation", "order", "--json")
    shown = served("sources", "show", word)
    changed = served("sources", "change", word, "shop.graphql", "--depth", "1", "--selection", "order=", "--json")
    away = served("sources", "add", f"{word}-2", "--graphql", service, "--json")
    both = served("sources", "add", f"{word}-2", "--graphql", service, "--rpc", service, "--json")

    assert "--operation" in empty.error["next"]
    assert len(added.json["added"]) == 1
    assert added.json["source"]["backend"]["base_url"] == service
    assert added.json["source"]["location"] == "", "the server cannot read a file of this machine again"
    assert "selections  order" in shown.stdout
    assert changed.json["source"]["selection"]["depth"] == 1
    assert [each["what"] for each in changed.json["changed"]] == [["parameters (fields)"]]
    assert (away.code, away.error["code"]) == (4, "forbidden")  # a private address
    assert both.code == 2
