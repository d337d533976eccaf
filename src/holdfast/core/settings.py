"""The sections of the settings: each key with its default, its range and its description."""

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
)

MIN_SECRET = 32
MODEL_KINDS = ("openai", "openrouter", "anthropic", "ollama", "scripted")
MODEL_FORMS = "openai:NAME, openrouter:NAME, anthropic:NAME, ollama:NAME, scripted:FILE, or offline"


def _check_number(value: object) -> object:
    # Pydantic accepts true as 1.
    if isinstance(value, bool):
        raise ValueError("it should be a number")
    return value


def _split_list(value: object) -> object:
    return [item for item in map(str.strip, value.split(",")) if item] if isinstance(value, str) else value


def _check_present(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and not secret.get_secret_value():
        raise ValueError("it is empty")
    return secret


def _check_strength(secret: SecretStr | None) -> SecretStr | None:
    # Tenants' passwords are derived from it: with one password, a tenant could guess a short secret by brute force.
    if secret is not None and len(secret.get_secret_value()) < MIN_SECRET:
        raise ValueError(f"it has fewer than {MIN_SECRET} characters; `openssl rand -hex 32` generates a strong one")
    return secret


def _check_database_url(address: SecretStr | None) -> SecretStr | None:
    if address is None:
        return None
    text = address.get_secret_value().removeprefix("jdbc:")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("postgresql", "postgres") and text.startswith(f"{parts.scheme}://")
        # A URL may name several hosts, each with a port. urlsplit parses the port only if there is one host.
        usable = usable and ("," in parts.netloc or (parts.port or 0) >= 0)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("it should be like postgresql://user:password@host:5432/database")
    return SecretStr(text)


def _check_bus_url(address: str) -> str:
    if address in ("postgres:", "postgres"):
        return "postgres:"
    hosts = address.removeprefix("kafka://").rstrip("/").split(",")
    if not address.startswith("kafka://") or not all(
        re.fullmatch(r"[^\s,/@:]+(:\d{1,5})?|\[[0-9a-fA-F:]+\](:\d{1,5})?", host) for host in hosts
    ):
        raise ValueError("it should be `postgres:`, or like kafka://host:9092")
    return "kafka://" + ",".join(hosts)


def _check_model(name: str) -> str:
    if name != "offline" and not re.fullmatch(rf"({'|'.join(MODEL_KINDS)}):\S(.*\S)?", name):
        raise ValueError(f"it should be like {MODEL_FORMS}")
    return name


def _check_endpoint(address: str | None) -> str | None:
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        usable = usable and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("it should be like https://host:8000/v1, without an API key")
    return address.rstrip("/")


def _check_price(price: str) -> str:
    model, _, numbers = price.rpartition("=")
    if not model.strip() or not re.fullmatch(r"\s*\d+(\.\d+)?(/\d+(\.\d+)?){1,2}\s*", numbers, re.ASCII):
        raise ValueError("it should be like openai:gpt-5=1.25/10 or openai:gpt-5=1.25/10/0.125")
    return price


def _check_root_path(path: str) -> str:
    parts = path.strip("/").split("/")
    if parts == [""]:
        return ""
    if not all(re.fullmatch(r"[\w.~-]+", part, re.ASCII) and part.strip(".") for part in parts):
        raise ValueError("it should be like /x or /x/y, with letters, digits and -._~")
    return "/" + "/".join(parts)


def _check_origin(address: str | None) -> str | None:
    if address is None:
        return None
    origin = re.fullmatch(r"(https?://[^\s/?#@]+)/?", address)
    if origin is None:
        raise ValueError(
            "it should be like https://agents.example.com, without a path; set server.root_path for a path"
        )
    return _check_endpoint(origin[1])


Whole = Annotated[int, BeforeValidator(_check_number)]
Number = Annotated[float, BeforeValidator(_check_number), Field(allow_inf_nan=False)]
Count = Annotated[Whole, Field(ge=1)]
Seconds = Annotated[Number, Field(gt=0)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_split_list)]
Folders = Annotated[tuple[Path, ...], BeforeValidator(_split_list)]
Secret = Annotated[SecretStr | None, AfterValidator(_check_present)]
StrongSecret = Annotated[SecretStr | None, AfterValidator(_check_strength)]
Address = Annotated[SecretStr | None, AfterValidator(_check_database_url)]
ModelName = Annotated[Name, AfterValidator(_check_model)]
OptionalModelName = Annotated[str, AfterValidator(lambda name: _check_model(name) if name else name)]
Price = Annotated[Name, AfterValidator(_check_price)]
HttpAddress = Annotated[str | None, AfterValidator(_check_endpoint)]


