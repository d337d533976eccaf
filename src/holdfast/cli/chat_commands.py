"""Slash commands of the terminal chat, such as /new. They are not sent to the agent."""

from dataclasses import dataclass
from typing import Any

from holdfast.cli.api import Api

SESSIONS = 10
RECAP = 6  # messages
WIDTH = 72  # characters of each

HELP = """\
/new             start a new session
/sessions        list your last sessions; /sessions 2 continues the second
/agent           list agents; /agent NAME switches to another agent
/help            show this list
Ctrl-C stops an answer, Ctrl-D exits. To start a message with a slash, double it: //like this."""


@dataclass(frozen=True, slots=True)
class Switch:
    """The agent and the session to switch to; without a session, a new one starts."""

    agent: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """The agent, session and user of a chat."""

    agent: str
    session: str
    user: str | None


async def run_command(api: Api, line: str, place: ChatPlace) -> str | Switch:
    """Carry out a slash command. Return the text to print, or the session to switch to."""
    name, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    match name:
        case "/help":
            return HELP
        case "/new":
            return Switch(place.agent)
        case "/agent":
            return await _agent(api, rest, place)
        case "/sessions" | "/session":
            return await _sessions(api, rest, place)
        case _:
            return f"There is no {name[:40]}.\n{HELP}"


async def recap(api: Api, conversation: str) -> list[str]:
    """Return the last messages of a conversation, one line each."""
    last: int = (await api.call("get_conversation", id=conversation))["last_seq"]
    found = await api.call("list_nodes", id=conversation, since=max(0, last - 5 * RECAP), limit=100)
    lines = [_message_line(node) for node in found["nodes"]]
    return [line for line in lines if line][-RECAP:]


async def _agent(api: Api, name: str, place: ChatPlace) -> str | Switch:
    agents = [each for each in (await api.call("list_agents"))["agents"] if each["active"] and each["kind"] != "ui"]
    if name and any(each["name"] == name for each in agents):
        return Switch(name)
    lines = [
        f"{'*' if each['name'] == place.agent else ' '} {each['name']}{'' if each['served'] else ' (not served)'}"
        + (f": {_line(each['description'])}" if each["description"] else "")
        for each in agents
    ]
    return "\n".join([*([f"There is no agent {name[:40]!r}."] if name else []), *lines])


async def _sessions(api: Api, which: str, place: ChatPlace) -> str | Switch:
    user = place.user or (await api.call("me"))["user"]
    query = {"user": user, "agent": place.agent, "spoken": True, "openings": True, "limit": SESSIONS}
    found = await api.call("list_conversations", **query)
    conversations = [conversation for conversation in found["conversations"] if conversation["session_id"]]
    if which.isdecimal() and 0 < int(which) <= len(conversations):
        return Switch(place.agent, conversations[int(which) - 1]["session_id"])
    chosen = [conversation for conversation in conversations if which and conversation["session_id"].startswith(which)]
    if len(chosen) == 1:
        return Switch(place.agent, chosen[0]["session_id"])
    lines: list[str] = []
    for number, conversation in enumerate(conversations, 1):
        here = "*" if conversation["session_id"] == place.session else " "
        lines.append(f"{here}{number:>2}  {_line(found['openings'].get(conversation['id'], ''))}")
    return "\n".join(lines) or "There are no sessions yet."


def _message_line(node: dict[str, Any]) -> str:
    kind, _, who = str(node["context"]).partition(":")
    name = who.rpartition(":")[2]
    if node.get("deleted") or kind != "text" or name == "tool" or not node["content"].strip():
        return ""
    return f"{name}: {_line(node['content'])}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
