import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from holdfast.core.config import KEYS, MASK, Config, load_config
from holdfast.core.errors import BadSetting
from holdfast.core.setting_sources import environment_name

Refusal = Callable[..., BadSetting]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, so that no file of the developer's is read."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def load(cwd: Path) -> Callable[..., Config]:
    def load(flags: dict[str, object] | None = None, toml: str = "", **environ: str) -> Config:
        if toml:
            (cwd / "holdfast.toml").write_text(toml, "utf-8")
        return load_config(flags, environ=environ, cwd=cwd)

    return load


@pytest.fixture
def refusal(load: Callable[..., Config]) -> Refusal:
    def refusal(flags: dict[str, object] | None = None, toml: str = "", **environ: str) -> BadSetting:
        with pytest.raises(BadSetting) as caught:
            load(flags, toml, **environ)
        return caught.value

    return refusal


Load = Callable[..., Config]


@pytest.mark.req("ENG-06")
def test_the_memory_block_has_the_defaults_of_its_specification(load: Load) -> None:
    memory = load().memory

    assert memory.embedding.model == "bge-small-en-v1.5-q"
    assert memory.embedding.dimensions == 384
    assert memory.embedding.query_prefix == "Represent this sentence for searching relevant passages: "
    assert memory.storage.type == "postgresql"
    assert (memory.short_term.ttl_minutes, memory.short_term.max_memories) == (60, 100)
    assert (memory.long_term.min_importance, memory.long_term.max_results) == (0.5, 10)
    assert (memory.knowledge.chunk_size, memory.knowledge.overlap) == (512, 50)


@pytest.mark.req("ENG-06")
def test_a_flag_goes_before_the_environment_before_the_file_before_the_default(load: Load, cwd: Path) -> None:
    toml = "[server]\nport = 1\nhost = 'file'\nroot_path = '/file'\n"
    environ = {"HOLDFAST_SERVER__PORT": "2", "HOLDFAST_SERVER__HOST": "environment"}

    config = load({"server.port": 3, "server.host": None}, toml, **environ)

    server = config.server
    assert (server.port, server.host, server.root_path, server.require_key) == (3, "environment", "/file", False)
    assert config.origin("server.port") == "flag"
    assert config.origin("server.host") == "environment HOLDFAST_SERVER__HOST"
    assert config.origin("server.root_path") == f"holdfast.toml {cwd / 'holdfast.toml'}"
    assert config.origin("server.require_key") == "default"


@pytest.mark.req("ENG-06")
def test_every_setting_can_be_given_by_its_environment_variable(load: Load) -> None:
    values = {row.key: row.value for row in load().describe()}
    fitting = {
        "secret": "x" * 32,
        "execution.secret_key": "x" * 32,
        "database.tenancy": "transaction",
        "server.require_key": "true",
        "server.public_url": "https://h",
        "access.issuers": '[{"issuer": "https://h"}]',
        "memory.storage.type": "postgresql",
        "memory.embedding.fetch": "false",
        "memory.knowledge.parse_memory_mb": "256",
        "memory.retention.faded_below": "0.5",
        "memory.scoring.pool": "10",
        "memory.knowledge_scoring.pool": "10",
        "memory.knowledge_scoring.frequent": "10",
        "memory.graph.model": "openai:gpt-5",
        "bus.url": "kafka://h:9092",
        "bus.max_record_bytes": "5000",
        "bus.security_protocol": "ssl",
        "llm.model": "openai:gpt-5",
        "llm.fallbacks": "ollama:qwen3,offline",
        "llm.base_url": "http://h:8000/v1",
        "audit.publish_url": "https://h/heads",
        "llm.context_tokens": "8000",
        "llm.temperature": "0.5",
        "llm.prices": "openai:gpt-5=1.25/10",
        "agents.recall": "false",
    }
    fitting = dict.fromkeys((key for key in KEYS.known if key.endswith("url")), "postgresql://h/db") | fitting
    environ = {
        environment_name(key): fitting.get(key, "1" if isinstance(values[key], int | float) else "x")
        for key in KEYS.known
        if key != "memory.knowledge.overlap"
    } | {"HOLDFAST_MEMORY__KNOWLEDGE__OVERLAP": "0"}

    config = load(**environ)

    assert {config.origin(key) for key in KEYS.known} == {f"environment {name}" for name in environ}


