"""Shelves: the 50 skills with 500 tools of a shop that bench/skills.py tells agents of, and 10,000 tools to search."""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SKILLS, TOOLS_OF_EACH = 50, 10
AREAS = ("parcels", "returns", "invoices", "payments", "contracts", "tickets", "stock", "suppliers", "staff", "fleet")
VERBS = ("find", "list", "create", "change", "cancel", "export", "approve", "count", "compare", "notify")
REGIONS = ("domestic", "european", "american", "asian", "wholesale")
SAID = """
    the result has identifier and status and can be filtered by date owner or place it is sorted by time and returned in
    pages for the given account with details about each entry such as amount currency weight and reference
"""
WORDS = SAID.split()

Function = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Shelf:
    """A skill, and the functions that it works with."""

    name: str
    description: str
    instructions: str
    functions: Sequence[Function]


def shelves() -> list[Shelf]:
    """All of them."""
    return [_shelf(area, region) for region in REGIONS for area in AREAS]


def named_tools(count: int) -> Iterator[tuple[str, str]]:
    """Names and descriptions of so many tools."""
    chance = random.Random(7)
    for number in range(count):
        verb, area, region = chance.choice(VERBS), chance.choice(AREAS), chance.choice(REGIONS)
        said = " ".join(chance.choices(WORDS, k=chance.randint(10, 60)))
        yield f"{verb}_{region}_{area}_{number}", f"{verb.capitalize()} {region} {area}. {said.capitalize()}."


def _shelf(area: str, region: str) -> Shelf:
    functions = [_function(f"{verb}_{region}_{area}", f"{verb.capitalize()} {region} {area}") for verb in VERBS]
    steps = "\n".join(
        f"{number}. Before you {verb} {region} {area}, say which ones you mean, and check that the customer may see "
        f"them; afterwards tell in one sentence what has changed."
        for number, verb in enumerate(VERBS, 1)
    )
    return Shelf(
        f"{region}-{area}",
        f"Everything about {region} {area}: finding, creating, changing and cancelling them, and telling customers.",
        f"# {region.capitalize()} {area}\n\n{steps}\n\nAmounts are in the account's currency. Never guess a number.\n",
        functions,
    )


def _function(name: str, does: str) -> Function:
    async def function(
        reference: str,
        kind: Literal["standard", "express", "bulky"] = "standard",
        since: str | None = None,
        until: str | None = None,
        limit: int = 20,
        details: bool = False,
    ) -> dict[str, Any]:
        return {"reference": reference, "status": "ready", "kind": kind, "limit": limit}

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{does} of an account, with their status and all that customers ask about.

    Args:
        reference: the number of the account or of the thing itself, as it stands on the invoice.
        kind: how it is sent.
        since: the first day, as YYYY-MM-DD.
        until: the last day, as YYYY-MM-DD.
        limit: how many, at most.
        details: whether to tell everything that is known.
    """
    return function
