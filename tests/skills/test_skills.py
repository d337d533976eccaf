"""Skills as they are stored: in which version they are changed, what they may be called, what lies beside them."""

import asyncio
from typing import Any, cast
from uuid import UUID

import pytest

from holdfast.core.errors import AlreadyExists, Conflict, HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.engine import Engine
from holdfast.skills.folders import MAX_BYTES, write_folder
from holdfast.skills.history import ChangeHistory
from holdfast.skills.registry_columns import MAX_INSTRUCTIONS
from holdfast.skills.skill import SkillContent, SkillFile
from holdfast.skills.skills import Skills
from holdfast.skills.tools import Tools

pytestmark = pytest.mark.req("SKILL-01")


async def test_a_skill_is_stored_as_it_was_given(skills: Skills) -> None:
    stored = await skills.put(
        "returns", instructions="# How", description="Handles returns.", label="2.1", front_matter={"license": "MIT"},
        by="ann",
    )  # fmt: skip

    assert stored == await skills.get("returns")
    assert (stored.name, stored.instructions, stored.description, stored.label) == (
        "returns", "# How", "Handles returns.", "2.1",
    )  # fmt: skip
    assert (stored.front_matter, stored.origin, stored.active, stored.version, stored.updated_by, stored.parent) == (
        {"license": "MIT"}, "db", True, 1, "ann", None,
    )  # fmt: skip


@pytest.mark.req("ENG-05")
async def test_a_skill_is_changed_in_the_version_that_was_read(skills: Skills) -> None:
    first = await skills.put("returns", instructions="Old.", front_matter={"a": 1}, files={"a.txt": b"a"})

    second = await skills.put("returns", instructions="New.", active=False, version=1, by="bob")

    assert (second.id, second.version, second.instructions, second.active) == (first.id, 2, "New.", False)
    assert (second.front_matter, await skills.files("returns")) == ({"a": 1}, {"a.txt": SkillContent(b"a")})
    with pytest.raises(AlreadyExists, match="Pass its version, 2"):
        await skills.put("returns", instructions="Other.")
    with pytest.raises(Conflict) as stale:
        await skills.put("returns", instructions="Other.", version=1)
    with pytest.raises(NotFound, match="there is no skill 'other'"):
        await skills.put("other", instructions="", version=1)
    assert (stale.value.expected, stale.value.current) == (1, 2)


async def test_a_change_that_changes_nothing_writes_nothing(skills: Skills, history: ChangeHistory) -> None:
    given: dict[str, Any] = {"instructions": "Do.", "description": "Does.", "files": {"a": b"1"}, "front_matter": {}}
    await skills.put("returns", **given, by="ann")

    again = await skills.put("returns", **given, version=1, by="bob")
    awake = await skills.activate("returns", True, by="bob")

    assert (again.version, again.updated_by, awake.version) == (1, "ann", 1)
    assert len(await history.of()) == 1


async def test_a_file_that_changed_is_a_change(skills: Skills) -> None:
    await skills.put("returns", instructions="", files={"a.py": b"1", "b.py": b"2"})

    changed = await skills.put(
        "returns", instructions="", files={"a.py": SkillContent(b"1", True), "c.py": b"\0"}, version=1
    )
    emptied = await skills.put("returns", instructions="", files={}, version=2)

    assert (changed.version, emptied.version) == (2, 3)
    assert await skills.files("returns") == {}


async def test_files_lie_beside_a_skill_as_they_were_given(skills: Skills) -> None:
    files = {"scripts/check.py": SkillContent(b"\x00\xff", executable=True), "read me ä.md": SkillContent(b"")}

    await skills.put("returns", instructions="", files=files)

    assert await skills.files("returns") == files
    with pytest.raises(NotFound):
        await skills.files("nothing")


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../up", "a/../b", "a//b", "./a", "a/", "a\\b", "a\0b", "a:b", "x" * 256]
)
async def test_a_file_that_would_lie_elsewhere_is_refused(skills: Skills, path: str) -> None:
    with pytest.raises(InvalidInput, match=r"the file path .* is invalid"):
        await skills.put("returns", instructions="", files={path: b""})

    assert await skills.list() == []