def test_the_file_takes_names_with_dashes_or_underscores(load: Load) -> None:
    toml = "[memory]\nshort-term.ttl-minutes = 5\nlong_term.max_results = 7\nembedding.query-prefix = ''"

    memory = load(toml=toml).memory

    assert (memory.short_term.ttl_minutes, memory.long_term.max_results, memory.embedding.query_prefix) == (5, 7, "")


def test_the_file_of_the_account_is_read_where_the_folder_has_none(load: Load, home: Path, tmp_path: Path) -> None:
    for folder, port in ((home / ".config", 1), (tmp_path / "xdg", 2)):
        (folder / "holdfast").mkdir(parents=True)
        (folder / "holdfast/holdfast.toml").write_text(f"server.port = {port}")

    assert load().server.port == 1
    assert load(XDG_CONFIG_HOME=str(tmp_path / "xdg")).server.port == 2
    assert load(XDG_CONFIG_HOME="relative").server.port == 1
    assert load(toml="server.host = 'x'").server.port == 4600


@pytest.mark.parametrize("name", ["HOLDFAST_DATABASE_URL", "HOLDFAST_DATABASE__URL"])
def test_the_database_address_is_known_by_two_names(load: Load, name: str) -> None:
    config = load(**{name: "postgres://h/db"})

    assert config.database.url is not None
    assert config.database.url.get_secret_value() == "postgres://h/db"
    assert config.origin("database.url") == f"environment {name}"


def test_an_empty_variable_counts_as_unset(load: Load) -> None:
    config = load(HOLDFAST_DATABASE_URL="", HOLDFAST_SERVER__PORT="", PGVECTOR_URL="")

    assert config == load()


@pytest.mark.parametrize(
    "name", ["HOLDFAST_SECRET_FILE", "HOLDFAST_DATABASE_URL_FILE", "HOLDFAST_DATABASE__OWNER_URL_FILE"]
)
def test_a_secret_can_lie_in_a_file(load: Load, cwd: Path, name: str) -> None:
    (cwd / "secret").write_text("postgresql://h/a-name-of-some-length\n")

    config = load(**{name: "secret"})

    secret = {
        "HOLDFAST_SECRET_FILE": config.secret,
        "HOLDFAST_DATABASE_URL_FILE": config.database.url,
        "HOLDFAST_DATABASE__OWNER_URL_FILE": config.database.owner_url,
    }[name]
    assert secret is not None
    assert secret.get_secret_value() == "postgresql://h/a-name-of-some-length"


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), (b"\n", "is empty"), (b"\xff", "not a file of UTF-8")]
)
def test_a_file_without_a_secret_is_refused_by_name(
    refusal: Refusal, cwd: Path, content: bytes | None, why: str
) -> None:
    if content is not None:
        (cwd / "secret").write_bytes(content)

    error = refusal(HOLDFAST_SECRET_FILE="secret")

    assert str(cwd / "secret") in str(error)
    assert why in str(error)
    assert error.details["origin"] == "environment HOLDFAST_SECRET_FILE"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HOLDFAST_SECRET", "HOLDFAST_SECRET_FILE"),
        ("HOLDFAST_DATABASE_URL", "HOLDFAST_DATABASE__URL"),
        ("HOLDFAST_DATABASE_URL", "HOLDFAST_DATABASE__URL_FILE"),
    ],
)
def test_a_setting_given_twice_in_the_environment_is_refused(refusal: Refusal, cwd: Path, one: str, other: str) -> None:
    (cwd / "x").write_text("x")

    error = refusal(**{one: "x", other: "x"})

    assert f"by environment {one} and by environment {other}" in str(error)


def test_a_setting_given_twice_in_the_file_is_refused(refusal: Refusal) -> None:
    error = refusal(toml="[server]\nroot-path = '/a'\nroot_path = '/b'")

    assert "server.root_path is set twice" in str(error)


