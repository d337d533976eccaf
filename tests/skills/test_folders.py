import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput, TooLarge
from holdfast.core.text import dumps, loads
from holdfast.skills.folders import (
    MAX_BYTES,
    MAX_FILES,
    FolderSkill,
    FolderTool,
    folder_name,
    load_folders,
    read_folder,
    save_folder,
    write_folder,
)
from holdfast.skills.front_matter import read_page, write_page

pytestmark = pytest.mark.req("SKILL-06")

OURS = "---\nname: a\ndescription: b\nmetadata: {holdfast: "
RETURNS = """---
name: returns
description: "How to take goods back: when, and how."
license: Apache-2.0
allowed-tools: Read Bash
x-own: [1, 1.5, yes, 1.10, 2026-01-31, null, true, 0x1f, 1:30, é]
metadata:
  author: ann
  holdfast:
    version: 1.2.0
    parent: sales
    requires: [orders]
    optional: [refunds]
    tools:
      - track
      - {name: refund, access: execute, config: {timeout: 5}}
    later: kept
---

# Returns

Ask for the parcel's number.
"""


def skill(**said: Any) -> FolderSkill:
    """A skill called returns."""
    return replace(FolderSkill("returns", "How.", "Ask.\n"), **said)


def test_a_folder_is_a_skill() -> None:
    read = read_folder({"SKILL.md": RETURNS.encode(), "scripts/check.py": b"print()"}, executable=["scripts/check.py"])

    assert read == FolderSkill(
        name="returns",
        description="How to take goods back: when, and how.",
        instructions="\n# Returns\n\nAsk for the parcel's number.\n",
        front_matter={
            "license": "Apache-2.0",
            "allowed-tools": "Read Bash",
            "x-own": [1, 1.5, "yes", "1.10", "2026-01-31", None, True, "0x1f", "1:30", "é"],
            "metadata": {"author": "ann", "holdfast": {"later": "kept"}},
        },
        files={"scripts/check.py": b"print()"},
        executable=frozenset({"scripts/check.py"}),
        version="1.2.0",
        parent="sales",
        requires=("orders",),
        optional=("refunds",),
        tools=(FolderTool("track"), FolderTool("refund", "execute", {"timeout": 5})),
    )


def test_what_is_read_is_written_again_in_the_same_order() -> None:
    read = read_folder({"SKILL.md": RETURNS.encode()})

    written = write_folder(read)

    assert read_folder(written) == read
    assert write_folder(read_folder(written)) == written
    assert list(read_page(written["SKILL.md"].decode()).head) == list(read_page(RETURNS).head)


def test_a_skill_without_anything_of_ours_is_written_without_it() -> None:
    assert write_folder(skill()) == {"SKILL.md": b"---\nname: returns\ndescription: How.\n---\nAsk.\n"}


@pytest.mark.parametrize("start", ["\ufeff", ""])
def test_lines_may_end_as_they_do_on_windows_and_stay_so(start: str) -> None:
    page = f"{start}---\r\nname: a\r\ndescription: b\r\n---\r\n\r\n# Title\r\n"

    read = read_folder({"SKILL.md": page.encode()})

    assert read.instructions == "\r\n# Title\r\n"
    assert write_folder(read)["SKILL.md"].decode() == page.removeprefix("\ufeff")


def test_a_version_in_the_metadata_is_the_skill_s_unless_we_know_better() -> None:
    page = b"---\nname: a\ndescription: b\nmetadata:\n  version: 2.10\n---\n"
    read = read_folder({"SKILL.md": page})

    written = write_folder(read)

    assert read.version == "2.10"
    assert b"holdfast" not in written["SKILL.md"]
    assert read_folder(written) == read


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("returns", "returns"),
        ("Returns & refunds", "returns-refunds"),
        ("a--b", "a-b"),
        ("x" * 70, "x" * 64),
        ("返品", "skill"),
        ("-", "skill"),
    ],
)
def test_a_name_that_the_format_does_not_have_is_kept_beside_one_that_it_has(name: str, folder: str) -> None:
    written = write_folder(skill(name=name))

    assert folder_name(name) == folder
    assert read_page(written["SKILL.md"].decode()).head["name"] == folder
    assert read_folder(written) == skill(name=name)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
