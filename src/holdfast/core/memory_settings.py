"""The settings of memory, documents, research and the graph."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from holdfast.core.settings import (
    Address,
    Count,
    Name,
    Number,
    OptionalModelName,
    Seconds,
    Secret,
    SettingsSection,
    Whole,
)

Cosine = Annotated[Number, Field(ge=-1, le=1)]
Weight = Annotated[Number, Field(ge=0, le=10)]


class EmbeddingSettings(SettingsSection):
    """The embedding models."""

    model: Name = Field(default="bge-small-en-v1.5-q", description="embedding model")
    dimensions: Whole = Field(
        default=384, ge=1, le=4000, description="dimensions of the vectors of `model`, at most 4000"
    )
    query_prefix: str = Field(
        default="Represent this sentence for searching relevant passages: ",
        description="prefix of queries; memories are embedded without it",
    )
    chinese_model: str = Field(
        default="bge-small-zh-v1.5-q",
        max_length=1000,
        description="embedding model for Chinese; if empty, `model` embeds texts of all languages",
    )
    chinese_dimensions: Whole = Field(
        default=512, ge=1, le=4000, description="dimensions of the vectors of `chinese_model`, at most 4000"
    )
    chinese_query_prefix: str = Field(
        default="为这个句子生成表示以用于检索相关文章：",  # noqa: RUF001
        description="prefix of Chinese queries",
    )
    unrelated: Cosine = Field(
        default=0.42,
        description="cosine similarity that `model` gives to unrelated texts; search subtracts it from each cosine",
    )
    chinese_unrelated: Cosine = Field(default=0.32, description="the same for `chinese_model`")
    with_previous_turn: bool = Field(
        default=False,
        description="embed a short turn of a conversation together with the previous turn: finds more, embeds slower",
    )
    folder: Path | None = Field(
        default=None, description="folder with one subfolder per model; searched before the cache of downloaded models"
    )
    fetch: bool = Field(default=True, description="download a missing model when it is first needed")
    url: Name | None = Field(
        default=None,
        description="OpenAI-compatible endpoint to use in place of a model in this process, such as "
        "`http://host:8000/v1`",
    )
    api_key: Secret = Field(default=None, description="API key for that endpoint")
    timeout: Seconds = Field(
        default=30, description="timeout of a request to that endpoint, retries included, in seconds"
    )
    threads: Whole = Field(
        default=0, ge=0, le=256, description="number of texts to embed concurrently in this process; 0: one per core"
    )
    cached_queries: Whole = Field(default=1000, ge=0, description="number of query vectors to cache")


class StorageSettings(SettingsSection):
    """The database under the names of the `memory` block; `database.url` has priority."""

    type: Literal["postgresql"] = Field(default="postgresql", description="type of storage")
    url: Address = Field(
        default=None,
        description="PostgreSQL to use if `database.url` is unset; accepts `jdbc:postgresql://…`; also read from "
        "`PGVECTOR_URL`",
    )
    username: Name | None = Field(
        default=None, description="user name for `memory.storage.url`; also read from `PGVECTOR_USER`"
    )
    password: Secret = Field(
        default=None, description="password for `memory.storage.url`; also read from `PGVECTOR_PASSWORD`"
    )


class ShortTermSettings(SettingsSection):
    """Session memories."""

    ttl_minutes: Count = Field(default=60, description="default TTL of a session's memory, in minutes")
    max_memories: Count = Field(default=100, description="maximum number of memories of a session")


class LongTermSettings(SettingsSection):
    """Long-term memory: the defaults of searches."""

    min_importance: Number = Field(
        default=0.5,
        ge=0,
        le=1,
        description="minimum importance, 0 to 1, of memories that a search returns, unless the search sets its "
        "own; does not apply to session memories",
    )
    max_results: Whole = Field(
        default=10, ge=1, le=1000, description="default number of memories that a search returns, at most 1000"
    )


class ResearchSettings(SettingsSection):
    """Research: answers from many documents, by many model calls. See [research.md](research.md)."""

    calls: Whole = Field(
        default=200, ge=0, le=100_000, description="model calls of a research, by default, and at most over HTTP"
    )
    tokens: Whole = Field(
        default=2_000_000,
        ge=0,
        le=10_000_000_000,
        description="tokens of a research, of prompts and answers together, by default, and at most over HTTP",
    )
    cost: Number = Field(
        default=0,
        ge=0,
        description="cost of a research by `llm.prices`, by default, and at most over HTTP; 0: no limit",
    )
    parallel: Whole = Field(
        default=4, ge=1, le=100, description="maximum number of concurrent model calls of a research"
    )
    concurrency: Count = Field(default=4, description="maximum number of concurrent research of a process")
    lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=30,
        description="seconds after which another process takes over research whose process does not renew its lease",
    )
    keep_days: Count = Field(default=90, description="days to keep research that has ended, with its report")


class KnowledgeSettings(SettingsSection):
    """Documents: how they are read and split into chunks. See [formats.md](formats.md)."""

    chunk_size: Count = Field(default=512, description="tokens per chunk of a document")
    overlap: Whole = Field(
        default=50,
        ge=0,
        validate_default=True,
        description="tokens that a chunk shares with the previous one, fewer than `chunk_size`",
    )
    max_file_mb: Count = Field(default=2048, description="maximum size of a document's file, in megabytes")
    max_pages: Count = Field(
        default=20_000,
        description="maximum number of pages or slides of a document; of sheets and text without pages, the number of "
        "portions of 64 kB",
    )
    parse_seconds: Seconds = Field(
        default=600,
        description="time for parsing a document, in seconds; the time in which it waits for the engine does not count",
    )
    parse_memory_mb: Annotated[Whole, Field(ge=128)] = Field(
        default=1024, description="memory of a process that parses documents, in megabytes"
    )
    readers: Whole = Field(
        default=0,
        ge=0,
        le=256,
        description="maximum number of processes that parse documents; 0: half as many as there are cores",
    )
    research: ResearchSettings = ResearchSettings()

    @field_validator("overlap")
    @classmethod
    def _check_below_chunk_size(cls, overlap: int, info: ValidationInfo) -> int:
        chunk_size = info.data.get("chunk_size", overlap + 1)
        if overlap >= chunk_size:
            raise ValueError(f"it should be less than memory.knowledge.chunk_size, which is {chunk_size}")
        return overlap


class RetentionSettings(SettingsSection):
    """How the memories of users and agents fade."""

    half_life_days: Annotated[Number, Field(gt=0)] = Field(
        default=90,
        description="days until the retention of a memory halves, for a memory of importance 0.5 that is never used",
    )
    faded_below: Number = Field(
        default=0.02,
        ge=0,
        lt=1,
        description="retention below which search no longer finds a memory and the engine deletes it",
    )
    sweep_minutes: Annotated[Number, Field(gt=0)] = Field(
        default=10, description="minutes between two sweeps, which delete expired and faded memories"
    )


class ScoringSettings(SettingsSection):
    """How search scores a memory: the weights of the parts that are added to the cosine similarity."""

    words: Weight = Field(default=0.1, description="weight of the words that query and memory share")
    english_length: Count = Field(
        default=24,
        description="distinct words above which an English memory counts as long: each word then counts less",
    )
    chinese_length: Count = Field(
        default=48, description="the same for a Chinese memory, in characters and pairs of characters"
    )
    neighbours: Weight = Field(
        default=0.2, description="weight of the better one of the turns before and after, in a conversation"
    )
    around: Weight = Field(default=0.15, description="weight of the best turn from two turns before to two turns after")
    conversation: Weight = Field(
        default=0.3,
        description="weight of the best turn of the conversation; without a conversation, of the best memory of "
        "the same day",
    )
    author: Weight = Field(default=0.12, description="weight of a memory whose author the query names")
    date: Weight = Field(default=0.25, description="weight of a memory from a time that the query names")
    when: Weight = Field(default=0.05, description="weight of a memory that mentions a time, if the query asks when")
    recency: Weight = Field(default=0.05, description="weight of the retention; see `memory.retention`")
    importance: Weight = Field(default=0.1, description="weight of the importance")
    trust: Weight = Field(default=0.1, description="weight of the trust in the source")
    pool_from: Count = Field(
        default=2000,
        description="number of memories of an owner above which search scores only candidates: the best by vector "
        "and by words",
    )
    pool: Whole = Field(
        default=50,
        ge=10,
        le=10_000,
        description="number of candidates by vector, and number by words; a search with a larger limit uses its limit",
    )
    index_from: Count = Field(
        default=10_000,
        description="minimum number of organizational memories, or of vectors of documents, of a tenant for a vector "
        "index",
    )


class KnowledgeScoringSettings(SettingsSection):
    """How search scores a chunk of a document: the weights of the parts that are added to the cosine similarity.

    The defaults were best, and flat around the best, on eight sets of questions, of which two are Chinese.
    """

    words: Weight = Field(
        default=0.05,
        description="weight of the words that query and chunk share; less than for memories, because a chunk has many",
    )
    chinese_words: Weight = Field(
        default=0.2,
        description="the same for a chunk in Chinese, Japanese or Korean, whose words are single characters",
    )
    english_length: Count = Field(
        default=60, description="distinct words above which an English chunk counts as long: each word then counts less"
    )
    chinese_length: Count = Field(
        default=96, description="the same for a Chinese chunk, in characters and pairs of characters"
    )
    title: Weight = Field(
        default=0.2,
        description="weight of a title that the query names; the more chunks have this title, the less it adds",
    )
    longest_titled: Whole = Field(
        default=32,
        ge=0,
        le=1000,
        description="number of chunks above which a title adds nothing: it stands for too much, such as `README`",
    )
    hop: Weight = Field(
        default=0.5,
        description="weight of the hop: from the ten best chunks, by an entity that the query does not name, to the "
        "document of this title or to other chunks that mention it; 0 for none",
    )
    mention: Weight = Field(default=0.6, description="the part of it for a chunk that only mentions the entity")
    hop_margin: Weight = Field(
        default=0.1, description="what the worst of the ten best chunks passes on; better ones pass on more"
    )
    rare: Whole = Field(
        default=10, ge=0, le=100, description="number of chunks that mention an entity above which it connects none"
    )
    exact_to: Count = Field(
        default=2000,
        description="number of chunks up to which search always compares all vectors; with more, it uses the vector "
        "index if that is faster",
    )
    pool: Whole = Field(
        default=50,
        ge=10,
        le=10_000,
        description="number of candidates by vector, and number by words; a search with a larger limit uses its limit",
    )
    frequent: Whole = Field(
        default=1000,
        ge=10,
        le=1_000_000,
        description="number of documents above which a word selects no candidates, and a sample tells its weight",
    )


class GraphSettings(SettingsSection):
    """The knowledge graph: whether a language model reads memories and documents, in addition to rules."""

    model: OptionalModelName = Field(
        default="", description="language model that reads for the graph, as `llm.model`; if empty, only rules do"
    )
    tokens_per_day: Whole = Field(
        default=0, ge=0, description="tokens that it may use for each tenant in a day (UTC); it never uses more"
    )


class MemorySettings(SettingsSection):
    """Memory: embedding, retention and search."""

    embedding: EmbeddingSettings = EmbeddingSettings()
    storage: StorageSettings = StorageSettings()
    short_term: ShortTermSettings = ShortTermSettings()
    long_term: LongTermSettings = LongTermSettings()
    retention: RetentionSettings = RetentionSettings()
    scoring: ScoringSettings = ScoringSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    knowledge_scoring: KnowledgeScoringSettings = KnowledgeScoringSettings()
    graph: GraphSettings = GraphSettings()
