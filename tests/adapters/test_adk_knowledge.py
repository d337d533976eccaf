"""Documents for agents of ADK: its runner calls our tools, and each user reads what is theirs."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools.retrieval.base_retrieval_tool import BaseRetrievalTool
from google.genai.types import Content, FunctionCall, Part
from typing_extensions import override

from holdfast.adapters.adk import PostgresKnowledgeService, PostgresSessionService
from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.memory import user

pytestmark = pytest.mark.req("KNOW-03", "ADK-02")

ANN: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}
BOB: dict[str, Any] = {"app_name": "shop", "user_id": "bob"}


class Caller(BaseLlm):
    """A model that calls one tool, and repeats what it gave."""

    call: FunctionCall
    offered: tuple[str, ...] = ()

    @override
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.offered = tuple(sorted(llm_request.tools_dict))
        [part, *_] = (llm_request.contents[-1].parts or []) if llm_request.contents else []
        if part.function_response is None:
            yield LlmResponse(content=Content(role="model", parts=[Part(function_call=self.call)]))
        else:
            text = str((part.function_response.response or {})["result"])
            yield LlmResponse(content=Content(role="model", parts=[Part(text=text)]))


@pytest.fixture
def engine(engine_without_model: Engine) -> Engine:
    return engine_without_model


@pytest.fixture
async def service(engine: Engine) -> PostgresKnowledgeService:
    """The service, with a document of the organization, one in another collection, and one of Ann."""
    await engine.knowledge.add(text="# Travel\n\nManagers approve trips.", name="handbook.md", collection="hr")
    await engine.knowledge.add(text="Trips of the board are secret.", name="board.md", collection="board")
    await engine.knowledge.add(text="My trips: Rome.", name="diary.md", collection="hr", owner=user("ann"))
    return PostgresKnowledgeService(engine, collections=["hr"])


async def answer(engine: Engine, service: PostgresKnowledgeService, call: FunctionCall) -> tuple[str, tuple[str, ...]]:
    """What a tool gives to a model in ADK's runner, and which tools the model was offered."""
    model = Caller(model="caller", call=call)
    agent = LlmAgent(name="helper", model=model, tools=[*service.tools])
    runner = Runner(app_name="shop", agent=agent, session_service=PostgresSessionService(engine))
    session = await runner.session_service.create_session(**ANN)
    said = Content(role="user", parts=[Part(text="Who approves trips?")])
    texts = [
        part.text
        async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=said)
        for part in (event.content.parts if event.content and event.content.parts else [])
        if part.text
    ]
    return texts[-1], model.offered


async def test_a_user_finds_the_organizations_and_their_own_documents_in_these_collections(
    service: PostgresKnowledgeService,
) -> None:
    anns = await service.search(**ANN, query="trips")
    bobs = await service.search(**BOB, query="trips")

    assert sorted(hit.name for hit in anns) == ["diary.md", "handbook.md"]
    assert [hit.name for hit in bobs] == ["handbook.md"]
    assert sorted(each.name for each in await service.list(**ANN)) == ["diary.md", "handbook.md"]
    assert await service.search(**ANN, query=" ") == []
    with pytest.raises(NotFound, match=r"there is no document 'board\.md'"):
        await service.read(**ANN, document="board.md")


async def test_an_agent_of_adk_calls_the_tools(engine: Engine, service: PostgresKnowledgeService) -> None:
    found, offered = await answer(
        engine, service, FunctionCall(name="search_knowledge", args={"query": "Who approves?"})
    )
    read, _ = await answer(engine, service, FunctionCall(name="read_document", args={"document": "handbook.md"}))
    missing, _ = await answer(engine, service, FunctionCall(name="read_document", args={"document": "board.md"}))
    listed, _ = await answer(engine, service, FunctionCall(name="list_documents", args={}))
    refused, _ = await answer(engine, service, FunctionCall(name="list_documents", args={"cursor": "odd"}))

    assert offered == ("list_documents", "read_document", "search_knowledge")
    assert found.startswith('<document source="handbook.md, chunk 0, section Travel">\n')
    assert "Managers approve trips." in read
    assert missing.startswith("there is no document 'board.md'")
    assert refused.startswith("the cursor 'odd' is invalid")
    assert listed.splitlines()[0] == "- diary.md (collection hr)"


async def test_the_search_is_a_retrieval_tool_of_adk(service: PostgresKnowledgeService) -> None:
    search = service.tools[0]

    assert isinstance(search, BaseRetrievalTool)
    assert search.name == "search_knowledge"
