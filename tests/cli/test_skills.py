"""Skills, each test with a running server and without one: there must be no difference."""

from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.cli.skills import in_order
from holdfast.skills.folders import FolderSkill
from tests.cli.page import Page
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "SKILL-06")

PAGE = "---\nname: {name}\ndescription: How to take goods back.\n{more}---\n# Returns\nLook at the order first.\n"


def write(folder: Path, name: str, more: str = "") -> str:
    """A skill's folder, under a name that nothing else has."""
    (folder / name / "scripts").mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(PAGE.format(name=name, more=more))
    (folder / name / "scripts" / "check.sh").write_text("#!/bin/sh\ntrue\n")
    (folder / name / "scripts" / "check.sh").chmod(0o755)
    return name


def named(word: str) -> str:
    return f"{word}-{uuid4().hex[:8]}"


def needing(*names: str) -> str:
    return "metadata:\n  holdfast:\n    requires:\n" + "".join(f"    - {name}\n" for name in names)


def test_folders_come_in_and_go_out_as_they_were(served: Program, tmp_path: Path) -> None:
    orders = named("orders")
    returns = write(tmp_path / "in", named("a-returns"), needing(orders))  # comes first by name, and needs the other
    write(tmp_path / "in", orders)

    created = served("skills", "import", str(tmp_path / "in"), "--json")
    again = served("skills", "import", str(tmp_path / "in" / returns), "--json")
    out = served("skills", "export", returns, orders, "--to", str(tmp_path / "out"))

    assert [(each["name"], each["change"]) for each in created.json] == [(orders, "created"), (returns, "created")]
    assert [each["change"] for each in again.json] == ["unchanged"]
    assert (out.code, out.stderr) == (0, "")
    for name in (returns, orders):
        for file in ("SKILL.md", "scripts/check.sh"):
            inwards, outwards = tmp_path / "in" / name / file, tmp_path / "out" / name / file
            assert outwards.read_text() == inwards.read_text()
            assert outwards.stat().st_mode & 0o111 == inwards.stat().st_mode & 0o111


def test_a_skill_of_the_same_name_is_replaced_only_when_asked(served: Program, tmp_path: Path) -> None:
    name = write(tmp_path, named("returns"))
    served("skills", "import", str(tmp_path / name))
    (tmp_path / name / "SKILL.md").write_text(PAGE.format(name=name, more="license: MIT\n"))

    refused = served("skills", "import", str(tmp_path / name))
    replaced = served("skills", "import", str(tmp_path / name), "--replace", "--json")

    assert refused.code == 5
    assert "--replace" in refused.stderr
    assert [(each["change"], each["version"]) for each in replaced.json] == [("changed", 2)]


def test_a_skill_that_cannot_be_stored_does_not_keep_those_before_it_out(served: Program, tmp_path: Path) -> None:
    good = write(tmp_path, named("a"))
    bad = write(tmp_path, named("b"), needing(named("nothing")))

    done = served("skills", "import", str(tmp_path))

    assert done.code == 3
    assert f"{good}  created" in done.stdout
    assert "there is no skill" in done.stderr
    assert (served("skills", "show", good).code, served("skills", "show", bad).code) == (0, 3)


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no front matter", "SKILL.md:1"),
        ("---\nname: Not Allowed\ndescription: x\n---\n", "SKILL.md:2"),
        (None, "SKILL.md"),
    ],
)
def test_a_broken_folder_is_told_with_its_line(served: Program, tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "SKILL.md").write_text(text)

    done = served("skills", "import", str(tmp_path))

    assert done.code == 2
    assert said in done.stderr


@pytest.mark.req("SKILL-04")
def test_skills_are_listed_found_shown_and_removed(served: Program, tmp_path: Path) -> None:
    name = write(tmp_path, named("zebra"))
    served("skills", "import", str(tmp_path))

    table = served("skills", "ls")
    found = served("skills", "ls", name, "--json").json
    words = served("skills", "show", name)
    record = served("skills", "show", name, "--json").json
    removed = served("skills", "rm", name)

    assert table.stdout.split("\n")[0].split() == ["NAME", "VERSION", "ACTIVE", "PART", "OF", "DESCRIPTION"]
    assert name in table.stdout
    assert found[0]["name"] == name
    assert words.stdout.startswith(f"{name}\ndescription  How to take goods back.\n")
    assert words.stdout.endswith("files        scripts/check.sh\n\n# Returns\nLook at the order first.\n")
    assert record["instructions"] == "# Returns\nLook at the order first.\n"
    assert (removed.code, removed.stderr) == (0, f"Removed the skill {name}.\n")
    assert served("skills", "show", name).code == 3


