"""Talking to the agents of the desk."""

import asyncio
from typing import Any

from holdfast.llm import ModelRequest
from tests.agents.stage import Player
from tests.server.wire import Reply, Site


async def say(site: Site, message: str, *, key: str | None = None, headers: Any = (), **body: Any) -> Reply:
    """The answer to a message to the agent `support`."""
    given = {"message": message, "agent_id": "support", **body}
    return await site.ask("POST", "/api/chat", key=key, json=given, headers=headers)


def held(model: Player) -> asyncio.Event:
    """Have the model stop before it answers; set when it is asked."""
    asked = asyncio.Event()

    def part(_: ModelRequest) -> str:
        asked.set()
        return "Done."

    model.says(part)
    model.hold()
    return asked