async def test_files_that_are_too_large_or_too_many_are_refused(skills: Skills) -> None:
    for files in ({"a": b"x" * (MAX_BYTES + 1)}, {str(n): b"" for n in range(1001)}):
        with pytest.raises(TooLarge, match="the skill has"):
            await skills.put("returns", instructions="", files=files)


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    "text", ["a\0b", "\ud83d", "\U0010fffe", "\U0010fffe0000", "'; drop table skill_t; --", "ä漢字🎉"]
)
async def test_hostile_text_comes_back_as_it_went_in(skills: Skills, history: ChangeHistory, text: str) -> None:
    stored = await skills.put(
        "returns", instructions=text, description=text, front_matter={text: [text]}, by=text
    )  # fmt: skip

    assert (stored.instructions, stored.description, stored.front_matter) == (text, text, {text: [text]})
    [change] = await history.of("skill", "returns")
    assert (change.by, (change.after or {})["content_markdown"]) == (text, text)


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    "name", ["x" * 126, "漢" * 126, "Returns & refunds (EU)", "a/b?c#d", "'; drop table skill_t; --"]
)
async def test_a_name_is_a_line_of_text(skills: Skills, name: str) -> None:
    await skills.put(name, instructions="")

    assert [each.name for each in await skills.list()] == [name]


@pytest.mark.parametrize("name", ["", " ", "a ", " a", "a\nb", "a\0b", "\ud83d", "x" * 127, "a\x7f", "\u2028", None, 7])
async def test_a_name_that_is_no_line_is_refused(skills: Skills, name: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be stored") as refused:
        await skills.put(name, instructions="")

    assert refused.value.why
    assert refused.value.next


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"instructions": "x" * (MAX_INSTRUCTIONS + 1)}, "instructions"),
        ({"instructions": None}, "instructions"),
        ({"description": "x" * 1025}, "description"),
        ({"label": "x" * 21}, "label"),
        ({"label": ""}, "label"),
        ({"front_matter": ["a"]}, "front matter"),
    ],
)
async def test_what_cannot_be_stored_is_named(skills: Skills, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=f"the skill returns cannot be stored: its {field}"):
        await skills.put("returns", **cast(Any, {"instructions": "", **wrong}))


async def test_skills_are_listed_by_name_page_by_page(skills: Skills) -> None:
    for name in ("c", "a", "d", "b"):
        await skills.put(name, instructions="", active=name != "b")

    first = await skills.list(limit=2)
    rest = await skills.list(limit=2, after=first[-1].name)
    awake = await skills.list(active=True)

    assert [each.name for each in first + rest] == ["a", "b", "c", "d"]
    assert [each.name for each in awake] == ["a", "c", "d"]
    with pytest.raises(InvalidInput, match="the limit 0 is out of range"):
        await skills.list(limit=0)


async def test_a_skill_is_part_of_another(skills: Skills) -> None:
    await skills.put("service", instructions="")

    part = await skills.put("returns", instructions="", parent="service")
    alone = await skills.put("returns", instructions="", parent=None, version=1)

    assert (part.parent, alone.parent, alone.version) == ("service", None, 2)
    with pytest.raises(NotFound, match="there is no skill 'nothing'"):
        await skills.put("other", instructions="", parent="nothing")


async def test_a_circle_of_parts_is_named_in_order(skills: Skills) -> None:
    await skills.put("a", instructions="")
    await skills.put("b", instructions="", parent="a")
    await skills.put("c", instructions="", parent="b")

    with pytest.raises(InvalidInput, match="a is part of c, c is part of b, b is part of a") as refused:
        await skills.put("a", instructions="", parent="c", version=1)
    with pytest.raises(InvalidInput, match="new is part of new"):
        await skills.put("new", instructions="", parent="new")

    assert refused.value.details["circle"] == ["a", "c", "b", "a"]
    assert (await skills.get("a")).parent is None


async def test_what_others_need_or_are_part_of_is_not_removed(skills: Skills) -> None:
    for name, parent in (("base", None), ("part", "base"), ("must", None), ("can", None)):
        await skills.put(name, instructions="", parent=parent)
    await skills.depend("must", "base")
    await skills.depend("can", "base", required=False, active=False)

    with pytest.raises(InvalidInput, match="part is part of it, can needs it, must needs it") as refused:
        await skills.remove("base")

    assert (refused.value.details["parts"], refused.value.details["dependents"]) == (["part"], ["can", "must"])
    assert (await skills.get("base")).version == 1


async def test_a_removed_skill_takes_its_links_with_it(skills: Skills, tools: Tools, words_only: Engine) -> None:
    await words_only.definitions.put("support", instructions="")
    await tools.put("track", description="", parameters={}, kind="function", reference="shop:track")
    await skills.put("base", instructions="")
    await skills.put("returns", instructions="", description="Handles returns.", files={"a": b""})
    await skills.link("returns", "track")
    await skills.depend("returns", "base")
    await skills.assign("support", "returns")

    with pytest.raises(Conflict):
        await skills.remove("returns", version=7)
    await skills.remove("returns", version=1)

    with pytest.raises(NotFound):
        await skills.get("returns")
    with pytest.raises(NotFound):
        await skills.remove("returns")
    assert await skills.skills_of("support") == []
    assert (await tools.get("track")).version == 1
    await skills.remove("base")
    for table in ("skill_file", "skill_tool_t", "skill_dependency_t", "agent_skill_t", "skill_t"):
        assert not await words_only.database.value(f"select exists (select from {table} where host_id = $1)")
    assert not await words_only.database.value(
        "select exists (select from registry_term where host_id = $1 and kind = 'skill')"
    )