class SettingsSection(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class DatabaseSettings(SettingsSection):
    """The PostgreSQL database of the engine."""

    url: Address = Field(
        default=None,
        description="PostgreSQL server to use; if unset, the engine starts an embedded server in the data folder",
    )
    owner_url: Address = Field(
        default=None,
        description="login that owns the schema, for migrations, partitions and index builds; if unset, `database.url`",
    )
    listen_url: Address = Field(
        default=None,
        description="direct login for notifications, if `database.url` points to a pooler; if unset, `database.url`",
    )
    tenancy: Literal["connection", "transaction"] = Field(
        default="connection",
        description="how the tenant is set: per `connection`, or per `transaction`, for a pooler that shares sessions",
    )
    pool_size: Whole = Field(
        default=16, ge=1, le=1000, description="maximum number of connections in the pool, 1 to 1000"
    )
    statement_cache_size: Whole = Field(
        default=256,
        ge=0,
        description="prepared statements cached per connection; 0 for a pooler that does not support them",
    )
    connect_timeout: Seconds = Field(default=10, description="timeout for opening a connection, in seconds")
    host_timeout: Seconds = Field(
        default=5, description="timeout for each host if the URL names several hosts, in seconds"
    )
    acquire_timeout: Seconds = Field(
        default=10, description="timeout for getting a connection from the pool, in seconds"
    )
    statement_timeout: Seconds = Field(default=30, description="timeout of a statement, in seconds")
    lock_timeout: Seconds = Field(default=5, description="maximum time that a statement waits for a lock, in seconds")
    login_connections: Count = Field(default=20, description="maximum number of connections of a tenant's login")
    login_statement_timeout: Seconds = Field(
        default=30, description="timeout of a statement of a tenant's login, in seconds"
    )
    login_idle_timeout: Seconds = Field(
        default=300, description="timeout of an idle transaction of a tenant's login, in seconds"
    )


class ServerSettings(SettingsSection):
    """The HTTP server."""

    host: Name = Field(
        default="127.0.0.1",
        description="address to listen on; on any address other than loopback, every caller needs an API key or a "
        "token",
    )
    port: Whole = Field(default=4600, ge=0, le=65535, description="port to listen on; 0 selects a free port")
    root_path: Annotated[str, AfterValidator(_check_root_path)] = Field(
        default="", description="path prefix under which a reverse proxy serves the engine, such as `/x`"
    )
    public_url: Annotated[str | None, AfterValidator(_check_origin)] = Field(
        default=None,
        description="public URL of the server, such as `https://agents.example.com`; see [access.md](access.md)",
    )
    require_key: bool = Field(default=False, description="require an API key or a token on loopback, too")
    allowed_hosts: Names = Field(default=(), description="additional host names to accept in the `Host` header")
    allowed_origins: Names = Field(default=(), description="additional origins to accept in the `Origin` header")
    max_body_bytes: Count = Field(default=8 * 1024 * 1024, description="maximum size of a request body, in bytes")
    head_timeout: Seconds = Field(
        default=10, description="timeout for receiving the request line and the headers, in seconds"
    )
    body_timeout: Seconds = Field(default=30, description="timeout for receiving a request body, in seconds")
    min_body_rate: Count = Field(
        default=1000,
        description="minimum average rate of a request body after its first 5 seconds, in bytes per second",
    )
    request_timeout: Seconds = Field(default=60, description="timeout of a request, in seconds")
    shutdown_grace: Number = Field(
        default=20, ge=0, description="time for running requests to finish when the server stops, in seconds"
    )


class BusSettings(SettingsSection):
    """The log: topics, consumer groups, commands and Kafka."""

    url: Annotated[str, AfterValidator(_check_bus_url)] = Field(
        default="postgres:", description="where the log is: `postgres:`, or `kafka://host:9092,host:9092`"
    )
    partitions: Whole = Field(default=16, ge=1, le=1000, description="default number of partitions of a topic")
    retention_days: Count = Field(
        default=7,
        description="days to keep records; records that an active consumer group has not read are kept longer",
    )
    forget_groups_after_days: Count = Field(
        default=30,
        description="days without a consumer after which a consumer group no longer delays the deletion of records",
    )
    max_record_bytes: Whole = Field(
        default=1_000_000,
        ge=1000,
        le=8_000_000,
        description="maximum size of a record with its key and headers, in bytes; at most 8 MB",
    )
    lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=10, description="seconds after which a consumer that does not renew its lease loses its partitions"
    )
    batch: Whole = Field(
        default=500, ge=1, le=10_000, description="maximum number of records that a consumer holds in memory"
    )
    batch_bytes: Count = Field(
        default=8_000_000, description="maximum size of the records that a consumer holds in memory, in bytes"
    )
    max_attempts: Count = Field(default=10, description="failed attempts after which a record becomes a dead letter")
    max_failing: Seconds = Field(
        default=3600, description="seconds since the first failed attempt after which a record becomes a dead letter"
    )
    command_lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=30,
        description="seconds after which another worker takes over a command whose worker does not renew its lease",
    )
    keep_commands_days: Count = Field(default=30, description="days to keep finished commands")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,30}$")] = Field(
        default="",
        description="prefix of the names of topics and consumer groups, for a Kafka cluster that several "
        "installations share",
    )
    replication: Whole = Field(
        default=-1,
        ge=-1,
        le=100,
        description="replication factor of the topics that the engine creates in Kafka; -1: the broker's default",
    )
    security_protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = Field(
        default="plaintext",
        description="security protocol for Kafka: `plaintext`, `ssl`, `sasl_plaintext` or `sasl_ssl`",
    )
    sasl_mechanism: Name | None = Field(
        default=None, description="SASL mechanism for Kafka: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, …"
    )
    sasl_username: Name | None = Field(default=None, description="SASL user name for Kafka")
    sasl_password: Secret = Field(default=None, description="SASL password for Kafka")
    ssl_ca: Name | None = Field(
        default=None, description="file with the CA certificates that verify the certificate of the broker"
    )
    ssl_certificate: Name | None = Field(default=None, description="file with the client certificate")
    ssl_key: Name | None = Field(default=None, description="file with the private key of the client certificate")
    ssl_key_password: Secret = Field(default=None, description="password of the private key")
    options: Names = Field(
        default=(), description="additional librdkafka settings, such as `client.rack=a`, separated by commas"
    )


