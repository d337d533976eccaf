"""Requests, and answers in short."""

from holdfast.llm import Caller, ChatMessage, Reply, Request, Shown, ToolSpec

TRACK = ToolSpec(
    "track",
    "Where a parcel is.",
    {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]},
)
HELLO = Request(messages=[ChatMessage("user", "Hello")])


def saying(*messages: ChatMessage | str, tools: tuple[ToolSpec, ...] = (TRACK,)) -> Request:
    """A request in which text is what the user says."""
    return Request(
        messages=[ChatMessage("user", message) if isinstance(message, str) else message for message in messages],
        tools=tools,
    )


def called(reply: Reply) -> list[tuple[str, str]]:
    """The calls of a reply, without their ids."""
    return [(call.name, call.arguments.replace(" ", "")) for call in reply.calls]


async def shown(caller: Caller, request: Request = HELLO) -> tuple[Reply, list[Shown]]:
    """The reply, and the pieces as they were handed out."""
    pieces: list[Shown] = []
    return await caller.ask(request, on_piece=pieces.append), pieces
