"""Arguments of tools, checked: how long that takes for a call that fits, and for one that does not.

`checking()` gives microseconds per check by case; the first check of a schema, which makes it ready, is one, too.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.skills.arguments import check, parse_arguments
from holdfast.skills.tool import Tool
from holdfast.skills.validators import checker_of

ROUNDS = 5  # the best of these counts: the others were disturbed

SMALL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
        "units": {"enum": ["metric", "imperial"], "default": "metric"},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def large(properties: int = 40) -> dict[str, Any]:
    """A schema as documents have them: objects in objects, alternatives, and references that come round."""
    names = [f"part{number}" for number in range(5)]
    defs = {
        name: {
            "type": "object",
            "properties": {
                "label": {"type": "string", "pattern": "^[a-z ]+$", "description": "What it is called. " * 5},
                "next": {"$ref": f"#/$defs/{names[(number + 1) % len(names)]}"},
            },
        }
        for number, name in enumerate(names)
    }
    choice = {name: {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]} for name in names}
    return {
        "type": "object",
        "properties": {f"field{number}": {"type": "object", "properties": choice} for number in range(properties)},
        "$defs": defs,
    }


def checking(*, calls: int = 2000) -> Iterator[tuple[str, float]]:
    """Each case, and the microseconds that a check takes in it."""
    small, big = Tool("forecast", "", SMALL, kind="rest"), Tool("store", "", large(), kind="rest")
    chain = {"label": "a", "next": {"label": "b", "next": {"label": "c"}}}
    stored: dict[str, Any] = {f"field{number}": {"part0": chain, "part3": None} for number in range(10)}
    text = json.dumps({"city": "Hamburg", "days": 5})
    yield "three arguments, from a model's text", _spent(lambda: parse_arguments(small, text), calls)
    yield "three arguments, as values", _spent(lambda: check(small, {"city": "Hamburg", "days": 5}), calls)
    yield "three arguments, two of them wrong", _spent(lambda: check(small, {"city": "", "days": 50}), calls // 10)
    yield "an object of 1 kB, a schema of 15 kB", _spent(lambda: check(big, stored), calls // 10)
    wrong = {**stored, "field3": {"part0": {"label": "A"}}}
    yield "the same, with one argument wrong", _spent(lambda: check(big, wrong), calls // 100)
    fresh = iter([large() | {"title": str(number)} for number in range(ROUNDS * (calls // 100))])
    yield "the first check of a schema of 15 kB", _spent(lambda: checker_of(next(fresh)), calls // 100)


def _spent(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - began)
    return 1e6 * best / times