class LlmSettings(SettingsSection):
    """The language models of agents."""

    model: ModelName = Field(
        default="offline",
        description="language model: `openai:NAME`, `openrouter:NAME`, `anthropic:NAME`, `ollama:NAME`, "
        "`scripted:FILE`, or `offline`, which needs no API key",
    )
    fallbacks: Annotated[tuple[ModelName, ...], BeforeValidator(_split_list)] = Field(
        default=(), description="models to call, in this order, if the previous one fails"
    )
    allowed_models: Names = Field(
        default=(),
        description="models that stored agents may name besides `llm.model` and `llm.fallbacks`, such as "
        "`ollama:*`; if empty, every model except scripted ones",
    )
    base_url: HttpAddress = Field(
        default=None,
        description="base URL of the provider of `llm.model`, such as `http://host:8000/v1`; the engine sends "
        "`llm.api_key` to it and no other key",
    )
    api_key: Secret = Field(default=None, description="API key for the provider of `llm.model`")
    openai_api_key: Secret = Field(default=None, description="API key for OpenAI; also read from `OPENAI_API_KEY`")
    openrouter_api_key: Secret = Field(
        default=None, description="API key for OpenRouter; also read from `OPENROUTER_API_KEY`"
    )
    anthropic_api_key: Secret = Field(
        default=None, description="API key for Anthropic; also read from `ANTHROPIC_API_KEY`"
    )
    first_token_timeout: Seconds = Field(default=60, description="timeout for the first piece of an answer, in seconds")
    token_timeout: Seconds = Field(default=30, description="timeout between two pieces of an answer, in seconds")
    timeout: Seconds = Field(
        default=600, description="timeout of a whole answer, retries and fallbacks included, in seconds"
    )
    attempts: Whole = Field(default=3, ge=1, le=20, description="maximum number of attempts per model")
    concurrency: Whole = Field(
        default=100, ge=1, le=10_000, description="maximum number of concurrent model calls of a process"
    )
    context_tokens: Whole = Field(default=32_000, ge=1000, description="context window of the model, in tokens")
    max_output_tokens: Count = Field(default=4096, description="maximum number of tokens of an answer")
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = Field(
        default=None, description="sampling temperature, 0 to 2; if unset, the default of the model"
    )
    tokenizer: Path | None = Field(
        default=None, description="`tokenizer.json` file that counts the tokens of `llm.model`"
    )
    prices: Annotated[tuple[Price, ...], BeforeValidator(_split_list)] = Field(
        default=(),
        description="price of a million tokens: input, output and, optionally, cached input, such as "
        "`openai:gpt-5=1.25/10/0.125`",
    )


