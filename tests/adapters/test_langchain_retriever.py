"""LangChain's retriever on our documents, alone and in a chain."""

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from holdfast.adapters.langchain import HoldfastRetriever
from holdfast.engine import Engine
from holdfast.memory import user

pytestmark = pytest.mark.req("KNOW-03")


@pytest.fixture
async def engine(engine_without_model: Engine) -> Engine:
    """An engine with documents of the organization and of Ann."""
    engine = engine_without_model
    knowledge = engine.knowledge
    await knowledge.add(text="Managers approve trips.", name="handbook.md", collection="hr", metadata={"year": 2026})
    await knowledge.add(text="Trips of the board are secret.", name="board.md", collection="board")
    await knowledge.add(text="My trips: Rome.", name="diary.md", owner=user("ann"))
    return engine


def names(found: list[Document]) -> list[str]:
    return sorted(each.metadata["source"] for each in found)


async def test_passages_are_documents_of_langchain_with_their_place(engine: Engine) -> None:
    [found] = await HoldfastRetriever(engine, collections=["hr"]).ainvoke("Who approves trips?")

    assert found.page_content == "Managers approve trips."
    assert [found.metadata[name] for name in ("source", "collection", "year")] == ["handbook.md", "hr", 2026]
    assert found.metadata["citation"] == "handbook.md, characters 0-23"
    assert found.id is not None


async def test_owners_collections_and_metadata_limit_what_is_found(engine: Engine) -> None:
    assert names(await HoldfastRetriever(engine).ainvoke("trips")) == ["board.md", "handbook.md"]
    assert names(await HoldfastRetriever(engine, user="ann").ainvoke("trips")) == [
        "board.md", "diary.md", "handbook.md",
    ]  # fmt: skip
    assert names(await HoldfastRetriever(engine, where={"year": 2026}).ainvoke("trips")) == ["handbook.md"]
    assert names(await HoldfastRetriever(engine, collections=[]).ainvoke("trips")) == []
    assert len(await HoldfastRetriever(engine, user="ann", k=1).ainvoke("trips")) == 1


async def test_a_chain_calls_it_from_another_thread(engine: Engine) -> None:
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    chain = {"context": HoldfastRetriever(engine, collections=["hr"]), "question": RunnablePassthrough()} | prompt

    made = await asyncio.to_thread(chain.invoke, "Who approves trips?")

    assert "Managers approve trips." in made.to_string()