@pytest.mark.req("ENG-06")
@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"flags": {"server.prot": 1}}, "server.port"),
        ({"HOLDFAST_SERVER_PORT": "1"}, "HOLDFAST_SERVER__PORT"),
        ({"HOLDFAST_PORT": "4601"}, "HOLDFAST_SERVER__PORT"),
        ({"HOLDFAST_DATABASE__URLS": "x"}, "HOLDFAST_DATABASE__URL"),
        ({"HOLDFAST_SERVER__PORT_FILE": "x"}, "HOLDFAST_SERVER__PORT"),
        ({"toml": "[memory.short-term]\nttl-minute = 1"}, "memory.short_term.ttl_minutes"),
        ({"toml": "[memroy.embedding]\nmodel = 'x'"}, "memory.embedding.model"),
        ({"toml": "port = 1"}, "server.port"),
        ({"toml": "server = 1"}, "server.host"),
        ({"toml": "[sever]"}, "server.host"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(refusal: Refusal, given: dict[str, str], nearest: str) -> None:
    error = refusal(**given)

    assert error.details["nearest"] == nearest
    assert f"Did you mean {nearest}?" in str(error)
    assert str(error.details["origin"]).partition(" ")[0] in ("flag", "environment", "holdfast.toml")


def test_variables_that_others_set_with_our_prefix_are_let_pass(load: Load) -> None:
    kubernetes = {
        "HOLDFAST_SERVICE_HOST": "10.0.0.1",
        "HOLDFAST_SERVICE_PORT": "4600",
        "HOLDFAST_SERVICE_PORT_HTTP": "4600",
        "HOLDFAST_PORT": "tcp://10.0.0.1:4600",
        "HOLDFAST_PORT_4600_TCP": "tcp://10.0.0.1:4600",
        "HOLDFAST_PORT_4600_TCP_ADDR": "10.0.0.1",
        "HOLDFAST_DB_SERVICE_HOST": "10.0.0.2",
        "HOLDFAST_DB_PORT": "tcp://10.0.0.2:5432",
    }

    config = load(**kubernetes, HOLDFAST_TEST_ANYTHING="1", HOLDFASTENER="1", PGVECTOR_ANYTHING="1")

    assert config == load()


@pytest.mark.req("ENG-06", "ENG-08")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("server.port", "http"),
        ("server.port", -1),
        ("server.port", 65536),
        ("server.port", True),
        ("server.port", 1.5),
        ("server.port", "9" * 10_000),
        ("server.port", "1\0"),
        ("server.host", ""),
        ("server.host", 5),
        ("server.host", "\ud83d"),
        ("server.root_path", "/x?y"),
        ("server.root_path", "/x/../y"),
        ("server.require_key", "perhaps"),
        ("server.allowed_hosts", [1]),
        ("server.allowed_hosts", ["a\0b"]),
        ("server.request_timeout", 0),
        ("server.request_timeout", math.nan),
        ("server.request_timeout", "inf"),
        ("server.shutdown_grace", -1),
        ("server.max_body_bytes", 0),
        ("database.tenancy", "none"),
        ("database.pool_size", 0),
        ("database.pool_size", 1001),
        ("database.connect_timeout", -5),
        ("memory.long_term.min_importance", 1.1),
        ("memory.knowledge.overlap", 512),
        ("memory.storage.type", "mysql"),
        ("llm.model", "gpt-5"),
        ("llm.model", "openai:"),
        ("llm.model", "offline:x"),
        ("llm.fallbacks", "openai:gpt-5,claude"),
        ("llm.base_url", "host:8000"),
        ("llm.base_url", "ftp://host/v1"),
        ("llm.base_url", "http://ann@host/v1"),
        ("llm.base_url", "http://host:99999/v1"),
        ("llm.prices", "openai:gpt-5"),
        ("llm.prices", "openai:gpt-5=1.25"),
        ("llm.prices", "openai:gpt-5=a/b"),
        ("llm.prices", "=1/2"),
        ("llm.attempts", 0),
        ("llm.temperature", 3),
        ("llm.token_timeout", 0),
        ("llm.context_tokens", 10),
        ("agents.max_steps", 0),
        ("agents.max_cost", -1),
        ("data", 5),
        ("data", "a\0b"),
        ("data", "~nobody-has-this-name/x"),
        ("tenant", {"a": 1}),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_key_value_and_origin(
    refusal: Refusal, key: str, value: object
) -> None:
    error = refusal({key: value})

    assert error.details["key"] == key
    assert error.details["origin"] == "flag"
    assert str(error).startswith(f"the setting {key} cannot be {error.details['value']}: ")
    assert str(error).isascii()
    assert len(str(error)) < 500


def test_a_default_that_another_setting_makes_unfit_is_refused_too(refusal: Refusal) -> None:
    error = refusal({"memory.knowledge.chunk_size": 20})

    assert error.details == {"key": "memory.knowledge.overlap", "origin": "default"}
    assert "memory.knowledge.chunk_size, which is 20" in str(error)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("secret", ""),
        ("secret", "hunter2\0"),
        ("secret", ["hunter2"]),
        ("database.url", "mysql://ann:hunter2@h/db"),
        ("database.url", "host=h password=hunter2"),
        ("database.url", "postgresql://ann:hunter2/x@h/db"),
        ("memory.storage.password", {"hunter2": 1}),
        ("llm.api_key", ["hunter2"]),
    ],
)
def test_a_secret_that_does_not_fit_is_refused_without_showing_it(refusal: Refusal, key: str, value: object) -> None:
    error = refusal({key: value})

    assert error.details == {"key": key, "origin": "flag"}
    assert "hunter2" not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__


