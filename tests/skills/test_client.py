from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.core.errors import Unavailable
from holdfast.mcp.inputs import Elicit, InputRequest, ListRoots, Reply, Sample, wire_of
from holdfast.skills.client import SILENT, Client, InputRequired

FORM: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
SAID = [{"role": "user", "content": {"type": "text", "text": "Hello."}}]


class Taking(Client):
    """A client that takes down what it is asked, and answers with the name it was asked under."""

    def __init__(self) -> None:
        self.asked: dict[str, InputRequest] = {}

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Nobody wants to know."""

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Nobody wants to know."""

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Take it down."""
        self.asked |= requests
        return {name: Reply({"action": "accept", "content": {"name": name}}) for name in requests}


@pytest.mark.req("MCP-01")
async def test_whatever_a_tool_asks_goes_under_its_name_and_comes_back_by_it() -> None:
    client = Taking()

    city = await client.elicit("city", "Where to?", FORM)
    said = await client.sample("said", SAID, max_tokens=5, system_prompt="Be short.")
    await client.roots()

    assert (city.action, city.content, said.content) == ("accept", {"name": "city"}, {"name": "said"})
    assert client.asked == {
        "city": Elicit("Where to?", FORM),
        "said": Sample(SAID, 5, "Be short."),
        "roots": ListRoots(),
    }


@pytest.mark.req("MCP-01")
def test_requests_are_written_as_the_protocol_has_them() -> None:
    assert wire_of(Elicit("Where to?", FORM)) == {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Where to?", "requestedSchema": FORM},
    }
    assert wire_of(Sample(SAID)) == {
        "method": "sampling/createMessage",
        "params": {"messages": SAID, "maxTokens": 1000},
    }
    assert wire_of(ListRoots()) == {"method": "roots/list", "params": {}}


@pytest.mark.req("MCP-01")
async def test_where_nobody_can_be_asked_a_question_says_so() -> None:
    await SILENT.progress(1)
    await SILENT.log("info", "quiet")

    with pytest.raises(Unavailable, match="the caller cannot be asked for input"):
        await SILENT.elicit("city", "Where to?", FORM)


@pytest.mark.req("MCP-01")
def test_a_form_that_was_not_filled_in_holds_nothing() -> None:
    declined, nothing = Reply({"action": "decline"}), Reply({})

    assert (declined.action, declined.content) == ("decline", {})
    assert (nothing.action, nothing.content) == ("cancel", {})


@pytest.mark.req("MCP-01")
def test_that_a_tool_waits_for_its_client_is_nothing_that_its_handlers_of_errors_catch() -> None:
    assert not issubclass(InputRequired, Exception)
    assert str(InputRequired({"city": Elicit("Where to?", FORM)})) == "city"
