"""The sections of the settings: every key with its default, its limits and its meaning."""

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

MIN_SECRET = 32
MODEL_KINDS = ("openai", "openrouter", "anthropic", "ollama", "scripted")
MODEL_FORMS = "openai:NAME, openrouter:NAME, anthropic:NAME, ollama:NAME, scripted:FILE, or offline"


def _number(value: object) -> object:
    # To pydantic true is 1.
    if isinstance(value, bool):
        raise ValueError("it should be a number")
    return value


def _list(value: object) -> object:
    return [item for item in map(str.strip, value.split(",")) if item] if isinstance(value, str) else value


def _present(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and not secret.get_secret_value():
        raise ValueError("it is empty")
    return secret


def _strong(secret: SecretStr | None) -> SecretStr | None:
    # Tenants' passwords are derived from it: whoever has one could guess a short secret, and so all the others.
    if secret is not None and len(secret.get_secret_value()) < MIN_SECRET:
        raise ValueError(f"it has fewer than {MIN_SECRET} characters; `openssl rand -hex 32` makes a good one")
    return secret


def _address(address: SecretStr | None) -> SecretStr | None:
    if address is None:
        return None
    text = address.get_secret_value().removeprefix("jdbc:")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("postgresql", "postgres") and text.startswith(f"{parts.scheme}://")
        # Several hosts are allowed, each with its port: urlsplit reads a port only where there is one host.
        usable = usable and ("," in parts.netloc or (parts.port or 0) >= 0)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("it should be like postgresql://user:password@host:5432/database")
    return SecretStr(text)


def _bus(address: str) -> str:
    if address in ("postgres:", "postgres"):
        return "postgres:"
    hosts = address.removeprefix("kafka://").rstrip("/").split(",")
    if not address.startswith("kafka://") or not all(
        re.fullmatch(r"[^\s,/@:]+(:\d{1,5})?|\[[0-9a-fA-F:]+\](:\d{1,5})?", host) for host in hosts
    ):
        raise ValueError("it should be `postgres:`, or like kafka://host:9092")
    return "kafka://" + ",".join(hosts)


def _model(name: str) -> str:
    if name != "offline" and not re.fullmatch(rf"({'|'.join(MODEL_KINDS)}):\S(.*\S)?", name):
        raise ValueError(f"it should be like {MODEL_FORMS}")
    return name


def _endpoint(address: str | None) -> str | None:
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        usable = usable and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("it should be like https://host:8000/v1, without a key in it")
    return address.rstrip("/")


def _price(price: str) -> str:
    model, _, numbers = price.rpartition("=")
    if not model.strip() or not re.fullmatch(r"\s*\d+(\.\d+)?(/\d+(\.\d+)?){1,2}\s*", numbers, re.ASCII):
        raise ValueError("it should be like openai:gpt-5=1.25/10 or openai:gpt-5=1.25/10/0.125")
    return price


def _root_path(path: str) -> str:
    parts = path.strip("/").split("/")
    if parts == [""]:
        return ""
    if not all(re.fullmatch(r"[\w.~-]+", part, re.ASCII) and part.strip(".") for part in parts):
        raise ValueError("it should be like /x or /x/y, of letters, digits and -._~")
    return "/" + "/".join(parts)


def _origin(address: str | None) -> str | None:
    if address is None:
        return None
    origin = re.fullmatch(r"(https?://[^\s/?#@]+)/?", address)
    if origin is None:
        raise ValueError("it should be like https://agents.example.com; a path is for server.root_path")
    return _endpoint(origin[1])


Whole = Annotated[int, BeforeValidator(_number)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Count = Annotated[Whole, Field(ge=1)]
Seconds = Annotated[Number, Field(gt=0)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_list)]
Secret = Annotated[SecretStr | None, AfterValidator(_present)]
StrongSecret = Annotated[SecretStr | None, AfterValidator(_strong)]
Address = Annotated[SecretStr | None, AfterValidator(_address)]
ModelName = Annotated[Name, AfterValidator(_model)]
Price = Annotated[Name, AfterValidator(_price)]


class Section(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class DatabaseSettings(Section):
    """The PostgreSQL under the engine."""

    url: Address = Field(default=None, description="PostgreSQL to use; unset: an embedded server in the data folder")
    owner_url: Address = Field(
        default=None,
        description="login that owns the schema, for migrations, partitions and index builds; unset: `database.url`",
    )
    listen_url: Address = Field(
        default=None,
        description="login for notifications, where `database.url` leads to a pooler; unset: `database.url`",
    )
    tenancy: Literal["connection", "transaction"] = Field(
        default="connection",
        description="what carries the tenant: `connection`, or `transaction` for a pooler",
    )
    pool_size: Whole = Field(default=16, ge=1, le=1000, description="connections at most, 1 to 1000")
    statement_cache_size: Whole = Field(
        default=256, ge=0, description="prepared statements kept per connection; 0 for a pooler that does not know them"
    )
    connect_timeout: Seconds = Field(default=10, description="seconds to open a connection")
    host_timeout: Seconds = Field(default=5, description="seconds for each host where an address names several")
    acquire_timeout: Seconds = Field(default=10, description="seconds to wait for a free connection")
    statement_timeout: Seconds = Field(default=30, description="seconds for one statement")
    lock_timeout: Seconds = Field(
        default=5, description="seconds that a statement waits for rows that another transaction has locked"
    )
    login_connections: Count = Field(default=20, description="connections of a tenant's own login, at most")
    login_statement_timeout: Seconds = Field(
        default=30, description="seconds for one statement of a tenant's own login"
    )
    login_idle_timeout: Seconds = Field(default=300, description="seconds that a transaction of one may be idle")


class ServerSettings(Section):
    """The HTTP server."""

    host: Name = Field(
        default="127.0.0.1", description="address to listen on; other than loopback, every caller needs a key"
    )
    port: Whole = Field(default=4600, ge=0, le=65535, description="port to listen on; 0 picks a free one")
    root_path: Annotated[str, AfterValidator(_root_path)] = Field(
        default="", description="path under which a proxy serves the engine, such as `/x`"
    )
    public_url: Annotated[str | None, AfterValidator(_origin)] = Field(
        default=None, description="where clients reach the server, such as `https://agents.example.com`; see access.md"
    )
    require_key: bool = Field(default=False, description="ask for a key on loopback, too")
    allowed_hosts: Names = Field(default=(), description="further names that a request may give as Host")
    allowed_origins: Names = Field(default=(), description="further origins that a browser may call from")
    max_body_bytes: Count = Field(default=8 * 1024 * 1024, description="largest request body")
    head_timeout: Seconds = Field(default=10, description="seconds to receive a request line and its headers")
    body_timeout: Seconds = Field(default=30, description="seconds to receive a request body")
    min_body_rate: Count = Field(
        default=1000, description="bytes a second at which a body has to arrive, after its first 5 seconds"
    )
    request_timeout: Seconds = Field(default=60, description="seconds to answer a request")
    shutdown_grace: Number = Field(
        default=20, ge=0, description="seconds that running requests get to end when the server stops"
    )


class BusSettings(Section):
    """The log that agents and workers talk over."""

    url: Annotated[str, AfterValidator(_bus)] = Field(
        default="postgres:", description="where the log is: `postgres:`, or `kafka://host:9092,host:9092`"
    )
    partitions: Whole = Field(default=16, ge=1, le=1000, description="partitions of a topic unless said otherwise")
    retention_days: Count = Field(
        default=7, description="days that records are kept, and as long as a group needs them"
    )
    forget_groups_after_days: Count = Field(
        default=30, description="days after which a group that nobody reads with no longer keeps records"
    )
    max_record_bytes: Whole = Field(
        default=1_000_000, ge=1000, le=8_000_000, description="largest record, key and headers included, at most 8 MB"
    )
    lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=10, description="seconds after which a consumer that is not heard of loses its partitions"
    )
    batch: Whole = Field(default=500, ge=1, le=10_000, description="records that a consumer holds at most")
    batch_bytes: Count = Field(default=8_000_000, description="bytes of records that a consumer holds at most")
    max_attempts: Count = Field(default=10, description="attempts after which a record is a dead letter")
    max_failing: Seconds = Field(
        default=3600, description="seconds of failed attempts after which a record is a dead letter"
    )
    command_lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=30, description="seconds after which a command whose worker is not heard of is done by another"
    )
    keep_commands_days: Count = Field(default=30, description="days that finished commands are kept")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,30}$")] = Field(
        default="", description="what leads the names of topics and groups on a Kafka that several installations share"
    )
    replication: Whole = Field(
        default=-1, ge=-1, le=100, description="copies of the topics made on Kafka; -1: as the broker has it"
    )
    security_protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = Field(
        default="plaintext", description="how Kafka is reached"
    )
    sasl_mechanism: Name | None = Field(default=None, description="`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, …")
    sasl_username: Name | None = Field(default=None, description="user at Kafka")
    sasl_password: Secret = Field(default=None, description="password at Kafka")
    ssl_ca: Name | None = Field(default=None, description="file with the certificates that Kafka's is checked with")
    ssl_certificate: Name | None = Field(default=None, description="file with our certificate")
    ssl_key: Name | None = Field(default=None, description="file with its key")
    ssl_key_password: Secret = Field(default=None, description="password of that key")
    options: Names = Field(
        default=(), description="further settings of librdkafka, such as `client.rack=a`, separated by commas"
    )