@pytest.mark.parametrize(("toml", "line"), [("[server]\nport = \n", "line 2"), ("a\n", "line 1")])
def test_a_broken_file_is_refused_with_its_name_and_the_line(refusal: Refusal, cwd: Path, toml: str, line: str) -> None:
    error = refusal(toml=toml)

    assert str(cwd / "holdfast.toml") in str(error)
    assert line in str(error)


def test_a_file_that_cannot_be_read_is_refused_by_name(refusal: Refusal, cwd: Path) -> None:
    (cwd / "holdfast.toml").mkdir()

    error = refusal()

    assert f"{cwd / 'holdfast.toml'} cannot be read" in str(error)


@pytest.mark.parametrize(("given", "path"), [("", ""), ("/", ""), ("x", "/x"), ("/x/", "/x"), ("/x/y-z.1", "/x/y-z.1")])
def test_the_root_path_has_one_form(load: Load, given: str, path: str) -> None:
    assert load({"server.root_path": given}).server.root_path == path


def test_a_list_is_written_with_commas_or_as_a_list(load: Load) -> None:
    from_environment = load(HOLDFAST_SERVER__ALLOWED_HOSTS="a.example, b.example,")
    from_file = load(toml="[server]\nallowed-hosts = ['a.example', 'b.example']")

    assert from_environment.server.allowed_hosts == from_file.server.allowed_hosts == ("a.example", "b.example")


def test_a_relative_data_folder_starts_where_it_was_written(load: Load, cwd: Path, home: Path, tmp_path: Path) -> None:
    xdg = tmp_path / "xdg"
    (xdg / "holdfast").mkdir(parents=True)
    (xdg / "holdfast/holdfast.toml").write_text("data = 'there'")

    assert load({"data": "here"}).data == cwd / "here"
    assert load({"data": Path("~/mine")}).data == home / "mine"
    assert load(XDG_CONFIG_HOME=str(xdg)).data == xdg / "holdfast/there"
    assert load().data == home / ".local/share/holdfast"


@pytest.mark.req("ENG-06")
@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({"PGVECTOR_URL": "jdbc:postgresql://h:5432/db"}, "postgresql://h:5432/db"),
        (
            {"PGVECTOR_URL": "jdbc:postgresql://h:5432/db", "PGVECTOR_USER": "a@b", "PGVECTOR_PASSWORD": "p/:w"},
            "postgresql://a%40b:p%2F%3Aw@h:5432/db",
        ),
        ({"PGVECTOR_URL": "postgresql://ann:old@h/db", "PGVECTOR_PASSWORD": "new"}, "postgresql://ann:new@h/db"),
        ({"PGVECTOR_URL": "postgresql://h/db", "PGVECTOR_USER": "ann"}, "postgresql://ann@h/db"),
        ({"PGVECTOR_URL": "postgresql:///db?host=/run/pg"}, "postgresql:///db?host=/run/pg"),
        (
            {"PGVECTOR_URL": "postgresql://low/db", "HOLDFAST_MEMORY__STORAGE__URL": "postgresql://high/db"},
            "postgresql://high/db",
        ),
        (
            {
                "PGVECTOR_URL": "postgresql://low/db",
                "PGVECTOR_USER": "u",
                "HOLDFAST_DATABASE_URL": "postgresql://high/db",
            },
            "postgresql://high/db",
        ),
    ],
)
def test_the_database_is_that_of_the_memory_block_where_no_other_is_named(
    load: Load, environ: dict[str, str], address: str
) -> None:
    config = load(**environ)

    assert config.database.url is not None
    assert config.database.url.get_secret_value() == address


