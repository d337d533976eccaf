"""Scripts of a skill's folder: they become tools of the skill, and a round trip changes nothing."""

import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.skills.folder_scripts import FREE_FORM, scripts_of
from holdfast.skills.folders import FolderSkill, write_folder

pytestmark = pytest.mark.req("SKILL-05")

COUNT = b'''"""Count the words of a text.

More about it.
"""
import sys
from pathlib import Path

print(sys.argv[1:], len(sys.stdin.read().split()), Path("notes/limit.txt").read_text())
'''
GREET = b'#!/bin/bash\n# Greet somebody\n# by name.\n\nread -r given; echo "got $given"\n'
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FILES = {
    "scripts/count.py": COUNT,
    "scripts/greet.sh": GREET,
    "scripts/greet.schema.json": json.dumps(SCHEMA).encode(),
    "scripts/README.txt": b"No script.",
    "scripts/lib/part.py": b"",
    "notes/limit.txt": b"7",
}
FOLDER = FolderSkill("text-tools", "Works on text.", "Use the scripts.", files=FILES)


def described(path: str, code: str) -> str:
    [script] = scripts_of(replace(FOLDER, files={path: code.encode()}))
    return script.description


def test_each_script_is_a_tool_with_a_name_a_kind_and_a_description() -> None:
    count, greet = scripts_of(FOLDER)

    assert (count.name, count.kind, count.description) == (
        "text-tools_count", "python", "Count the words of a text.",
    )  # fmt: skip
    assert (greet.name, greet.kind, greet.description) == ("text-tools_greet", "bash", "Greet somebody by name.")
    assert (count.parameters, greet.parameters) == (FREE_FORM, SCHEMA)


@pytest.mark.parametrize(
    ("path", "code", "description"),
    [
        ("scripts/a.js", "// Add numbers.\nlet a", "Add numbers."),
        ("scripts/a.mjs", "/**\n * Add\n * numbers.\n *\n * @param a\n */\nlet a", "Add numbers."),
        ("scripts/a.py", "# no docstring\nprint()", "Runs scripts/a.py of the skill text-tools."),
        ("scripts/a.py", "this is no Python", "Runs scripts/a.py of the skill text-tools."),
        ("scripts/a.sh", "echo", "Runs scripts/a.sh of the skill text-tools."),
    ],
)
def test_the_description_is_what_the_script_says_first(path: str, code: str, description: str) -> None:
    assert described(path, code) == description


def test_two_scripts_of_one_stem_have_different_names() -> None:
    scripts = scripts_of(replace(FOLDER, files={"scripts/run.py": b"", "scripts/run.sh": b""}))

    assert [script.name for script in scripts] == ["text-tools_run_py", "text-tools_run_sh"]


@pytest.mark.parametrize("schema", [b"{", b"[]"])
def test_a_schema_that_is_none_is_refused_with_its_path(schema: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"scripts/greet\.schema\.json of the skill text-tools is not"):
        scripts_of(replace(FOLDER, files={**FILES, "scripts/greet.schema.json": schema}))


async def test_scripts_of_an_imported_skill_are_its_tools_and_run_with_its_files(words_only: Engine) -> None:
    await words_only.skill_transfer.load(FOLDER)

    counted = await words_only.executions.call("text-tools_count", {"args": ["-a", "b c"], "input": "one two"})
    greeted = await words_only.executions.call("text-tools_greet", {"name": "Ann"})

    links = await words_only.skills.tools_of("text-tools")
    assert [(link.tool, link.access) for link in links] == [
        ("text-tools_count", "execute"), ("text-tools_greet", "execute"),
    ]  # fmt: skip
    assert (counted.status, counted.result) == ("done", "['-a', 'b c'] 2 7")
    assert greeted.result == 'got {"name":"Ann"}'


async def test_a_round_trip_of_a_skill_with_scripts_changes_nothing(words_only: Engine) -> None:
    first = await words_only.skill_transfer.load(FOLDER)
    exported = await words_only.skill_transfer.export("text-tools")
    again = await words_only.skill_transfer.load(exported)

    assert (first.change, again.change, again.version) == ("created", "unchanged", first.version)
    assert write_folder(exported) == write_folder(FOLDER)


async def test_a_script_that_changes_or_leaves_the_folder_changes_or_leaves_the_tools(words_only: Engine) -> None:
    await words_only.skill_transfer.load(FOLDER)
    files = {"scripts/count.py": b'"""Say so."""\nprint("changed")'}
    changed = replace(FOLDER, files=files)

    with pytest.raises(AlreadyExists):
        await words_only.skill_transfer.load(changed)
    loaded = await words_only.skill_transfer.load(changed, replace=True)

    assert loaded.change == "changed"
    assert (await words_only.executions.call("text-tools_count")).result == "changed"
    assert (await words_only.tools.get("text-tools_count")).tool.description == "Say so."
    with pytest.raises(NotFound):
        await words_only.tools.get("text-tools_greet")


async def test_a_script_of_a_skill_is_changed_by_an_import_only(words_only: Engine) -> None:
    await words_only.skill_transfer.load(FOLDER)
    count = await words_only.tools.get("text-tools_count")
    fields: dict[str, Any] = {"parameters": FREE_FORM, "kind": "python"}

    with pytest.raises(InvalidInput, match=r"it is the file scripts/count\.py of the skill text-tools") as refused:
        await words_only.tools.put(
            "text-tools_count", description="Count.", script="print('fixed')", version=count.version, **fields
        )
    changed = await words_only.tools.put("text-tools_count", description="Count.", version=count.version, **fields)
    counted = await words_only.executions.call("text-tools_count", {"args": ["-a"], "input": "one two"})

    assert "import the skill again" in refused.value.next
    assert changed.tool.description == "Count."
    assert counted.result == "['-a'] 2 7"


async def test_the_scripts_of_a_removed_skill_are_removed_with_it(words_only: Engine) -> None:
    await words_only.skill_transfer.load(FOLDER)

    await words_only.skills.remove("text-tools")

    assert await words_only.tools.list() == []


async def test_scripts_in_a_language_that_cannot_run_stay_files(
    words_only: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "holdfast.execution.sandbox.languages._FINDERS", dict.fromkeys(("python", "bash"), lambda: None)
    )

    await words_only.skill_transfer.load(FOLDER)

    assert await words_only.skills.tools_of("text-tools") == []
    assert (await words_only.skill_transfer.export("text-tools")).files == FILES