@pytest.mark.req("SKILL-01")
def test_skills_are_linked_given_to_agents_and_their_changes_listed(desk: Program, tmp_path: Path) -> None:
    returns, orders = write(tmp_path, named("returns")), write(tmp_path, named("orders"))
    desk("skills", "import", str(tmp_path))

    done = [
        desk("skills", "link", returns, "track", "--access", "execute"),
        desk("skills", "need", returns, orders, "--optional"),
        desk("skills", "assign", "desk", returns, "--priority", "5"),
        desk("skills", "activate", returns, "--undo"),
    ]
    shown = desk("skills", "show", returns).stdout
    history = desk("skills", "history", returns)
    config = '{"approve": true}'
    desk("skills", "link", returns, "track", "--config", config)
    desk("skills", "assign", "desk", returns, "--config", config)
    desk("skills", "link", returns, "track", "--access", "write")
    desk("skills", "assign", "desk", returns, "--priority", "7")
    kept = desk("skills", "show", returns, "--json").json
    undone = [
        desk("skills", "link", returns, "track", "--undo"),
        desk("skills", "need", returns, orders, "--undo"),
        desk("skills", "assign", "desk", returns, "--undo"),
    ]
    bare = desk("skills", "show", returns, "--json").json

    assert [each.stderr for each in done] == [
        f"{returns} uses track (execute).\n",
        f"{returns} can use {orders}.\n",
        f"desk has {returns}.\n",
        f"The skill {returns} is no longer active.\n",
    ]
    for line in (f"can use      {orders}", "agents       desk", "active       no"):
        assert line in shown.splitlines()
    assert any(line.startswith("tools ") and "track (execute)" in line for line in shown.splitlines())
    assert [line.split()[3:5] for line in history.stdout.splitlines()[1:]] == [
        ["changed", "skill"], ["created", "skill_dependency"], ["created", "skill_tool"], ["created", "skill_tool"],
        ["created", "skill"],
    ]  # fmt: skip
    assert "active=false" in history.stdout
    [link] = [each for each in kept["tools"] if each["tool"] == "track"]
    [given] = kept["agents"]
    assert (link["access"], link["config"], given["config"], given["priority"]) == (
        "write", {"approve": True}, {"approve": True}, 7,
    )  # fmt: skip
    assert [each.code for each in undone] == [0, 0, 0]
    assert "track" not in [each["tool"] for each in bare["tools"]]
    assert (bare["needs"], bare["agents"]) == ([], [])


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", "none"], 3),
        (["rm", "none"], 3),
        (["export", "none"], 3),
        (["link", "none", "track"], 3),
        (["assign", "none", "none"], 3),
        (["link", "none", "none", "--access", "all"], 2),
        (["link", "none", "none", "--config", "[]"], 2),
        (["assign", "none", "none", "--config", "{"], 2),
        (["import", "nowhere"], 2),
        (["ls", " "], 2),
    ],
)
def test_what_is_not_there_is_told(served: Program, words: list[str], code: int) -> None:
    done = served("skills", *words)

    assert done.code == code
    assert done.stderr


def test_all_skills_go_out_each_to_a_folder_of_its_own(served: Program, tmp_path: Path) -> None:
    tenant = named("t")
    served("tenants", "create", tenant)
    (tmp_path / "in").mkdir()
    for name in (named("one"), named("two")):
        write(tmp_path / "in", name)
    served("skills", "import", str(tmp_path / "in"), "--tenant", tenant)

    done = served("skills", "export", "--to", str(tmp_path / "out"), "--tenant", tenant, "--json")

    assert sorted(each["name"] for each in done.json) == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(done.json) == 2


def test_skills_come_after_what_they_need_whatever_they_are_called() -> None:
    folders = [
        FolderSkill("a", "", "", requires=("c",)),
        FolderSkill("b", "", "", parent="a", optional=("elsewhere",)),
        FolderSkill("c", "", "", requires=("a",)),  # a circle, which the registry refuses
    ]

    ordered = [folder.name for folder in in_order(folders)]

    assert sorted(ordered) == ["a", "b", "c"]
    assert ordered.index("a") < ordered.index("b")


def test_many_skills_that_need_one_another_are_put_in_order_in_no_time() -> None:
    layers = [[f"{layer}.{n}" for n in range(3)] for layer in range(1200)]
    folders = [
        FolderSkill(name, "", "", requires=tuple(below))
        for layer, below in zip(layers, [*layers[1:], []], strict=True)
        for name in layer
    ]

    ordered = [folder.name for folder in in_order(folders)]

    assert [name.partition(".")[0] for name in ordered[::3]] == [str(layer) for layer in reversed(range(1200))]


@pytest.mark.req("SKILL-01", "SKILL-02")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("skills.md", served, tmp_path)

    declared, by_hand = page.run_all()

    assert page.languages == ["python", "sh"]
    assert "refund" in declared.stdout
    assert "packing needs it: it ends with 2" in by_hand.stdout
