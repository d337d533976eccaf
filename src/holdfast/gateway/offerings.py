"""Offerings: the resources and prompts of a tenant, from the app of this process and from the engine itself."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from holdfast.app import App
from holdfast.core.errors import Broken, NotFound
from holdfast.engine import Engine
from holdfast.execution.outcomes import Failed, run_app_code
from holdfast.gateway.builtin import own_resources
from holdfast.skills.client import InputRequired
from holdfast.skills.prompt import McpPrompt
from holdfast.skills.resource import McpResource


class Offerings:
    """The resources and prompts for callers of one tenant.

    `app` is the app of this process. It is offered only to the tenants for which the settings serve it.
    """

    def __init__(self, engine: Engine, app: App | None = None) -> None:
        self._engine = engine
        self._app = app
        self._own = {each.uri: each for each in own_resources(engine)}
        self._served: bool | None = None

    async def resources(self) -> Sequence[McpResource]:
        """Return all resources in the order of their declaration, the engine's own last."""
        app = await self._program()
        return [*(app.resources.values() if app is not None else ()), *self._own.values()]

    async def find(self, uri: str) -> tuple[McpResource, Mapping[str, str]] | None:
        """Find the resource of an address, and the values of its template. A fixed address precedes templates."""
        resources = await self.resources()
        for each in sorted(resources, key=lambda each: not each.is_fixed):
            values = each.template.match(uri)
            if values is not None:
                return each, values
        return None

    async def prompts(self) -> Mapping[str, McpPrompt]:
        """Return the prompts by name."""
        app = await self._program()
        return {} if app is None else app.prompts

    async def call(self, what: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Call a function of the app or the engine with the timeout of a call; return or raise what it does."""
        try:
            return await run_app_code(work, timeout=self._engine.config.gateway.timeout, name=what)
        except Failed as failed:
            error = failed.error
            if isinstance(error, Exception | InputRequired):
                raise error from None
            raise Broken(f"{what} failed", why=type(error).__name__) from error  # such as its own cancellation

    async def _program(self) -> App | None:
        """Return the app, if it is served for this tenant."""
        if self._app is None:
            return None
        if self._served is None:
            config, tenant = self._engine.config, await self._engine.database.tenant()
            served = False
            for name in dict.fromkeys([config.tenant, *config.agents.tenants]):
                with suppress(NotFound):
                    served = served or await self._engine.tenants.id_of(name) == tenant
            self._served = served
        return self._app if self._served else None