Cosine = Annotated[Number, Field(ge=-1, le=1)]


class EmbeddingSettings(Section):
    """The model that turns text into vectors."""

    model: Name = Field(default="bge-small-en-v1.5-q", description="embedding model")
    dimensions: Whole = Field(default=384, ge=1, le=4000, description="length of its vectors, at most 4000")
    query_prefix: str = Field(
        default="Represent this sentence for searching relevant passages: ",
        description="what is put before a query, and never before a memory",
    )
    chinese_model: str = Field(
        default="bge-small-zh-v1.5-q",
        max_length=1000,
        description="embedding model for Chinese; empty: texts of every language go to `model`",
    )
    chinese_dimensions: Whole = Field(default=512, ge=1, le=4000, description="length of its vectors, at most 4000")
    chinese_query_prefix: str = Field(
        default="为这个句子生成表示以用于检索相关文章：",  # noqa: RUF001
        description="what is put before a Chinese query",
    )
    unrelated: Cosine = Field(
        default=0.42, description="cosine that `model` gives to texts with nothing in common: where the scale begins"
    )
    chinese_unrelated: Cosine = Field(default=0.32, description="the same of `chinese_model`")
    with_previous_turn: bool = Field(
        default=False,
        description="embed a short turn of a conversation together with the one before: finds more, embeds slower",
    )
    folder: Path | None = Field(
        default=None, description="folder with a folder for each model; looked at before the cache of fetched models"
    )
    fetch: bool = Field(default=True, description="fetch a model that is missing, once, when it is first needed")
    url: Name | None = Field(
        default=None, description="OpenAI-compatible endpoint to ask instead, such as `http://host:8000/v1`"
    )
    api_key: Secret = Field(default=None, description="key for that endpoint")
    timeout: Seconds = Field(default=30, description="seconds that the endpoint gets for one request")
    threads: Whole = Field(default=0, ge=0, le=256, description="texts embedded at once, in process; 0: one per core")
    cached_queries: Whole = Field(default=1000, ge=0, description="vectors of queries that are kept")


