"""`holdfast agents`: list and show agents."""

import sys
from typing import Annotated, Any

import typer

from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, table
from holdfast.cli.output import printable, write

app = group("List and show agents, both those declared in apps and those stored as rows.")

COLUMNS = ["name", "kind", "active", "served", "description"]

derive(app, "ls", "list_agents", table(COLUMNS))


@command(app)
async def show(invocation: Invocation, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Show an agent: model, tools, skills, limits and instructions."""
    async with reach(invocation) as api:
        agent = await api.call("get_agent", name=name)
        agent["skills"] = [each["skill"] for each in (await api.call("list_agent_skills", agent=name))["skills"]]
    if invocation.json:
        invocation.output.record(agent)
    else:
        write(sys.stdout, format_agent(agent))


def format_agent(agent: dict[str, Any]) -> str:
    """Format an agent for the terminal."""
    limits = {name: limit for name, limit in agent["limits"].items() if limit is not None}
    about = {
        "description": agent["description"],
        "from": "a program" if agent["origin"] == "code" else f"version {agent['version']}",
        "active": "" if agent["active"] else "no",
        "model": agent["model"] or "",
        "tools": ", ".join(agent["tools"]),
        "skills": ", ".join(agent["skills"]),
        "approve": ", ".join(agent["approve"]),
        "memory": "" if agent["memory"] else "none",
        "knowledge": _knowledge(agent["knowledge"]),
        "limits": ", ".join(f"{limit:g} {name}" for name, limit in limits.items()),
    }
    lines = [f"{agent['name']} ({agent['kind']})", *(f"{name:<11}  {value}" for name, value in about.items() if value)]
    instructions = agent["instructions"].replace("\r\n", "\n").strip()
    return printable("\n".join([*lines, *(["", instructions] if instructions else [])]))


def _knowledge(collections: bool | list[str]) -> str:
    if isinstance(collections, bool):
        return "all collections" if collections else ""
    return ", ".join(collections)
