"""Agents as tools: a caller hands a task to an agent, and gets its answer."""

import asyncio
from typing import Any

from holdfast.agents import Agents, Event, Sent
from holdfast.agents.agents import UNSERVED_AFTER, start_of, unserved_agent
from holdfast.agents.memory_tools import Text
from holdfast.core.errors import Unavailable
from holdfast.engine import Engine
from holdfast.gateway.runs import authorization_of, caller_of, seconds_left
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

MARGIN = 2.0  # seconds before the deadline of a call at which ask_agent stops waiting for the answer
SHOWN = 200  # characters of a thought in a progress message


def agent_tools(engine: Engine) -> list[Tool]:
    """Return the tools that list agents, and that send a message to one."""
    agents = engine.agents

    async def list_agents(run: Run) -> dict[str, Any]:
        """List the agents that you can hand a task to with ask_agent; one that is not served answers later."""
        served = await agents.served()
        found = [
            {"name": each.name, "description": each.description, "served": each.name in served}
            for each in await agents.definitions.list()
            if each.active and each.kind != "ui" and run.agent in (None, each.name)
        ]
        return {"agents": found}

    async def ask_agent(run: Run, agent: Text, message: Text, session_id: str | None = None) -> dict[str, Any]:
        """Say something to an agent, and wait for its answer. What it has said stays in the conversation.

        Args:
            agent: its name, as list_agents tells it.
            message: what you want of it, in words.
            session_id: the conversation to go on with, as an answer before told it; a new one without it.
        """
        caller, named = caller_of(run), authorization_of(engine, run).agent(agent)
        conversation = await agents.session(named, user=caller.user, session_id=session_id, adopts=caller.adopts)
        session = conversation.session_id
        sending = asyncio.create_task(
            agents.send(agent, message, user=caller.user, session_id=session, key=run.key, adopts=False)
        )
        try:
            sent = await asyncio.shield(sending)  # shielded, because a cancellation needs the id of the run
            return await _answer(agents, agent, sent, run, {"agent": agent, "session_id": session})
        except asyncio.CancelledError:
            await agents.cancel((await sending).run_id)  # the caller waits no longer
            raise

    return [
        tool_of(list_agents, idempotent=True, access="read"),
        tool_of(ask_agent, access="write"),
    ]


async def _answer(agents: Agents, agent: str, sent: Sent, run: Run, reply: dict[str, Any]) -> dict[str, Any]:
    """Wait for the answer of a turn and add it to `reply`; if there is none in time, add the state of the turn."""
    if sent.held is None and await agents.is_stranded(sent.run_id, agent, within=UNSERVED_AFTER):
        return reply | {
            "state": "queued",
            "note": f"{unserved_agent(agent, sent.run_id)} read_conversation tells the answer.",
        }
    left = seconds_left(run)
    try:
        async with asyncio.timeout(max(left - MARGIN, left / 2)):
            async with agents.watch(sent.conversation, agent, since=str(start_of(sent))) as events:
                step = 0
                async for event in events:
                    if event.run_id != sent.run_id:
                        continue
                    if event.kind == "answer":
                        reply["answer"] = event.text
                    elif event.kind == "approval":
                        return reply | _approval_state(event)
                    elif event.kind in ("done", "error"):
                        _raise_if_failed(agent, event, reply)
                        return reply
                    elif message := _progress(event):
                        step += 1
                        await run.client.progress(step, message=message)
    except TimeoutError:
        note = "The agent still works on it. read_conversation tells later what came of it."
        return reply | {"state": "working", "note": note}
    raise Unavailable(f"what {agent} does cannot be followed", next="read_conversation shows the result.")


def _approval_state(event: Event) -> dict[str, Any]:
    note = "A person has to allow this call. read_conversation tells what came of it once they have decided."
    waits = {"approval_id": str(event.approval_id), "tool": event.tool, "arguments": event.arguments}
    return {"state": "waiting", "waits_for": waits, "note": note}


def _raise_if_failed(agent: str, event: Event, reply: dict[str, Any]) -> None:
    """Raise Unavailable if a turn failed."""
    if event.kind == "error" or "answer" not in reply:
        why = event.text or f"its turn ended as {event.state}"
        session = reply["session_id"]
        raise Unavailable(
            f"{agent} did not answer", why=why, next=f"The conversation is {session}.", session_id=session
        )


def _progress(event: Event) -> str:
    """Return the progress message for an event; empty for events that are not reported."""
    match event.kind:
        case "thought":
            return event.text[:SHOWN]
        case "action":
            return f"calls {event.tool}"
        case "observation":
            return f"{event.tool} failed" if event.failed else f"{event.tool} is done"
        case _:
            return ""
