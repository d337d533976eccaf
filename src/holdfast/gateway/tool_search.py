"""Tool search: the tools `search_tools` and `call_tool`, which reach all others, however many there are."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from holdfast.core.errors import InvalidInput, NotFound
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.runs import view_in
from holdfast.gateway.views import ADMIN, CALL_TOOL, CallerView, Listed
from holdfast.skills.arguments import ArgumentRefusal, check
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.search import RegistrySearch
from holdfast.skills.tool import Tool

MOST_FOUND = 20

_WHAT = """Call a tool that search_tools has found, or any other that you know by name.

What comes back is what that tool gives."""

CALL = Tool(
    CALL_TOOL,
    _WHAT,
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "as search_tools tells it"},
            "arguments": {
                "type": "object",
                "default": {},
                "description": "what the tool takes: an object that fits its inputSchema",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)


def search_tool(finding: RegistrySearch) -> Tool:
    """Return the tool that finds others."""

    async def search_tools(
        run: Run, query: Annotated[str, Meta(min_length=1)], limit: Annotated[int, Meta(ge=1, le=MOST_FOUND)] = 5
    ) -> dict[str, Any]:
        """Find tools by what they are for, also those that you were not told of. Call what you find with call_tool.

        Args:
            query: what you want to do, in a few words.
            limit: how many tools, at most.
        """
        view = view_in(run)
        seen = _searchable_ids(view)
        if seen is not None and not seen:
            return {"tools": []}
        found = await finding.search(query, kinds=["tool"], limit=limit, among=seen)
        listed = [view.by_name[each.name] for each in found if each.name in view.by_name]
        return {"tools": [_describe(each) for each in listed], **note_of(found.reduced)}

    return tool_of(search_tools, idempotent=True, access="read")


def note_of(reduced: str | None) -> dict[str, str]:
    """Return a note for the results of a search by words alone, with the reason; nothing for any other search."""
    return {"note": f"Found by words alone, for now: {reduced}. Other words may find more."} if reduced else {}


def resolve_call(view: CallerView, arguments: Mapping[str, Any]) -> tuple[Listed, Mapping[str, Any]] | Outcome:
    """Return the tool that `call_tool` should call and its arguments, or a refusal for the model to read."""
    checked = check(CALL, arguments)
    if isinstance(checked, ArgumentRefusal):
        return Outcome.refusal(checked.text, code=InvalidInput.code)
    name: str = checked["name"]
    listed = view.by_name.get(name)
    if listed is None or listed.name == CALL_TOOL:
        text = f"there is no tool {name!r:.200} to call. search_tools finds those that there are."
        return Outcome.refusal(text, code=NotFound.code)
    return listed, checked["arguments"]


def _searchable_ids(view: CallerView) -> Sequence[UUID] | None:
    """Return the ids of the tools that a search may find; None for all tools."""
    if view.who.kind == ADMIN and {"read", "write"} <= view.who.scopes and not view.hides:
        return None
    return view.ids


def _describe(listed: Listed) -> dict[str, Any]:
    shown = listed.offer.shown
    return {
        "name": listed.name,
        "description": shown.description,
        "inputSchema": {"type": "object", **shown.parameters},
    }