WORDS = st.sampled_from(
    ["yes", "null", "~", "1e5", "1e+16", "1.0e+16", "0x1", "010", "1_000", "2026-01-31", "- a", "a: b"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["orders", "Order desk", "返品", "yes", "1.10"])
PATHS = st.sampled_from(["scripts/a.py", "references/b c.md", "é.txt", "a", "b/c/d/.keep"])


@given(
    st.builds(
        FolderSkill,
        name=NAMES,
        description=TEXTS,
        instructions=TEXTS,
        front_matter=st.dictionaries(TEXTS.filter(lambda key: key not in ("name", "description", "metadata")), VALUES)
        | st.fixed_dictionaries(
            {"metadata": st.dictionaries(TEXTS.filter(lambda key: key != "holdfast"), VALUES, min_size=1)}
        ),
        files=st.dictionaries(PATHS, st.binary(max_size=20)),
        version=st.sampled_from(["1.0.0", "2", "1.10"]),
        parent=st.none() | NAMES,
        requires=st.lists(NAMES, unique=True, max_size=2).map(tuple),
        optional=st.lists(NAMES, unique=True, max_size=2).map(tuple),
        tools=st.lists(
            st.builds(
                FolderTool,
                NAMES,
                st.sampled_from([None, "read", "write", "execute"]),
                st.dictionaries(st.just("a"), st.integers()),
            ),
            max_size=2,
        ).map(tuple),
    )
)
def test_whatever_a_skill_says_comes_back(written: FolderSkill) -> None:
    files = write_folder(written)

    assert read_folder(files) == written
    assert write_folder(read_folder(files)) == files


@given(st.dictionaries(TEXTS, VALUES, max_size=4), TEXTS)
def test_front_matter_comes_back_from_a_page_and_from_the_database(head: dict[str, Any], text: str) -> None:
    read = read_page(write_page(head, text))

    assert (read.head, read.text) == (head, text)
    assert loads(dumps(read.head)) == head


@given(
    st.text(max_size=200) | st.text(st.sampled_from("-\n: []{}&*#'\"ab|>!"), max_size=60).map("---\n{}\n---\n".format)
)
def test_whatever_a_page_is_it_is_read_or_refused_with_a_line(text: str) -> None:
    refused = "SKILL.md:"
    try:
        read_folder({"SKILL.md": text.encode(errors="replace")})
    except InvalidInput as error:
        refused = error.what

    assert refused.startswith("SKILL.md:")


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("# Returns", "SKILL.md:1: there is no front matter"),
        ("", "SKILL.md:1: there is no front matter"),
        ("---\nname: a\n", "SKILL.md:1: the front matter has no closing"),
        ("---\n- a\n---\n", "SKILL.md:2: the front matter is not a mapping"),
        ("---\n---\n", "SKILL.md:2: the front matter is not a mapping"),
        ("---\ndescription: b\n---\n", "SKILL.md:1: the front matter has no name"),
        ("---\nname: a\n---\n", "SKILL.md:1: the front matter has no description"),
        ("---\nname: a\ndescription: b: c\n---\n", "SKILL.md:3: invalid YAML, mapping values are not allowed"),
        ("---\nname: a\ndescription: 'b\n---\n", "invalid YAML"),
        ("---\nname: a\ndescription: \x07\n---\n", "invalid YAML"),
        ("---\nname: 7\ndescription: b\n---\n", "SKILL.md:2: the name is not a string"),
        ("---\nx: 1\nname: My Skill\ndescription: b\n---\n", "SKILL.md:3: the name 'My Skill' is invalid"),
        (f"---\nname: {'a' * 65}\ndescription: b\n---\n", "SKILL.md:2: the name"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\n", "SKILL.md:3: the description has 1025 characters"),
        ("---\nname: a\ndescription: [b]\n---\n", "SKILL.md:3: the description is not a string"),
        ("---\nname: a\nname: b\ndescription: b\n---\n", "SKILL.md:3: the key `name` is there twice"),
        ("---\nname: &a b\ndescription: *a\n---\n", "SKILL.md:3: YAML aliases are not allowed"),
        (f"---\nname: a\nx: {'[' * 30_000}\n---\n", "SKILL.md:3: the front matter is nested more than 20 levels deep"),
        (f"---\nname: a\nx: {'y' * 70_000}\n---\n", "SKILL.md:1: the front matter has"),
        ("---\nname: a\n? [b]\n: c\n---\n", "SKILL.md:3: a key is not a string"),
        ("---\nname: a\ndescription: b\nmetadata: c\n---\n", "SKILL.md:4: `metadata` is not a mapping"),
        (OURS + "1}\n---\n", "SKILL.md:4: `metadata.holdfast` is not a mapping"),
        (OURS + "{requires: b}}\n---\n", "SKILL.md:4: `metadata.holdfast.requires`"),
        (OURS + "{parent: [b]}}\n---\n", "SKILL.md:4: `metadata.holdfast.parent`"),
        (OURS + "{tools: [{name: t, access: all}]}}\n---\n", "SKILL.md:4: "),
        (OURS + "{tools: [7]}}\n---\n", "`metadata.holdfast.tools` has the invalid entry 7"),
    ],
)  # fmt: skip
def test_a_page_that_is_no_skill_is_refused_with_its_line(page: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_folder({"SKILL.md": page.encode()})

    assert said in str(refused.value)
    assert refused.value.next


@pytest.mark.req("ENG-08")
def test_a_page_that_is_no_text_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"SKILL\.md:2: the file is not UTF-8"):
        read_folder({"SKILL.md": b"---\nname: \xff\n---\n"})
    with pytest.raises(InvalidInput, match=r"there is no SKILL\.md"):
        read_folder({"skill.txt": b""})


