"""Searches skills and tools, by words and by meaning."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from holdfast.core.errors import InvalidInput
from holdfast.core.text import restore
from holdfast.core.words import lexemes, term
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language, language_of
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.catalog import Catalogs
from holdfast.skills.disclosure import Catalog, refusal
from holdfast.skills.registry_indexer import plain_model
from holdfast.skills.registry_terms import in_name

FoundKind = Literal["skill", "tool"]

KINDS: tuple[FoundKind, ...] = get_args(FoundKind)
MAX_LIMIT = 100
MAX_QUERY = 20_000  # characters
READ = 4000  # characters of the query whose words are used
MODELS_FOR = 60.0  # seconds for which the list of models with vectors is cached

# Weights of the parts that are added to the cosine, and the number of words above which a text counts as long.
WORDS = 0.1
NAME = 0.05
USUAL_LENGTH = 30.0

REMOVED = "removed"  # kind of a row which reports that plain SQL has deleted something that is still indexed

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class FoundParts:
    """The parts of a score, which is their sum: meaning, words, and words in the name."""

    vector: float
    words: float
    name: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A skill or a tool that matches a query, with its score. `skill` is a skill that has the tool, if any."""

    kind: FoundKind
    name: str
    description: str
    score: float
    parts: FoundParts | None
    skill: str | None


class SearchResults(list[SearchResult]):
    """Matches, best first. `reduced` says why the model of the query's language gave no vector, if so."""

    reduced: str = ""


class RegistrySearch:
    """Searches the skills and tools of one tenant."""

    def __init__(self, database: Database, embeddings: Embeddings, catalogs: Catalogs) -> None:
        self._database = database
        self._embeddings = embeddings
        self._catalogs = catalogs
        self._models: list[str] = []  # models that have vectors
        self._models_until = 0.0

    async def search(
        self,
        query: str,
        *,
        kinds: Sequence[FoundKind] = KINDS,
        agent: str | None = None,
        among: Collection[UUID] | None = None,
        limit: int = 10,
        explain: bool = False,
    ) -> SearchResults:
        """Return the best matches among active skills and tools; with an `agent`, among those that it can load.

        `among`: only these skills and tools, if no agent is given.
        """
        _check(query, kinds, limit)
        catalog = None if agent is None else await self._catalogs.of(agent)
        vectors = await self._vectors(query)
        query_lexemes = lexemes(query[:READ])
        arguments = (
            list(kinds),
            limit,
            among if catalog is None else [*catalog.skills, *catalog.tool_ids],
            [term(lexeme) for lexeme in query_lexemes],
            [in_name(lexeme) for lexeme in query_lexemes],
            list(vectors),
            list(vectors.values()),
            [self._embeddings.unrelated(model) for model in vectors],
            WORDS,
            NAME,
            USUAL_LENGTH,
        )
        rows = await self._database.all(sql("search_registry"), *arguments)
        if rows and rows[-1]["kind"] == REMOVED:
            await self._database.run(sql("forget_removed"))
            rows = await self._database.all(sql("search_registry"), *arguments)
        skills = {} if catalog is None else _skills_of_tools(catalog)
        found = SearchResults(_result(row, skills, explain=explain) for row in rows if row["kind"] != REMOVED)
        found.reduced = self._missing_vector_reason(query, vectors)
        return found

    async def _vectors(self, query: str) -> Mapping[str, bytes]:
        """Return the vectors of a query, by the model of its language and by all others that can read it.

        Models of other languages read English. For Chinese, the cosines of an English model mean nothing.
        """
        own, english = self._model_of(language_of(query)), self._model_of("en")
        others = [model for model in await self._known_models() if own == english or model != english]
        models = dict.fromkeys(model for model in (own, *others) if model is not None)
        asker = await self._database.tenant()
        found = await asyncio.gather(*(self._embeddings.query(query, model, asker=asker) for model in models))
        return {
            model: encode_halfvec(vector) for model, vector in zip(models, found, strict=True) if vector is not None
        }

    async def _known_models(self) -> list[str]:
        if time.monotonic() >= self._models_until:
            rows = await self._database.all(sql("registry_models"))
            self._models, self._models_until = [row["model"] for row in rows], time.monotonic() + MODELS_FOR
        return [model for model in self._models if self._embeddings.ready(model)]

    def _model_of(self, language: Language) -> str | None:
        model = self._embeddings.model(language)
        return None if model is None else plain_model(model)

    def _missing_vector_reason(self, query: str, vectors: Mapping[str, bytes]) -> str:
        own = self._model_of(language_of(query))
        if own is None or own in vectors:
            return ""
        state, why = self._embeddings.state
        return why if state == "reduced" else f"{own} returned no vector for this query"


def _result(row: Row, skills: Mapping[UUID, str], *, explain: bool) -> SearchResult:
    parts = FoundParts(*row["parts"])
    skill = skills.get(row["id"]) or (None if row["skill"] is None else restore(row["skill"]))
    score = parts.vector + parts.words + parts.name
    name, description = restore(row["name"]), restore(row["description"])
    return SearchResult(row["kind"], name, description, score, parts if explain else None, skill)


def _skills_of_tools(catalog: Catalog) -> dict[UUID, str]:
    """Return, for each tool, the first skill through which the agent may call it."""
    found: dict[UUID, str] = {}
    for skill in catalog.skills.values():
        for grant in skill.tools:
            if grant.id not in found and not refusal(grant, catalog.agent):
                found[grant.id] = skill.name
    return found


def _check(query: object, kinds: object, limit: object) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("the query is empty", next="Pass the text to search for.")
    if len(query) > MAX_QUERY:
        raise InvalidInput(
            "the query is too long",
            why=f"it has {len(query)} characters; the limit is {MAX_QUERY}",
            next="Shorten the query.",
        )
    if not isinstance(kinds, list | tuple) or not kinds or any(kind not in KINDS for kind in kinds):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidInput(f"the kinds {kinds!r:.100} are invalid", next=f"Use some of {', '.join(KINDS)}.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_LIMIT:
        raise InvalidInput(f"the limit {limit!r:.100} is out of range", next=f"Use 1 to {MAX_LIMIT}.")
