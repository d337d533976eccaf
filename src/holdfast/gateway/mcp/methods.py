"""The methods that both eras have, by name."""

from holdfast.gateway.mcp import completion, prompts, resources, tools
from holdfast.gateway.mcp.requests import Handler, Request, Result


def _for_readers(handler: Handler) -> Handler:
    """The same for whoever may read: tools are seen by what each of them does, and all else is there to be read."""

    async def handle(request: Request) -> Result:
        request.caller.require("read")
        return await handler(request)

    return handle


_READ: dict[str, Handler] = {**resources.METHODS, **prompts.METHODS, **completion.METHODS}
METHODS: dict[str, Handler] = {**tools.METHODS, **{name: _for_readers(each) for name, each in _READ.items()}}
