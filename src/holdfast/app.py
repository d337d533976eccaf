"""`App`: what a program declares for the engine to run.

    app = holdfast.App()

    @app.skill("translate")
    async def translate(text: str) -> str: ...

`holdfast worker shop:app` runs the skills of `app` in `shop.py`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from holdfast.bus.skills import ATTEMPTS, Skill
from holdfast.core.errors import AlreadyExists, InvalidInput

Function = TypeVar("Function", bound=Callable[..., Any])


class App:
    """Collects what is declared by its decorators."""

    def __init__(self) -> None:
        self._skills: dict[str, Skill] = {}

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The skills by name."""
        return MappingProxyType(self._skills)

    def skill(
        self, name: str, *, rate: float | None = None, attempts: int = ATTEMPTS, timeout: float | None = None
    ) -> Callable[[Function], Function]:
        """Declare a function as a skill: async ones run on the event loop, plain ones each in a thread.

        `rate`: how many may start in a second, over all workers. `attempts`: how often it is tried, where the invoker
        does not say. `timeout`: seconds that an attempt may take. Arguments come by name; the result must be JSON.
        An attempt may be repeated after a crash: `current_command().correlation_id` stays the same.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{name!r:.200} is no name of a skill", next='Write @app.skill("name").')

        def declare(function: Function) -> Function:
            if name in self._skills:
                raise AlreadyExists(f"the skill {name} is declared twice", next="Give each a name of its own.")
            self._skills[name] = Skill(name, function, rate, attempts, timeout)
            return function

        return declare