def test_a_derived_database_address_tells_what_it_came_from(load: Load) -> None:
    config = load(PGVECTOR_URL="postgresql://h/db")

    assert config.origin("database.url") == "memory.storage.url, environment PGVECTOR_URL"


@pytest.mark.req("ENG-06")
@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:hunter2@h:1/db?sslmode=require", f"postgresql://ann:{MASK}@h:1/db?sslmode=require"),
        ("postgresql://h1:1,h2:2/db?user=a&password=hunter2", f"postgresql://h1:1,h2:2/db?user=a&password={MASK}"),
        ("postgresql://h/db?p%61ssword=hunter2", f"postgresql://h/db?p%61ssword={MASK}"),
        ("postgresql://ann:1/hunter2@h/db", MASK),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=/run/pg"),
    ],
)
def test_an_address_is_shown_without_its_password(load: Load, address: str, shown: str) -> None:
    config = load(HOLDFAST_DATABASE_URL=address)

    row = next(row for row in config.describe() if row.key == "database.url")

    assert (row.value, row.origin) == (shown, "environment HOLDFAST_DATABASE_URL")
    assert "hunter2" not in repr(config)
    assert "hunter2" not in str(config.describe())


def test_a_description_has_every_setting_and_no_secret(load: Load) -> None:
    config = load({"secret": "hunter2" * 5, "memory.storage.password": "hunter2", "server.allowed_hosts": ("a",)})

    rows = {row.key: row.value for row in config.describe()}

    assert tuple(rows) == KEYS.known
    assert rows["secret"] == rows["memory.storage.password"] == MASK
    assert rows["server.allowed_hosts"] == ["a"]
    assert "hunter2" not in f"{rows} {config!r} {config}"


def test_a_loaded_config_cannot_be_changed(load: Load) -> None:
    config = load()

    with pytest.raises(ValidationError, match="frozen"):
        config.server.port = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_an_account_without_a_home_is_told_to_name_a_data_folder(
    refusal: Refusal, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)

    error = refusal()

    assert "HOLDFAST_DATA" in str(error)
    assert load(HOLDFAST_DATA="/x").data == Path("/x")


def test_the_process_environment_is_read_where_no_other_is_given(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "PGVECTOR_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOLDFAST_SERVER__PORT", "4700")
    monkeypatch.chdir(cwd)

    assert load_config().server.port == 4700


@pytest.mark.req("SAFE-03")
def test_a_secret_that_could_be_guessed_is_refused(refusal: Refusal) -> None:
    error = refusal(HOLDFAST_SECRET="changeme")

    assert "32 characters" in str(error)
    assert "changeme" not in str(error)


@pytest.mark.req("AGENT-03")
@pytest.mark.parametrize("provider", ["openai", "openrouter", "anthropic"])
def test_a_provider_s_key_is_known_by_its_usual_name(load: Load, provider: str) -> None:
    usual, ours = f"{provider.upper()}_API_KEY", f"HOLDFAST_LLM__{provider.upper()}_API_KEY"

    by_usual_name = load(**{usual: "sk-hunter2"})
    by_both = load(**{usual: "sk-low", ours: "sk-high"})

    assert getattr(by_usual_name.llm, f"{provider}_api_key").get_secret_value() == "sk-hunter2"
    assert by_usual_name.origin(f"llm.{provider}_api_key") == f"environment {usual}"
    assert getattr(by_both.llm, f"{provider}_api_key").get_secret_value() == "sk-high"
    assert "hunter2" not in repr(by_usual_name) + str(by_usual_name.describe())
