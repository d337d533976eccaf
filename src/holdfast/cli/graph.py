"""`holdfast knowledge graph`, `duplicates`, `merge` and `unmerge`: what texts name, and how it is related."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command
from holdfast.cli.operation_commands import Fields, derive, message, table
from holdfast.cli.output import printable, write
from holdfast.core.errors import InvalidInput, NotFound

SHOWN = 20  # neighbours and mentions
WIDTH = 100  # characters of a mention
DUPLICATES = {"keep": "KEEP", "keep_id": "ID", "other": "OTHER", "other_id": "ID", "reason": "WHY"}

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of an entity, or the beginning or end of it.")]
To = Annotated[str | None, typer.Option("--to", metavar="NAME", help="Show how it relates to this entity.")]
Hops = Annotated[int, typer.Option(min=1, max=4, help="Longest path, with --to.")]
User = Annotated[str | None, typer.Option(metavar="NAME", help="Only what memories of this user name.")]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="Only what memories of this agent name.")]
Org = Annotated[bool, typer.Option("--org", help="Only what the organization's memories and documents name.")]


def add_graph_commands(app: typer.Typer) -> None:
    """Register the commands in a group."""
    command(app, "graph")(graph)
    derive(
        app,
        "duplicates",
        "list_duplicates",
        table(
            DUPLICATES,
            keep=lambda row: row["keep"]["name"],
            keep_id=lambda row: row["keep"]["id"],
            other=lambda row: row["other"]["name"],
            other_id=lambda row: row["other"]["id"],
        ),
    )
    command(app, "merge")(merge)
    derive(app, "unmerge", "unmerge_entities", message("Undid the merge {id}."))


async def graph(
    invocation: Invocation,
    name: Name,
    to: To = None,
    hops: Hops = 3,
    user: User = None,
    agent: Agent = None,
    org: Org = False,
) -> None:
    """Show an entity: its aliases, what it is linked to, and what names it. With --to, how it relates to another.

    \b
    holdfast knowledge graph "Acme"
    holdfast knowledge graph "Ann" --to "Acme" --hops 3
    """
    owner = _owner(user, agent, org=org)
    async with reach(invocation) as api:
        if to is not None:
            found = await api.call("find_paths", source=name, target=to, hops=hops, **owner)
            text = "\n".join(path_lines(found["paths"], cut=found["cut"]))
        else:
            found = await _view(api, name, owner)
            text = "\n".join(entity_lines(found))
    invocation.output.record(found)
    if not invocation.json:
        write(sys.stdout, printable(text))


async def merge(
    invocation: Invocation,
    keep: Annotated[str, typer.Argument(metavar="KEEP", help="Id of the entity whose name is kept.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Id of the entity that becomes an alias of it.")],
) -> None:
    """Merge an entity into another that is the same. `holdfast knowledge unmerge` undoes it.

    `holdfast knowledge duplicates` lists candidates with their ids.
    """
    async with reach(invocation) as api:
        made = await api.call("merge_entities", keep=keep, other=other)
    invocation.output.record(made)
    invocation.output.say(
        f"Merged into {made['entity']['name']}. Undo it with `holdfast knowledge unmerge {made['id']}`."
    )


async def _view(api: Api, name: str, owner: Fields) -> dict[str, Any]:
    hits = (await api.call("search_entities", query=name, limit=1, **owner))["entities"]
    if not hits:
        raise NotFound(f"no entity matches {name[:100]!r}", next="Try a part of the name.")
    id = hits[0]["entity"]["id"]
    view = await api.call("get_entity", id=id, limit=SHOWN)
    near = await api.call("entity_neighbours", id=id, limit=SHOWN)
    return {**view, **near}


def _owner(user: str | None, agent: str | None, *, org: bool) -> dict[str, str]:
    given = [(scope, name) for scope, name in (("user", user), ("agent", agent)) if name is not None]
    if len(given) + org > 1:
        raise InvalidInput("more than one owner is given", next="Use one of --user, --agent and --org.")
    if org:
        return {"scope": "organization"}
    return {"scope": given[0][0], "name": given[0][1]} if given else {}


def _texts(count: int) -> str:
    return "1 text" if count == 1 else f"{count:,} texts"


def entity_lines(view: Fields) -> Iterator[str]:
    """Yield the lines that show an entity."""
    entity = view["entity"]
    yield f"{entity['name']} ({entity['type']}), in {_texts(entity['mentions'])}  {entity['id']}"
    if entity["description"]:
        yield entity["description"]
    if entity["aliases"]:
        yield f"Also: {', '.join(entity['aliases'])}"
    for merge in view["merges"]:
        why = "stated" if merge["memory"] else "merged by hand"
        yield f"  {merge['other_name']} = {merge['keep_name']} ({why}, undo: unmerge {merge['id']})"
    for near in view["neighbours"]:
        arrow = "--" if near["relation"] is None else "->" if near["outgoing"] else "<-"
        yield f"  {arrow} {near['relation'] or 'with'} {near['entity']['name']} ({near['count']:,})"
    if view["mentions"]:
        yield "Named by:"
    for mention in view["mentions"]:
        place = f" [{mention['citation']}]" if mention["citation"] else ""
        yield f"  {_one_line(mention['text'])}{place}"


def path_lines(paths: Sequence[Fields], *, cut: bool) -> Iterator[str]:
    """Yield the lines that show paths: each hop with what supports it."""
    for number, path in enumerate(paths, 1):
        hops = path["hops"]
        route = hops[0]["source"]["name"] + "".join(f" -[{hop['label']}]- {hop['target']['name']}" for hop in hops)
        yield f"{number}. {route}"
        for hop in hops:
            for support in hop["supports"][:1]:
                place = f" [{support['citation']}]" if support["citation"] else ""
                yield f"     {_one_line(support['text'])}{place}"
    if not paths:
        yield "No path was found."
    if cut:
        yield "The search met a limit: there may be more paths."


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}\u2026"
