"""Tenants and keys."""

from uuid import uuid4

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "SAFE-03")


@pytest.fixture
def tenant(served: Program) -> str:
    """A tenant of the test's own."""
    name = f"t-{uuid4().hex[:8]}"
    assert served("tenants", "create", name).code == 0
    return name


def test_a_tenant_that_was_made_is_listed(served: Program) -> None:
    made = served("tenants", "create", "listed", "--json")

    listed = served("tenants", "ls", "--json")
    table = served("tenants", "ls")

    assert made.json in listed.json
    assert {"default", "listed"} <= {tenant["name"] for tenant in listed.json}
    assert table.stdout.splitlines()[0].split() == ["NAME", "CREATED", "ID"]
    assert table.stderr == ""


def test_a_name_that_is_taken_is_a_conflict(served: Program, tenant: str) -> None:
    done = served("tenants", "create", tenant, "--json")

    assert (done.code, done.error["code"]) == (5, "already_exists")


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("name", ["", "A B", "ä", "x" * 64, "\udcff", "a\nb"])
def test_a_name_that_cannot_be_one_is_refused(served: Program, name: str) -> None:
    done = served("tenants", "create", name)

    assert (done.code, done.stdout) == (2, "")
    assert done.stderr


def test_a_tenant_can_be_made_while_the_one_that_is_set_is_not_there(served: Program) -> None:
    done = served("tenants", "create", f"t-{uuid4().hex[:8]}", environment={"HOLDFAST_TENANT": "not-yet"})

    assert done.code == 0, done.stderr


@pytest.mark.parametrize("name", ["nobody", "näh", "a\nb"])
def test_a_tenant_that_is_not_there_is_not_found(served: Program, name: str) -> None:
    done = served("keys", "ls", "--tenant", name, "--json")

    assert (done.code, done.error["code"]) == (3, "not_found")


def test_a_key_s_text_is_alone_on_stdout_and_never_shown_again(served: Program, tenant: str) -> None:
    made = served("keys", "create", "--tenant", tenant, "--user", "ann", "--label", "backup [x]")

    listed = served("keys", "ls", "--tenant", tenant)
    text = made.stdout.removesuffix("\n")
    assert text.startswith("hf_")
    assert text.split() == [text]
    assert "not shown again" in made.stderr
    assert "backup [x]" in listed.stdout
    assert text not in listed.stdout


def test_a_key_has_what_was_asked_for(served: Program, tenant: str) -> None:
    options = ["--scope", "read", "--scope", "act-as", "--expires", "30d", "--label", "for the shop"]

    made = served("keys", "create", "--tenant", tenant, "--json", *options)

    (listed,) = served("keys", "ls", "--tenant", tenant, "--json").json
    assert {**listed, "text": made.json["text"]} == made.json
    assert (listed["scopes"], listed["label"], listed["principal"]) == (["act-as", "read"], "for the shop", "local")
    assert listed["expires_at"] > listed["created_at"]


def test_a_key_can_be_an_agent_s(served: Program, tenant: str) -> None:
    made = served("keys", "create", "--tenant", tenant, "--user", "ann", "--agent", "support")

    (listed,) = served("keys", "ls", "--tenant", tenant, "--json").json
    assert "of ann, for the agent support, with read, write" in " ".join(made.stderr.split())
    assert (listed["agent"], listed["scopes"]) == ("support", ["read", "write"])


@pytest.mark.parametrize(
    "options",
    [
        ["--scope", "everything"],
        ["--agent", "a", "--scope", "admin"],
        ["--expires", "0d"],
        ["--user", ""],
        ["--label", "\x1b[31m"],
        ["--user", "a\nb"],
    ],
)
def test_a_key_that_cannot_be_made_is_refused(served: Program, tenant: str, options: list[str]) -> None:
    done = served("keys", "create", "--tenant", tenant, "--json", *options)

    assert (done.code, done.stdout) == (2, "")
    assert done.error["code"] == "invalid_input"
    assert served("keys", "ls", "--tenant", tenant, "--json").json == []


def test_a_key_is_revoked_by_its_tenant_alone(served: Program, tenant: str) -> None:
    key = served("keys", "create", "--tenant", tenant, "--json").json["id"]

    elsewhere = served("keys", "revoke", key, "--json")
    here = served("keys", "revoke", key, "--tenant", tenant, "--json")

    (listed,) = served("keys", "ls", "--tenant", tenant, "--json").json
    assert (elsewhere.code, elsewhere.error["code"]) == (3, "not_found")
    assert here.json == listed
    assert listed["revoked_at"]


def test_a_link_for_a_browser_needs_a_server(served: Program, prepared: Program) -> None:
    made = served("keys", "link")
    refused = prepared("keys", "link")

    assert (made.code, made.stdout.count("/login?link=hf_")) == (0, 1)
    assert (refused.code, refused.stdout) == (6, "")
    assert "holdfast up" in refused.stderr