@pytest.mark.req("ENG-08", "SAFE-04")
@pytest.mark.parametrize(
    "path",
    [
        "../a",
        "a/../../b",
        "/etc/passwd",
        "a//b",
        "a/",
        "./a",
        "",
        "C:\\a",
        "a\\b",
        "a\0",
        "a\nb",
        "x" * 256,
        "SKILL.md/a",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: str, tmp_path: Path) -> None:
    files = {"SKILL.md": RETURNS.encode(), path: b"x"}

    with pytest.raises(InvalidInput):
        read_folder(files)
    if path != "SKILL.md/a":
        with pytest.raises(InvalidInput):
            save_folder(tmp_path / "out", skill(files={path: b"x"}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("ENG-08", "SAFE-04")
def test_a_skill_that_is_too_large_is_refused() -> None:
    page = {"SKILL.md": RETURNS.encode()}

    with pytest.raises(TooLarge, match="the limit is 1000"):
        read_folder(page | {f"f{n}": b"" for n in range(MAX_FILES)})
    with pytest.raises(TooLarge, match=f"the limit is {MAX_BYTES}"):
        read_folder(page | {"f": b"x" * MAX_BYTES})


def test_folders_are_saved_and_loaded_one_or_many(tmp_path: Path) -> None:
    one = skill(
        files={"scripts/run.sh": b"#!/bin/sh\n", "a/b/c.bin": bytes(range(256))},
        executable=frozenset({"scripts/run.sh"}),
    )
    other = skill(name="orders")

    save_folder(tmp_path / "returns", one)
    save_folder(tmp_path / "orders", other)
    (tmp_path / "README.md").write_text("skills")
    (tmp_path / "returns" / ".git").mkdir()
    (tmp_path / "returns" / ".git" / "config").write_text("x")

    assert load_folders(tmp_path) == [other, one]
    assert load_folders(tmp_path / "returns") == [one]
    assert (tmp_path / "returns" / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_a_former_skill_s_files_do_not_stay_and_what_is_not_a_skill_s_does(tmp_path: Path) -> None:
    folder = tmp_path / "returns"
    save_folder(folder, skill(files={"old.md": b"old", "b/kept.md": b"1"}))

    save_folder(folder, skill(files={"b/kept.md": b"2"}))

    assert load_folders(folder) == [skill(files={"b/kept.md": b"2"})]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(AlreadyExists, match="is not the folder of a skill"):
        save_folder(tmp_path / "other", skill())
    save_folder(tmp_path / "other", skill(), force=True)
    assert (tmp_path / "other" / "mine.txt").read_text() == "mine"


@pytest.mark.req("SAFE-04")
def test_links_are_neither_followed_in_nor_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("hunter2")
    folder = tmp_path / "returns"
    save_folder(folder, skill())
    for name, target in (("a", outside / "secret"), ("b", outside), ("c", tmp_path / "nowhere")):
        (folder / name).symlink_to(target)
        with pytest.raises(InvalidInput, match=f"returns: {name} is a symbolic link"):
            load_folders(folder)
        with pytest.raises(InvalidInput, match="is a symbolic link"):
            save_folder(folder, skill(files={name if name == "a" else f"{name}/x": b"gone"}))
        (folder / name).unlink()
    os.mkfifo(folder / "pipe")

    with pytest.raises(InvalidInput, match="returns: pipe is not a regular file"):
        load_folders(folder)
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(HoldfastError):
        save_folder(tmp_path / "link", skill())
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_text() == "hunter2"


@pytest.mark.req("ENG-08")
def test_a_folder_without_a_skill_is_refused_and_a_wrong_one_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        load_folders(tmp_path / "none")
    with pytest.raises(InvalidInput, match=r"there is no SKILL\.md in"):
        load_folders(tmp_path)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("---\nname: a\n---\n")

    with pytest.raises(InvalidInput, match=r"^bad/SKILL\.md:1: the front matter has no description"):
        load_folders(tmp_path)


@pytest.mark.req("SKILL-04")
def test_a_folder_may_come_where_a_file_was_and_a_file_where_a_folder_was(tmp_path: Path) -> None:
    for files in ({"data": b"1", "more/a/b": b"2"}, {"data/x": b"3", "more": b"4"}):
        written = FolderSkill("returns", "", "Do.", files=files)

        save_folder(tmp_path / "returns", written)

        assert load_folders(tmp_path) == [written]


@pytest.mark.req("SKILL-04")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInput, match="cannot be written: Not a directory"):
        save_folder(tmp_path / "file" / "returns", FolderSkill("returns", "", "Do."))


@pytest.mark.req("SKILL-04")
def test_a_skill_with_another_page_beside_it_is_not_written() -> None:
    with pytest.raises(InvalidInput, match=r"has a file SKILL.md among"):
        write_folder(FolderSkill("returns", "", "Mine.", files={"SKILL.md": b"another"}))
