import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("ENG-06", "UI-02")


def test_every_setting_is_shown_with_where_it_came_from_and_secrets_masked(holdfast: Program) -> None:
    toml = holdfast.folder / "holdfast.toml"
    toml.write_text("[server]\nport = 4700\n")
    environment = {"HOLDFAST_SECRET": "hush" * 8, "HOLDFAST_DATABASE_URL": "postgresql://ann:hush@db/x"}

    done = holdfast("config", "show", "--json", "--tenant", "acme", environment=environment)

    shown = {row["key"]: (row["value"], row["origin"]) for row in done.json}
    assert shown["server.port"] == (4700, f"holdfast.toml {toml}")
    assert shown["tenant"] == ("acme", "flag")
    assert shown["data"] == (str(holdfast.data), "environment HOLDFAST_DATA")
    assert shown["secret"] == ("********", "environment HOLDFAST_SECRET")
    assert shown["database.url"][0] == "postgresql://ann:********@db/x"
    assert shown["server.host"] == ("127.0.0.1", "default")
    assert "hush" not in done.stdout


def test_people_get_a_table_whose_lines_are_whole_in_a_pipe(holdfast: Program) -> None:
    done = holdfast("config", "show")

    assert (done.code, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["SETTING", "VALUE", "FROM"]
    assert ["server.port", "4600", "default"] in lines


def test_a_shared_option_may_stand_before_the_command_and_the_inner_one_goes_before(holdfast: Program) -> None:
    done = holdfast("--json", "--tenant", "outer", "config", "--data", "there", "show", "--tenant", "inner")

    shown = {row["key"]: row["value"] for row in done.json}
    assert (shown["tenant"], shown["data"]) == ("inner", str(holdfast.folder / "there"))


def test_an_unknown_setting_names_the_nearest_one(holdfast: Program) -> None:
    (holdfast.folder / "holdfast.toml").write_text("[server]\nprot = 1\n")

    done = holdfast("config", "show", "--json")

    assert done.code == 2
    assert done.error["code"] == "bad_setting"
    assert done.error["details"]["nearest"] == "server.port"