class StorageSettings(Section):
    """Where memories are stored, as the `memory` block names it; `database.url` goes before it."""

    type: Literal["postgresql"] = Field(default="postgresql", description="kind of storage")
    url: Address = Field(
        default=None,
        description="PostgreSQL where `database.url` is unset; `jdbc:postgresql://…` and `PGVECTOR_URL` are accepted",
    )
    username: Name | None = Field(
        default=None, description="user for `memory.storage.url`; `PGVECTOR_USER` is accepted"
    )
    password: Secret = Field(
        default=None, description="password for `memory.storage.url`; `PGVECTOR_PASSWORD` is accepted"
    )


class ShortTermSettings(Section):
    """Memories of a session."""

    ttl_minutes: Count = Field(default=60, description="minutes until a session's memory expires")
    max_memories: Count = Field(default=100, description="memories that a session keeps")


class LongTermSettings(Section):
    """Memories that outlive a session."""

    min_importance: Number = Field(
        default=0.5, ge=0, le=1, description="importance, 0 to 1, from which a memory is recalled unless asked for"
    )
    max_results: Whole = Field(default=10, ge=1, le=1000, description="memories that a search returns, at most 1000")


class KnowledgeSettings(Section):
    """Documents."""

    chunk_size: Count = Field(
        default=512, description="tokens in a piece of a document; used by knowledge ingestion, not yet available"
    )
    overlap: Whole = Field(
        default=50,
        ge=0,
        validate_default=True,
        description="tokens that a piece shares with the one before, fewer than `chunk_size`; "
        "used by knowledge ingestion, not yet available",
    )

    @field_validator("overlap")
    @classmethod
    def _below_chunk_size(cls, overlap: int, info: ValidationInfo) -> int:
        chunk_size = info.data.get("chunk_size", overlap + 1)
        if overlap >= chunk_size:
            raise ValueError(f"it should be less than memory.knowledge.chunk_size, which is {chunk_size}")
        return overlap


