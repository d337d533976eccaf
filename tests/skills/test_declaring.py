"""What programs declare: rows that follow the program, and leave what others have said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.skills.declarations import Declarations, in_order
from holdfast.skills.function_tools import tool_of
from holdfast.skills.history import ChangeHistory
from holdfast.skills.skill import DeclaredSkill, SkillContent
from holdfast.skills.skills import Skills
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools

pytestmark = pytest.mark.req("SKILL-01")


async def track(parcel: str) -> str:
    """Where a parcel is."""
    return parcel


async def cancel(parcel: str, reason: str = "") -> str:
    """Cancel a parcel."""
    return parcel + reason


TOOLS = (tool_of(track, access="read"), tool_of(cancel))
BASE = DeclaredSkill("base", "How we speak.", "Be kind.")
RETURNS = DeclaredSkill(
    "returns", "Handles returns.", "Ask for the number.", {"track": None, "cancel": "write"}, ("base",), ("more",),
    "base", {"check.py": SkillContent(b"print(1)", True)}, "2.0",
)  # fmt: skip
MORE = DeclaredSkill("more")
ALL = (RETURNS, MORE, BASE)


class Program:
    """A program that starts again and again."""

    def __init__(self, engine: Engine) -> None:
        self._declaring = Declarations(engine.database)

    async def start(
        self,
        skills: Sequence[DeclaredSkill] = ALL,
        tools: Sequence[Tool] = TOOLS,
        assignments: Mapping[str, Sequence[str]] | None = None,
        *,
        name: str = "shop",
        whole: bool = False,
    ) -> Mapping[str, Tool]:
        """Declare all of it."""
        given = {"support": ["returns", "base"]} if assignments is None else assignments
        return await self._declaring.declare(name, tools, skills, given, whole=whole)


@pytest.fixture
async def program(words_only: Engine) -> Program:
    """A program whose agent support is stored already."""
    await words_only.definitions.put("support", instructions="")
    return Program(words_only)


async def test_what_a_program_declares_becomes_rows(program: Program, skills: Skills, tools: Tools) -> None:
    declared = await program.start()

    entry, skill = await tools.get("cancel"), await skills.get("returns")
    assert declared == {tool.name: replace(tool, id=(await tools.get(tool.name)).id, version=1) for tool in TOOLS}
    assert (entry.origin, entry.app_name, entry.tool.kind, entry.tool.mode) == ("code", "shop", "function", "inline")
    assert entry.tool.reference.endswith(":cancel")
    assert entry.tool.parameters == declared["cancel"].parameters
    assert (skill.origin, skill.parent, skill.label, skill.instructions) == (
        "code",
        "base",
        "2.0",
        "Ask for the number.",
    )
    assert await skills.files("returns") == RETURNS.files
    assert [(each.tool, each.access) for each in await skills.tools_of("returns")] == [
        ("cancel", "write"), ("track", "read"),
    ]  # fmt: skip
    assert [(each.on, each.required) for each in await skills.needs("returns")] == [("base", True), ("more", False)]
    assert [each.skill for each in await skills.skills_of("support")] == ["returns", "base"]


async def test_nothing_is_written_when_nothing_changed(program: Program, history: ChangeHistory) -> None:
    first = await program.start()
    before = await history.of()

    second = await program.start()

    assert second == first
    assert await history.of() == before


async def test_rows_follow_the_program(program: Program, skills: Skills, tools: Tools) -> None:
    await program.start()

    changed = replace(
        RETURNS, description="New.", tools={"track": "execute"}, requires=(), optional=("base",), files={}, parent=None
    )
    declared = await program.start(
        [BASE, changed, MORE], [TOOLS[0], tool_of(cancel, idempotent=True)], {"support": ["base", "more"]}
    )

    skill = await skills.get("returns")
    assert (declared["track"].version, declared["cancel"].version) == (1, 2)
    assert (skill.description, skill.parent, skill.version, await skills.files("returns")) == ("New.", None, 2, {})
    assert [(each.tool, each.access) for each in await skills.tools_of("returns")] == [("track", "execute")]
    assert [(each.on, each.required) for each in await skills.needs("returns")] == [("base", False)]
    assert [each.skill for each in await skills.skills_of("support")] == ["base", "more"]
    assert (await tools.get("cancel")).tool.idempotent


async def test_what_a_program_no_longer_declares_stays(program: Program, skills: Skills, tools: Tools) -> None:
    await program.start()

    await program.start([], [], {})

    assert [each.name for each in await skills.list()] == ["base", "more", "returns"]
    assert [each.tool.name for each in await tools.list()] == ["cancel", "track"]
    assert [each.skill for each in await skills.skills_of("support")] == ["returns", "base"]


async def test_what_others_have_said_stays(program: Program, skills: Skills, tools: Tools) -> None:
    await program.start()
    await tools.activate("track", False, by="ann")
    await tools.permit("track", {"default": "read"}, by="ann")
    await skills.activate("more", False, by="ann")
    await skills.link("returns", "cancel", access="read", config={"approve": True}, by="ann")
    await skills.link("base", "track", by="ann")
    await skills.assign("support", "base", priority=9, by="ann")
    await skills.assign("support", "more", by="ann")

    await program.start([replace(RETURNS, description="New."), MORE, BASE], assignments={"support": ["returns"]})

    entry = await tools.get("track")
    assert (entry.active, entry.permissions) == (False, {"default": "read"})
    assert not (await skills.get("more")).active
    assert [(each.tool, each.access, each.config) for each in await skills.tools_of("returns")] == [
        ("cancel", "read", {"approve": True}), ("track", "read", {}),
    ]  # fmt: skip
    assert [each.tool for each in await skills.tools_of("base")] == ["track"]
    assert [(each.skill, each.priority) for each in await skills.skills_of("support")] == [
        ("base", 9), ("more", 0), ("returns", 0),
    ]  # fmt: skip


async def test_a_name_that_somebody_has_stored_is_not_taken_over(
    program: Program, skills: Skills, tools: Tools
) -> None:
    await tools.put("track", description="Theirs.", parameters={}, kind="function", reference="a:b")
    with pytest.raises(AlreadyExists, match="the tool track cannot be declared: there is already a tool of that name"):
        await program.start()
    await tools.remove("track")
    await skills.put("base", instructions="Theirs.")
    with pytest.raises(
        AlreadyExists, match=r"the skill base cannot be declared: there is already a skill of that name"
    ):
        await program.start()

    assert [each.name for each in await skills.list()] == ["base"]  # nothing else was stored
    assert await tools.list() == []


async def test_a_tool_of_a_source_is_not_taken_over(program: Program, tools: Tools, words_only: Engine) -> None:
    await words_only.database.run(
        "with made as (insert into tool_source (host_id, name, kind) values ($1, 'api', 'openapi') returning *) "
        "insert into tool_t (host_id, name, description, implementation_type, origin, source_id, operation) "
        "select $1, 'track', '', 'function', 'source', source_id, 'GET /' from made"
    )

    with pytest.raises(AlreadyExists, match="there is already a tool of that name from the source api"):
        await program.start()


async def test_what_a_program_declares_is_its_alone_to_change(program: Program, skills: Skills) -> None:
    await program.start()

    for work in (skills.put("returns", instructions="", version=1), skills.remove("returns")):
        with pytest.raises(AlreadyExists, match="an app declares the skill returns"):
            await work


@pytest.mark.parametrize(
    ("skills", "assignments", "said"),
    [
        (
            [replace(RETURNS, tools={"none": None}), BASE, MORE],
            {},
            "there is no tool 'none': the declaration of returns names none",
        ),
        ([RETURNS, BASE], {}, "there is no skill 'more': the declaration of returns names more"),
        ([replace(MORE, parent="none")], {}, "there is no skill 'none'"),
        (ALL, {"support": ["none"]}, "there is no skill 'none': the declaration of support names none"),
        (ALL, {"nobody": ["base"]}, "there is no agent 'nobody'"),
    ],
)
async def test_what_leads_nowhere_is_named_and_nothing_is_stored(
    program: Program, skills: Sequence[DeclaredSkill], assignments: dict[str, list[str]], said: str, tools: Tools
) -> None:
    with pytest.raises(NotFound, match=said):
        await program.start(skills, assignments=assignments)

    assert await tools.list() == []


async def test_circles_are_refused(program: Program, skills: Skills) -> None:
    with pytest.raises(InvalidInput, match="b needs a, a needs b"):
        await program.start([DeclaredSkill("a", requires=("b",)), DeclaredSkill("b", optional=("a",))], assignments={})
    with pytest.raises(InvalidInput, match="a is part of b, b is part of a"):
        await program.start([DeclaredSkill("a", parent="b"), DeclaredSkill("b", parent="a")], assignments={})
    await program.start([DeclaredSkill("a")], assignments={})
    await skills.put("stored", instructions="", parent="a")
    with pytest.raises(InvalidInput, match="a is part of stored, stored is part of a"):
        await program.start([DeclaredSkill("a", parent="stored")], assignments={})


def test_skills_are_stored_after_what_they_are_part_of() -> None:
    c, b, a = DeclaredSkill("c", parent="b"), DeclaredSkill("b", parent="a"), DeclaredSkill("a", parent="stored")

    assert [each.name for each in in_order([c, b, a])] == ["a", "b", "c"]
    with pytest.raises(AlreadyExists, match="the skill a is declared twice"):
        in_order([a, a])
    with pytest.raises(InvalidInput, match="the access 'all' is unknown"):
        in_order([DeclaredSkill("a", tools={"track": "all"})])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="b is both required and optional"):
        in_order([DeclaredSkill("a", requires=("b",), optional=("b",))])


async def test_a_program_does_not_take_over_what_another_one_declares(
    program: Program, skills: Skills, tools: Tools
) -> None:
    await program.start()

    with pytest.raises(AlreadyExists, match="a tool of that name that the app shop declares"):
        await program.start((), TOOLS[:1], {}, name="crm")
    with pytest.raises(AlreadyExists, match=r"the skill base cannot be declared.* that the app shop declares"):
        await program.start((BASE,), (), {}, name="crm")
    assert (await tools.get("track")).app_name == "shop"

    await tools.activate("track", False)
    await tools.remove("track")  # the program was given another name
    await program.start((), TOOLS[:1], {}, name="crm")
    assert (await tools.get("track")).app_name == "crm"


async def test_programs_without_a_name_share_what_they_declare(program: Program, tools: Tools) -> None:
    await program.start(name="")

    await program.start(name="crm")
    await program.start(name="")

    assert (await tools.get("track")).app_name == ""


async def test_what_a_program_no_longer_has_is_not_active_and_can_be_removed_and_comes_back(
    program: Program, skills: Skills, tools: Tools
) -> None:
    await program.start(whole=True)
    with pytest.raises(AlreadyExists, match="deactivate it and then remove it"):
        await tools.remove("cancel")

    await program.start((BASE,), TOOLS[:1], {"support": ["base"]}, whole=True)
    gone = ((await tools.get("cancel")).active, (await skills.get("more")).active)
    kept = ((await tools.get("track")).active, (await skills.get("base")).active)
    await program.start(whole=True)
    back = ((await tools.get("cancel")).active, (await skills.get("more")).active)
    await program.start((BASE,), TOOLS[:1], {"support": ["base"]}, whole=True)
    await tools.remove("cancel")
    await skills.remove("returns")

    assert (gone, kept, back) == ((False, False), (True, True), (True, True))
    assert [entry.tool.name for entry in await tools.list()] == ["track"]


async def test_what_an_administrator_deactivated_stays_so_when_it_comes_back(program: Program, tools: Tools) -> None:
    await program.start(whole=True)
    await tools.activate("cancel", False)

    await program.start((), TOOLS[:1], {}, whole=True)
    await program.start(whole=True)

    assert not (await tools.get("cancel")).active


async def test_tools_of_other_modules_stay_as_they_are(program: Program, tools: Tools) -> None:
    elsewhere = replace(TOOLS[1], reference="elsewhere:cancel")
    await program.start((), (TOOLS[0], elsewhere), {}, whole=True)

    await program.start((), TOOLS[:1], {}, whole=True)

    assert (await tools.get("cancel")).active