class AgentSettings(SettingsSection):
    """Agents and their runs. A stored agent cannot exceed the limits on steps, tokens, seconds and cost."""

    max_steps: Count = Field(default=20, description="maximum number of steps (model calls) of a run")
    max_tokens: Count = Field(default=200_000, description="maximum number of tokens of a run, input and output")
    max_seconds: Seconds = Field(
        default=600, description="timeout of a run, in seconds; restarts if another process takes over the run"
    )
    max_cost: Number = Field(default=0, ge=0, description="maximum cost of a run by `llm.prices`; 0: no limit")
    lease: Annotated[Seconds, Field(ge=0.2)] = Field(
        default=30,
        description="seconds after which another process takes over a run whose process does not renew its lease",
    )
    concurrency: Count = Field(default=100, description="maximum number of concurrent runs of a process")
    tool_timeout: Seconds = Field(
        default=120, description="timeout of a tool call, in seconds; a tool can have a shorter one"
    )
    max_output_bytes: Count = Field(
        default=64_000,
        description="maximum size of a tool's output in the prompt, in bytes; longer output is shortened",
    )
    watch_bytes: Count = Field(
        default=1_000_000,
        description="maximum size of the events that are queued in memory for a slow client, in bytes; the client "
        "gets the others from the database",
    )
    max_message_bytes: Count = Field(default=1_000_000, description="maximum size of a message to an agent, in bytes")
    recall: bool = Field(default=True, description="recall memories before each turn")
    keep_runs_days: Count = Field(
        default=30,
        description="days to keep finished runs and their steps; never fewer than `bus.retention_days`",
    )
    tenants: Names = Field(default=(), description="additional tenants whose agents `holdfast up` serves")