class RetentionSettings(Section):
    """How memories of users and agents fade."""

    half_life_days: Annotated[Number, Field(gt=0)] = Field(
        default=90, description="days after which half is left of a memory of importance 0.5 that is never used"
    )
    faded_below: Number = Field(
        default=0.02, ge=0, lt=1, description="what is left of a memory when it is found no more, and deleted"
    )
    sweep_minutes: Annotated[Number, Field(gt=0)] = Field(
        default=10, description="minutes between two sweeps, which delete what has expired or faded"
    )


Weight = Annotated[Number, Field(ge=0, le=10)]


class ScoringSettings(Section):
    """What a memory's score is made of: weights of the parts that are added to the cosine."""

    words: Weight = Field(default=0.1, description="words that question and memory share")
    english_length: Count = Field(default=24, description="distinct words from which an English memory counts as long")
    chinese_length: Count = Field(default=48, description="the same for characters and pairs of a Chinese one")
    neighbours: Weight = Field(default=0.2, description="the better of the turns before and after, in a conversation")
    around: Weight = Field(default=0.15, description="the best of two turns before to two after")
    conversation: Weight = Field(
        default=0.3, description="the best turn of the conversation; where there is none, the best memory of the day"
    )
    author: Weight = Field(default=0.12, description="said by the one whom the question names")
    date: Weight = Field(default=0.25, description="said when the question asks about")
    when: Weight = Field(default=0.05, description="tells a time, where the question asks when")
    recency: Weight = Field(default=0.05, description="what is left of the memory: see `memory.retention`")
    importance: Weight = Field(default=0.1, description="its importance")
    trust: Weight = Field(default=0.1, description="trust in who said it")
    pool_from: Count = Field(
        default=2000, description="memories of an owner from which the best by vector and by words alone are weighed"
    )
    pool: Whole = Field(default=50, ge=10, le=10_000, description="how many of each are weighed then")
    index_from: Count = Field(
        default=10_000, description="organizational memories of a tenant from which they get a vector index"
    )


class MemorySettings(Section):
    """What agents remember."""

    embedding: EmbeddingSettings = EmbeddingSettings()
    storage: StorageSettings = StorageSettings()
    short_term: ShortTermSettings = ShortTermSettings()
    long_term: LongTermSettings = LongTermSettings()
    retention: RetentionSettings = RetentionSettings()
    scoring: ScoringSettings = ScoringSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()


class LlmSettings(Section):
    """The language models that agents think with."""

    model: ModelName = Field(
        default="offline",
        description="language model: `openai:NAME`, `openrouter:NAME`, `anthropic:NAME`, `ollama:NAME`, "
        "`scripted:FILE`, or `offline`, which needs no key",
    )
    fallbacks: Annotated[tuple[ModelName, ...], BeforeValidator(_list)] = Field(
        default=(), description="models that are asked in this order when the one before cannot answer"
    )
    allowed_models: Names = Field(
        default=(), description="models that stored agents may name, such as `ollama:*`; empty: any of a provider"
    )
    base_url: Annotated[str | None, AfterValidator(_endpoint)] = Field(
        default=None,
        description="where the provider of `llm.model` is reached, such as `http://host:8000/v1`; "
        "it gets `llm.api_key` and no other key",
    )
    api_key: Secret = Field(default=None, description="key for the provider of `llm.model`")
    openai_api_key: Secret = Field(default=None, description="key for OpenAI; `OPENAI_API_KEY` is accepted")
    openrouter_api_key: Secret = Field(default=None, description="key for OpenRouter; `OPENROUTER_API_KEY` is accepted")
    anthropic_api_key: Secret = Field(default=None, description="key for Anthropic; `ANTHROPIC_API_KEY` is accepted")
    first_token_timeout: Seconds = Field(default=60, description="seconds until a model begins to answer")
    token_timeout: Seconds = Field(default=30, description="seconds between two pieces of its answer")
    timeout: Seconds = Field(default=600, description="seconds for a whole answer, retries and fallbacks included")
    attempts: Whole = Field(default=3, ge=1, le=20, description="times that a model is asked before the next one is")
    concurrency: Whole = Field(default=100, ge=1, le=10_000, description="answers that a process waits for at once")
    context_tokens: Whole = Field(default=32_000, ge=1000, description="tokens that the model can take in")
    max_output_tokens: Count = Field(default=4096, description="tokens that an answer may have")
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = Field(
        default=None, description="how free answers are, 0 to 2; unset: as the model has it"
    )
    tokenizer: Path | None = Field(
        default=None, description="`tokenizer.json` that counts the model's tokens, where we know none for it"
    )
    prices: Annotated[tuple[Price, ...], BeforeValidator(_list)] = Field(
        default=(),
        description="what a million tokens cost, in and out (and in from the cache), such as `openai:gpt-5=1.25/10`",
    )


