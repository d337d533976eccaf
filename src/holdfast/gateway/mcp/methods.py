"""The methods that modern and legacy clients share, by name."""

from holdfast.gateway.mcp import completion, prompts, resources, tools
from holdfast.gateway.mcp.requests import Handler, McpRequest, Result


def _for_readers(handler: Handler) -> Handler:
    """Require the scope `read` for a method. Tool methods are different: each tool needs the scope for its access."""

    async def handle(request: McpRequest) -> Result:
        request.caller.require("read")
        return await handler(request)

    return handle


_READ: dict[str, Handler] = {**resources.METHODS, **prompts.METHODS, **completion.METHODS}
METHODS: dict[str, Handler] = {**tools.METHODS, **{name: _for_readers(each) for name, each in _READ.items()}}