class SandboxSettings(SettingsSection):
    """Scripts, which run in the sandbox. The kernel enforces some limits for each process."""

    cpu_seconds: Count = Field(default=30, description="CPU time of each process of a script, in seconds")
    memory_mb: Count = Field(default=512, description="memory of a script, with all its processes, in megabytes")
    processes: Count = Field(default=64, description="maximum number of processes and threads of a script")
    files: Count = Field(default=1000, description="maximum number of files that a script may have in its work folder")
    disk_mb: Count = Field(default=64, description="size of a script's work folder, in megabytes")
    output_bytes: Count = Field(default=4_194_304, description="maximum output of a script, in bytes")
    network: bool = Field(
        default=False, description="let scripts open internet connections, also to addresses of this machine"
    )
    python: Path | None = Field(
        default=None,
        description="Python for scripts, such as that of a virtual environment; if unset, the engine's own",
    )
    node: Path | None = Field(default=None, description="Node.js for scripts; if unset, `node` of PATH")


class ExecutionSettings(SettingsSection):
    """How the engine calls tools and back ends."""

    allow_private: Names = Field(
        default=(),
        description="private addresses that tools may call: host names, IP addresses or networks, each with an "
        "optional port",
    )
    max_response_bytes: Count = Field(
        default=10_000_000, description="maximum size of a back end's response, in bytes; a larger response is an error"
    )
    connections: Count = Field(default=100, description="maximum number of connections of a process to back ends")
    functions: Names = Field(
        default=(), description="modules whose functions registered tools may name, as `module:name`"
    )
    commands: Names = Field(
        default=(),
        description="programs that sources may start as MCP servers, such as `node`: the exact first word of their "
        "commands; by default none",
    )
    folders: Folders = Field(
        default=(), description="folders that these programs may read, such as the one with their files"
    )
    writable_folders: Folders = Field(
        default=(), description="folders that the programs of all sources, of all tenants, may read and write"
    )
    secret_key: StrongSecret = Field(
        default=None, description="key that encrypts the secrets of back ends; if unset, the installation's secret"
    )
    pass_through: Names = Field(
        default=(),
        description="hosts of REST services to which sources may pass callers' own tokens, each with an optional port; "
        "by default none; see [identity.md](identity.md)",
    )
    keep_days: Count = Field(
        default=30, description="days to keep executions outside of turns, and records of the sandbox"
    )
    sandbox: SandboxSettings = SandboxSettings()


class ReloadSettings(SettingsSection):
    """How sources of tools are reloaded when their documents change."""

    check_seconds: Number = Field(
        default=30,
        ge=0,
        description="seconds between two checks of a source, unless the source has its own interval; 0 turns checks "
        "off; a change that an MCP server or a file announces is read at once",
    )
    folder: Path | None = Field(
        default=None, description="folder with documents that sources of the default tenant may name as `file:NAME`"
    )
    hold_suspicious: bool = Field(
        default=False,
        description="hold tools of sources with suspicious descriptions until somebody approves them, also when a "
        "source is added and when it follows its document",
    )


class GatewaySettings(SettingsSection):
    """The gateway for MCP and JSON-RPC clients."""

    mcp: bool = Field(default=True, description="serve MCP on `/mcp`, `/mcp/sse` and `/mcp/message`")
    legacy_envelope: bool = Field(
        default=True, description="accept the deprecated envelope (`host`, `service`, `action`, `version`) on `/rpc`"
    )
    timeout: Seconds = Field(default=60, description="maximum timeout of a tool call through the gateway, in seconds")
    max_result_bytes: Count = Field(default=1_000_000, description="maximum size of a tool's result, in bytes")
    max_batch: Count = Field(default=100, description="maximum number of calls in a JSON-RPC batch")
    batch_parallel: Count = Field(default=10, description="maximum number of calls of a batch that run concurrently")
    listed_tools: Whole = Field(
        default=100,
        ge=0,
        description="maximum number of tools in a list, besides the built-in ones; if there are more, the list "
        "has only the built-in tools, and the client finds the others with `search_tools`",
    )
    session_minutes: Count = Field(
        default=60, description="minutes of inactivity after which an MCP session of an older client ends"
    )
    state_minutes: Count = Field(default=15, description="minutes that a client has to answer a question of a tool")