async def test_tenants_have_skills_of_their_own(skills: Skills, acme: Engine) -> None:
    theirs = Skills(acme.database, Tools(acme.database))
    await skills.put("returns", instructions="Ours.")

    await theirs.put("returns", instructions="Theirs.")

    assert (await skills.get("returns")).instructions == "Ours."
    assert (await theirs.get("returns")).instructions == "Theirs."
    with pytest.raises(NotFound):
        await theirs.depend("returns", "ours")
    assert [change.revision for change in await ChangeHistory(acme.database).of()] == [1]


@pytest.mark.req("ENG-05")
async def test_of_two_changes_at_once_one_is_a_conflict(skills: Skills) -> None:
    await skills.put("returns", instructions="")

    done = await asyncio.gather(
        *(skills.put("returns", instructions=f"{n}", version=1) for n in range(8)), return_exceptions=True
    )
    made = await asyncio.gather(*(skills.put("new", instructions=f"{n}") for n in range(8)), return_exceptions=True)

    assert sorted(type(each).__name__ for each in done) == ["Conflict"] * 7 + ["Skill"]
    assert sorted(type(each).__name__ for each in made) == ["AlreadyExists"] * 7 + ["Skill"]
    assert (await skills.get("returns")).version == 2


async def test_two_who_each_put_the_other_below_themselves_make_no_circle(skills: Skills) -> None:
    for n in range(5):
        await skills.put(f"a{n}", instructions="")
        await skills.put(f"b{n}", instructions="")

        done = await asyncio.gather(
            skills.put(f"a{n}", instructions="", parent=f"b{n}", version=1),
            skills.put(f"b{n}", instructions="", parent=f"a{n}", version=1),
            return_exceptions=True,
        )

        [refused] = [each for each in done if isinstance(each, HoldfastError)]
        assert "that would be a cycle" in refused.what + refused.why


async def test_a_skill_that_came_by_plain_sql_is_one_like_any_other(skills: Skills, words_only: Engine) -> None:
    id = UUID(int=7)
    await words_only.database.run(
        "insert into skill_t (host_id, skill_id, parent_skill_id, name, description, content_markdown) "
        "values ($1, $2, null, 'returns', 'Handles returns.', '# How')",
        id,
    )

    stored = await skills.get("returns")
    changed = await skills.put("returns", instructions="# Why", version=1, by="ann")

    assert (stored.id, stored.label, stored.active, stored.version, stored.instructions) == (
        id,
        "1.0.0",
        True,
        1,
        "# How",
    )
    assert stored.updated_by
    assert (changed.id, changed.version) == (id, 2)


async def test_what_is_left_out_of_a_change_stays_as_it_is(skills: Skills) -> None:
    await skills.put("sales", instructions="")
    whole = {"description": "Returns.", "label": "2.1", "parent": "sales", "active": False}
    await skills.put("returns", instructions="Old.", **cast(Any, whole))

    changed = await skills.put("returns", instructions="New.", version=1)
    moved = await skills.put("returns", instructions="New.", parent=None, version=2)

    assert {name: getattr(changed, name) for name in whole} == whole
    assert (moved.parent, moved.label, moved.active) == (None, "2.1", False)


async def test_what_could_not_be_written_out_again_cannot_lie_beside_a_skill(
    skills: Skills, words_only: Engine
) -> None:
    with pytest.raises(InvalidInput, match=r"cannot have a file SKILL.md"):
        await skills.put("returns", instructions="Mine.", files={"SKILL.md": b"another"})
    with pytest.raises(InvalidInput, match="below another file"):
        await skills.put("returns", instructions="Mine.", files={"c": b"", "c/d": b""})
    await skills.put("returns", instructions="Mine.", files={"d": b""})

    written = write_folder(await words_only.skill_transfer.export("returns"))

    assert b"Mine." in written["SKILL.md"]


async def test_a_file_is_read_alone_and_sizes_without_contents(skills: Skills) -> None:
    await skills.put("returns", instructions="", files={"a.py": SkillContent(b"12", True), "b": b"", "c": b"\0"})

    sizes = await skills.file_sizes("returns")

    assert sizes == [SkillFile("a.py", 2, True), SkillFile("b", 0, False), SkillFile("c", 1, False)]
    assert await skills.file("returns", "a.py") == SkillContent(b"12", True)
    with pytest.raises(NotFound, match=r"has no file 'd'.*lists them"):
        await skills.file("returns", "d")
    with pytest.raises(NotFound):
        await skills.file_sizes("nothing")
