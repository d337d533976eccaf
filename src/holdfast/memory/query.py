"""Prepares queries for the search statement: sentences, vectors, terms, names and dates."""

import asyncio
import re
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.core.errors import InvalidInput
from holdfast.core.words import names, terms
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language, language_of
from holdfast.memory.dates import DateSpan, find_dates
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

MAX_QUESTION = 20_000  # characters
MAX_PARTS = 4  # sentences
READ = 4000  # characters that terms and names are extracted from
MODELS_FOR = 60.0  # seconds to cache which models have vectors

sql = statements(__name__)

# A full stop ends a sentence if a space and no lower-case letter follow, and if no initial, number or title precedes:
# a wrong split would lose half of the sentence.
_SENTENCE = re.compile(
    r".+?(?:"
    r"[\u3002\uff01\uff1f\uff1b]+[\u201d\u2019\u300d\u300f\uff09]*"
    r"|(?<![?!;])[?!;]++[\"')\u201d\u2019]*(?=\s|$|[^\x00-\x7f])"
    r"|(?<!\b\w)(?<!\b(?:Mr|Ms|Dr|St|vs|No))(?<!\b(?:Mrs|Inc|Ltd|e\.g|i\.e))\.[\"')\u201d\u2019]*(?=\s+[^a-z\s])"
    r"|\n|$)",
    re.DOTALL,
)
_MARKS = " \t\r\n.;!?\u3002\uff01\uff1f\uff1b"
# A lower-case "i" is often not the pronoun, so a verb must follow.
_VERBS = (
    "am|was|have|had|do|did|can|could|will|would|should|like|want|need|love|said|told|ask|mention|go|went|live|work"
)
_FIRST_PERSON = re.compile(
    r"(?<![\w.])(?:I(?![./]\w)|[Mm]e|ME|[Mm]y|MY|[Mm]ine|[Mm]yself)(?!\w)"
    rf"|(?<![\w.])i(?:['\u2019]|\s+(?:{_VERBS})(?!\w))"
    r"|我(?!们|国|校|院|市|省|军|方)|咱(?!们)|俺(?!们)|本人"
)
_ASKS_WHEN = re.compile(
    r"\b(?:when|(?:what|which)\s+(?:date|day|time|week|month|year)|how\s+long\s+ago)\b"
    r"|什么时[候间]|何时|哪[一]?[天日年]|哪个?(?:月|星期|周)|几[月号点]|周几|星期几|时间是",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query, prepared for the search statement."""

    text: str
    parts: tuple[str, ...]  # the whole query, then its sentences
    vectors: Mapping[str, Sequence[bytes]]  # the vectors of the parts, by each available model
    unrelated: Mapping[str, float]  # the cosine that each model gives to unrelated texts
    dates: Sequence[DateSpan]
    reduced: str  # why the model of its language gave no vector; empty if it did

    @property
    def terms(self) -> list[int]:
        """The terms of the whole query."""
        return terms(self.text[:READ])

    def arguments(self) -> tuple[object, ...]:
        """Return vectors, terms, names and dates, in the order of the statement's parameters."""
        vectors = [(n, model, each) for model, some in self.vectors.items() for n, each in enumerate(some)]
        found = [(n, term) for n, part in enumerate(self.parts) for term in terms(part[:READ])]
        return (
            [n for n, _, _ in vectors],
            [model for _, model, _ in vectors],
            [vector for _, _, vector in vectors],
            [self.unrelated[model] for _, model, _ in vectors],
            [n for n, _ in found],
            [term for _, term in found],
            names(self.text[:READ]),
            is_first_person(self.text),
            asks_when(self.text),
            [span.first for span in self.dates],
            [span.last for span in self.dates],
            [span.yearly for span in self.dates],
            [span.fade for span in self.dates],
        )


class QueryPreparer:
    """Prepares queries. The model of its language embeds a query, and so do previous models that still have vectors.

    Across languages, the cosines of these models mean nothing, so memories in other languages are found by words only.
    """

    def __init__(self, database: Database, embeddings: Embeddings) -> None:
        self._database = database
        self._embeddings = embeddings
        self._models: list[tuple[str, str]] = []  # (language, model) of the stored vectors
        self._models_until = 0.0

    async def prepare(self, question: str, asker: Hashable) -> PreparedQuery:
        """Prepare a query. Each `asker` has separate cache entries for query vectors."""
        _check_question(question)
        parts = (question, *sentences_of(question))
        language = language_of(question)
        own = self._embeddings.model(language)
        vectors: dict[str, list[bytes]] = {}
        for model in [own, *await self._former_models(language, own)]:
            found = None if model is None else await self._vectors(parts, model, asker)
            if model is not None and found is not None:
                vectors[model] = found
        unrelated = {model: self._embeddings.unrelated(model) for model in vectors}
        return PreparedQuery(
            question, parts, vectors, unrelated, await self._dates(question), self._degraded_reason(own, vectors)
        )

    async def _vectors(self, parts: Sequence[str], model: str, asker: Hashable) -> list[bytes] | None:
        """Return the vectors of all parts, or None. Does not try the sentences if the whole query gets no vector."""
        whole = await self._embeddings.query(parts[0], model, asker=asker)
        if whole is None:
            return None
        rest = await asyncio.gather(*(self._embeddings.query(part, model, asker=asker) for part in parts[1:]))
        found = [encode_halfvec(each) for each in (whole, *rest) if each is not None]
        return found if len(found) == len(parts) else None

    async def _former_models(self, language: Language, own: str | None) -> list[str]:
        """Return the available models, other than `own`, whose vectors memories of a language still have."""
        if time.monotonic() >= self._models_until:
            self._models_until = time.monotonic() + MODELS_FOR
            self._models = [(row["language"], row["model"]) for row in await self._database.all(sql("models"))]
        return [
            model for of, model in self._models if of == language and model != own and self._embeddings.ready(model)
        ]

    async def _dates(self, question: str) -> list[DateSpan]:
        """Return the dates in a query. Reads the database clock only if the query seems to have one."""
        if not find_dates(question, datetime.now(UTC)):
            return []
        return find_dates(question, await self._database.now())

    def _degraded_reason(self, own: str | None, vectors: Mapping[str, object]) -> str:
        if own is None or own in vectors:
            return ""
        state, why = self._embeddings.state
        return why if state == "reduced" else f"{own} returned no vector for this query"


def _check_question(question: object) -> None:
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput("the query is empty", next="Pass the text to search for.")
    if len(question) > MAX_QUESTION:
        raise InvalidInput(
            "the query is too long",
            why=f"it has {len(question)} characters; the limit is {MAX_QUESTION}",
            next="Shorten the query.",
        )


def sentences_of(question: str) -> list[str]:
    """Return the sentences of a query, at most four; none if it has only one."""
    sentences = [found.strip(_MARKS) for found in _SENTENCE.findall(question) if any(map(str.isalnum, found))]
    return sentences[:MAX_PARTS] if len(sentences) > 1 else []


def is_first_person(question: str) -> bool:
    """Whether a query is in the first person."""
    return _FIRST_PERSON.search(question) is not None


def asks_when(question: str) -> bool:
    """Whether a query asks for a time."""
    return _ASKS_WHEN.search(question) is not None
