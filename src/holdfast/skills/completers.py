"""Completers: suggest values of an argument while a person types it in a client."""

import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import InvalidInput
from holdfast.core.threads import run_in_thread
from holdfast.skills.run import Run, begin_run

CompletionSource = Callable[..., Any] | Sequence[str]  # a function of the text typed so far, or all values


@dataclass(frozen=True, slots=True)
class Completer:
    """Suggests values of an argument. `others` are further arguments that it takes, if they are filled in."""

    call: Callable[..., Any]
    run_argument: str | None = None
    others: tuple[str, ...] = ()

    async def values(self, typed: str, known: Mapping[str, str], run: Run) -> list[str]:
        """Return suggestions for the text typed so far."""
        arguments: dict[str, Any] = {name: known[name] for name in self.others if name in known}
        if self.run_argument is not None:
            arguments[self.run_argument] = run
        begin_run(run)
        if inspect.iscoroutinefunction(self.call):
            found = await self.call(typed, **arguments)
        else:
            found = await run_in_thread(lambda: self.call(typed, **arguments), name="holdfast completion")
        return [str(each) for each in found]


def completers_of(what: str, functions: Mapping[str, CompletionSource], names: Collection[str]) -> dict[str, Completer]:
    """Return completers by argument. Raise InvalidInput for an unknown argument or an unsuitable function."""
    unknown = next((name for name in functions if name not in names), None)
    if unknown is not None:
        raise InvalidInput(
            f"{what} cannot be declared", why=f"it has a completer for {unknown!r:.100} but no such argument"
        )
    return {name: _completer(what, name, each, names) for name, each in functions.items()}


def _completer(what: str, name: str, source: CompletionSource, names: Collection[str]) -> Completer:
    if not callable(source):
        values = [str(each) for each in source]

        async def matching_values(typed: str) -> list[str]:
            return [each for each in values if each.lower().startswith(typed.lower())]

        return Completer(matching_values)
    hints, parameters = _hints(source), [*inspect.signature(source).parameters.values()]
    run_argument = next((each.name for each in parameters[1:] if hints.get(each.name) is Run), None)
    others = [each for each in parameters[1:] if each.name != run_argument]
    extra = next((each.name for each in others if each.name not in names or each.default is each.empty), None)
    if not parameters or extra is not None:
        takes = f"takes {extra}, which is not another argument, or has no default" if extra else "takes no arguments"
        raise InvalidInput(
            f"{what} cannot be declared",
            why=f"the completer of {name} {takes}",
            next="Let it take the text typed so far and, optionally, a Run and other arguments by name with defaults.",
        )
    return Completer(source, run_argument, tuple(each.name for each in others))


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}
