import stat
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.postgres.folder import DataFolder
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02")


def rows(program: Program, statement: str, *options: str) -> list[str]:
    """What a statement gives, through `holdfast db psql`."""
    done = program("db", "psql", *options, "--", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement)
    assert done.code == 0, done.stderr
    return done.stdout.split()


def test_the_address_of_the_embedded_server_is_told_without_starting_it(holdfast: Program) -> None:
    done = holdfast("db", "url")

    assert done.stdout == f"postgresql://postgres@/holdfast?host={holdfast.data}/run\n"
    assert "while the engine runs" in done.stderr
    assert not holdfast.data.exists()


def test_the_address_of_a_server_of_one_s_own_is_the_one_that_was_given(holdfast: Program) -> None:
    environment = {
        "HOLDFAST_DATABASE_URL": "postgresql://app:word@db/x",
        "HOLDFAST_DATABASE_OWNER_URL": "postgresql://owner:word@db/x",
    }

    app = holdfast("db", "url", "--json", environment=environment)
    owner = holdfast("db", "url", "--owner", "--json", environment=environment)

    assert app.json == {"url": "postgresql://app:word@db/x"}
    assert owner.json == {"url": "postgresql://owner:word@db/x"}


@pytest.mark.req("ENG-04")
def test_a_tenant_s_login_is_held_to_its_tenant(prepared: Program) -> None:
    ours, theirs = (f"t-{uuid4().hex[:8]}" for _ in range(2))
    for tenant in (ours, theirs):
        prepared("tenants", "create", tenant)
        prepared("keys", "create", "--tenant", tenant, "--user", f"user-of-{tenant}")
    (other,) = rows(prepared, f"select id from tenant where name = '{theirs}'")

    seen = rows(prepared, "select name from principal", "--tenant", ours)
    forged = rows(prepared, f"set holdfast.tenant = '{other}'; select name from principal", "--tenant", ours)
    refused = prepared("db", "psql", "--tenant", ours, "--", "-c", "select * from api_key")

    assert seen == forged == [f"user-of-{ours}"]
    assert (refused.code, "permission denied" in refused.stderr) == (1, True)


@pytest.mark.req("ENG-04")
def test_the_address_of_a_tenant_carries_its_login_and_leaves_the_socket_private(prepared: Program) -> None:
    done = prepared("db", "url", "--tenant", "default")

    assert done.code == 0, done.stderr
    assert done.stdout.startswith("postgresql://hf_")
    assert stat.S_IMODE(DataFolder(prepared.data).sockets.stat().st_mode) == 0o700
    assert rows(prepared, "select session_user", "--tenant", "default")[0] in done.stdout


def test_a_tenant_that_is_not_there_has_no_address(prepared: Program) -> None:
    done = prepared("db", "url", "--tenant", "nobody")

    assert (done.code, done.stdout) == (3, "")


@pytest.mark.req("ENG-03")
def test_a_plan_changes_nothing_and_migrating_twice_does_it_once(holdfast: Program) -> None:
    plan = holdfast("db", "migrate", "--plan", "--json")
    again = holdfast("db", "migrate", "--plan", "--json")
    done = holdfast("db", "migrate", "--json")
    nothing = holdfast("db", "migrate")

    assert plan.json == again.json
    assert plan.json["migrations"][0] == "0001_foundation"
    assert done.json == {**plan.json, "applied": True}
    assert nothing.stderr == "The schema is up to date.\n"


def test_a_backup_comes_back_into_a_new_folder(prepared: Program) -> None:
    prepared("keys", "create")
    tables = "select name, created_at from tenant order by 1; select id, hash from api_key order by 1"
    file = prepared.folder / f"{uuid4().hex}.backup"

    written = prepared("db", "backup", str(file), "--json")
    restored = prepared("db", "restore", str(file), "--data", "restored", "--json")

    assert written.json == {"file": str(file), "bytes": file.stat().st_size, "secrets": False}
    assert restored.json["missing"] == ["secret"]
    assert restored.json["rows"] > 0
    assert rows(prepared, tables) == rows(prepared, tables, "--data", "restored")
    assert prepared("db", "backup", str(file)).code == 5
    assert prepared("db", "restore", str(file), "--data", "restored").code == 5


def test_a_file_that_is_no_backup_is_refused(holdfast: Program) -> None:
    (holdfast.folder / "text").write_text("no backup")

    missing = holdfast("db", "restore", "missing", "--json")
    other = holdfast("db", "restore", "text", "--json")

    assert (missing.code, missing.error["code"]) == (3, "not_found")
    assert (other.code, other.error["code"]) == (2, "invalid_input")


def test_a_backup_of_a_folder_without_a_database_makes_none(holdfast: Program, tmp_path: Path) -> None:
    nothing = tmp_path / "mistyped"

    done = holdfast("db", "backup", str(tmp_path / "file"), "--data", str(nothing))

    assert (done.code, nothing.exists()) == (3, False)
    assert "--data" in done.stderr


@pytest.mark.req("SAFE-02")
def test_a_call_for_a_tenant_never_ends_up_as_the_owner_of_all(prepared: Program) -> None:
    empty = prepared("db", "url", "--tenant", "")
    by_environment = prepared("db", "url", environment={"HOLDFAST_TENANT": "default"})
    asked = prepared("db", "url", "--owner", environment={"HOLDFAST_TENANT": "default"})

    assert (empty.code, empty.stdout) == (2, "")
    assert by_environment.stdout.startswith("postgresql://hf_")
    assert asked.stdout.startswith("postgresql://postgres@")


@pytest.mark.req("SAFE-02", "SAFE-03")
def test_logins_of_tenants_are_listed_rotated_and_removed(prepared: Program) -> None:
    tenant = f"t-{uuid4().hex[:8]}"
    prepared("tenants", "create", tenant)
    none = prepared("db", "logins", "rotate", "--tenant", tenant)
    first = prepared("db", "url", "--tenant", tenant).stdout

    rotated = prepared("db", "logins", "rotate", "--tenant", tenant).stdout
    listed = [row for row in prepared("db", "logins", "ls", "--json").json if row["tenant"] == tenant]
    shown = prepared("db", "url", "--tenant", tenant).stdout
    removed = prepared("db", "logins", "remove", "--tenant", tenant)

    assert (none.code, removed.code) == (3, 0)
    assert first != rotated == shown
    assert [row["login"] for row in listed] == [rotated.partition("//")[2].partition(":")[0]]
    assert listed[0]["temp_files_limited"]
    assert not [row for row in prepared("db", "logins", "ls", "--json").json if row["tenant"] == tenant]