class AgentSettings(Section):
    """What a turn of an agent may take; an agent that a tenant stores never takes more than the first four."""

    max_steps: Count = Field(default=20, description="questions to the model in a turn")
    max_tokens: Count = Field(default=200_000, description="tokens of a turn, in and out")
    max_seconds: Seconds = Field(default=600, description="seconds that a turn may take")
    max_cost: Number = Field(default=0, ge=0, description="cost of a turn by `llm.prices`; 0: no limit")
    lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=30, description="seconds after which a turn whose process is not heard of is taken over by another"
    )
    concurrency: Count = Field(default=100, description="turns that a process works on at once")
    tool_timeout: Seconds = Field(default=120, description="seconds that a tool may take")
    max_output_bytes: Count = Field(default=64_000, description="bytes of a tool's output that the model is shown")
    watch_bytes: Count = Field(
        default=1_000_000,
        description="bytes of events that wait in memory for someone who watches slowly; the rest is read later",
    )
    max_message_bytes: Count = Field(default=1_000_000, description="largest message to an agent")
    recall: bool = Field(default=True, description="recall memories before each turn")
    keep_runs_days: Count = Field(
        default=30,
        description="days that runs are kept after their end, with their steps; at least `bus.retention_days`",
    )
    tenants: Names = Field(default=(), description="further tenants whose agents `holdfast up` serves, beside its own")


class ExecutionSettings(Section):
    """How tools are run."""

    allow_private: Names = Field(
        default=(),
        description="private addresses that tools may call: names, addresses or networks, each with an optional port",
    )
    max_response_bytes: Count = Field(default=10_000_000, description="bytes of a back end's answer that are read")
    connections: Count = Field(default=100, description="connections to back ends that a process has at most")
    functions: Names = Field(default=(), description="modules whose functions registered tools may name: `module:name`")
    secret_key: StrongSecret = Field(
        default=None, description="what the secrets of back ends are sealed with; unset: the installation's secret"
    )
    keep_days: Count = Field(default=30, description="days that calls of tools outside of turns are kept")


class GatewaySettings(Section):
    """JSON-RPC and MCP in front of tools and services."""

    mcp: bool = Field(default=True, description="serve MCP on `/mcp`, `/mcp/sse` and `/mcp/message`")
    legacy_envelope: bool = Field(
        default=True, description="take the envelope before JSON-RPC (`host`, `service`, `action`, `version`) on `/rpc`"
    )
    timeout: Seconds = Field(default=60, description="seconds that a call of a tool may take")
    max_result_bytes: Count = Field(default=1_000_000, description="bytes of a tool's result that a caller is given")
    max_batch: Count = Field(default=100, description="calls in one JSON-RPC batch")
    batch_parallel: Count = Field(default=10, description="calls of a batch that are made at once")
    listed_tools: Whole = Field(
        default=100,
        ge=0,
        description="tools that a client is told of; where it sees more, it finds the others by `search_tools`",
    )
    session_minutes: Count = Field(
        default=60, description="minutes after which an MCP session of an older client that is not used ends"
    )
    state_minutes: Count = Field(default=15, description="minutes that a client has to answer what a tool asks it")
