"""The configuration: all settings, and the source of each value.

A value comes from the first source that has it: flags, the environment, `holdfast.toml`, the default
(see `holdfast.core.setting_sources`). `Config` is frozen, records the source of each value, and never shows a secret.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, cast, get_args
from urllib.parse import SplitResult, quote, unquote, urlsplit

from pydantic import BaseModel, Field, PrivateAttr, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from holdfast.core.audit_settings import AuditSettings
from holdfast.core.errors import BadSetting
from holdfast.core.issuers import AccessSettings
from holdfast.core.limits import LimitSettings, QuotaSettings
from holdfast.core.memory_settings import MemorySettings
from holdfast.core.setting_sources import GivenValue, SettingKeys, gather, unknown_setting
from holdfast.core.settings import (
    AgentSettings,
    BusSettings,
    DatabaseSettings,
    ExecutionSettings,
    GatewaySettings,
    LlmSettings,
    Name,
    ReloadSettings,
    ServerSettings,
    SettingsSection,
    StrongSecret,
)

DEFAULT = "default"
MASK = "********"

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Row:
    """A setting for display: its JSON value, with secrets masked, and its source."""

    key: str
    value: str | int | float | bool | list[str] | list[dict[str, Any]] | None
    origin: str


class Config(SettingsSection):
    """Every setting of the engine."""

    data: Path = Field(
        default_factory=lambda: _home() / ".local/share/holdfast",
        description="data folder, for the embedded PostgreSQL and the generated secret",
    )
    tenant: Name = Field(default="default", description="tenant to use if none is named")
    secret: StrongSecret = Field(
        default=None,
        description="secret of the installation, which hashes API keys and derives the passwords of logins; if "
        "unset, the engine generates one and stores it in the data folder",
    )
    database: DatabaseSettings = DatabaseSettings()
    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    quotas: QuotaSettings = QuotaSettings()
    access: AccessSettings = AccessSettings()
    bus: BusSettings = BusSettings()
    memory: MemorySettings = MemorySettings()
    llm: LlmSettings = LlmSettings()
    agents: AgentSettings = AgentSettings()
    execution: ExecutionSettings = ExecutionSettings()
    sources: ReloadSettings = ReloadSettings()
    gateway: GatewaySettings = GatewaySettings()
    audit: AuditSettings = AuditSettings()

    @property
    def resource(self) -> str | None:
        """The public URL of the gateway, for clients and issuers; None if `server.public_url` is unset."""
        server = self.server
        return None if server.public_url is None else f"{server.public_url}{server.root_path}"

    _origins: dict[str, str] = PrivateAttr(default_factory=dict[str, str])

    def origin(self, key: str) -> str:
        """Return the source of a value: "flag", "environment NAME", "holdfast.toml PATH" or "default"."""
        return self._origins.get(key, DEFAULT)

    def with_origins(self, origins: Mapping[str, str]) -> Self:
        """Return a copy with the sources of the values."""
        config = self.model_copy()
        config._origins = dict(origins)
        return config

    def describe(self) -> list[Row]:
        """Return every setting with its value and source. Secrets are masked; in a URL, only the password is masked."""
        return [
            Row(key, _display_value(_value(self, key), is_address=key.endswith("url")), self.origin(key))
            for key, _ in fields(Config)
        ]


def load_config(
    flags: Mapping[str, object] | None = None, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Config:
    """Load the settings from all sources. A flag that is None counts as unset.

    Raises BadSetting, which names the key and its source, if a setting is unknown or invalid.
    """
    given = gather(
        KEYS,
        flags=flags or {},
        environ=os.environ if environ is None else environ,
        cwd=(cwd or Path.cwd()).absolute(),
        home=_home_if_any(),
    )
    for key, value in given.items():
        if any(_UNSTORABLE.search(text) for text in _iterate_texts(value.value)):
            _raise_bad_setting(key, given, "it contains a NUL byte or a lone surrogate")
    if "data" in given:
        given["data"] = _resolve_data_path(given)
    try:
        config = Config.model_validate(_nest(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = _key_of(first["loc"])
        within = tuple(map(str, first["loc"][key.count(".") + 1 :]))
        if first["type"] == "extra_forbidden":  # in an object: the sources check all other names
            raise unknown_setting(f"{key}.{within[-1]}", given[key].origin, OBJECTS[key]) from None
        _raise_bad_setting(key, given, first["msg"], within=within if key in OBJECTS else ())
    origins = {key: value.origin for key, value in given.items()}
    storage = config.memory.storage
    if config.database.url is None and storage.url is not None:
        url = _with_login(storage.url.get_secret_value(), storage.username, storage.password)
        database = config.database.model_copy(update={"url": SecretStr(url)})
        config = config.model_copy(update={"database": database})
        origins["database.url"] = f"memory.storage.url, {origins['memory.storage.url']}"
    return config.with_origins(origins)


def fields(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield the settings of a section and its subsections, by dotted key."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def object_type(field: FieldInfo) -> type[BaseModel] | None:
    """Return the type of the objects in a setting that is a list of objects, else None."""
    kind = next(iter(get_args(field.annotation)), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def is_secret(field: FieldInfo) -> bool:
    """Whether the setting, or a field of its objects, is a secret. A secret is masked and can be read from a file."""
    kind = object_type(field)
    return SecretStr in get_args(field.annotation) or (
        kind is not None and any(map(is_secret, kind.model_fields.values()))
    )


KEYS = SettingKeys(
    known=tuple(key for key, _ in fields(Config)),
    secret=frozenset(key for key, field in fields(Config) if is_secret(field)),
)
OBJECTS = {
    key: SettingKeys(tuple(f"{key}.{name}" for name in kind.model_fields), frozenset())
    for key, field in fields(Config)
    if (kind := object_type(field)) is not None
}


def _home() -> Path:
    home = _home_if_any()
    if home is None:
        raise BadSetting(
            "there is no data folder",
            why="the setting data is not set, and this account has no home folder",
            next="Set HOLDFAST_DATA to a folder that this account can write to.",
            key="data",
            origin=DEFAULT,
        )
    return home


def _home_if_any() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def _resolve_data_path(given: Mapping[str, GivenValue]) -> GivenValue:
    data = given["data"]
    if not isinstance(data.value, str | Path):
        _raise_bad_setting("data", given, "it should be a path")
    try:
        path = data.folder / Path(data.value).expanduser()
    except RuntimeError:
        _raise_bad_setting("data", given, "the home folder in it does not exist")
    return GivenValue(path, data.origin, data.folder)


def _nest(given: Mapping[str, GivenValue]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in given.items():
        *sections, name = key.split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = value.value
    return tree


def _iterate_texts(value: object) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list | tuple):
        for item in cast(list[object], value):
            yield from _iterate_texts(item)
    elif isinstance(value, dict):
        for item in cast(dict[object, object], value).items():
            yield from _iterate_texts(item)


def _key_of(location: tuple[int | str, ...]) -> str:
    path = [str(part) for part in location]
    return next(key for n in range(len(path), 0, -1) if (key := ".".join(path[:n])) in KEYS.known)


def _raise_bad_setting(key: str, given: Mapping[str, GivenValue], why: str, *, within: Sequence[str] = ()) -> NoReturn:
    """Raise BadSetting for a value. In a list of objects, `within` is the index of the object and the field."""
    source = given.get(key)
    origin = source.origin if source else DEFAULT
    why = why.removeprefix("Value error, ").replace("Input should", "it should")
    if within:
        why = f"{''.join(f'{name} of ' for name in within[1:2])}entry {int(within[0]) + 1}: {why}"
    details = {"key": key, "origin": origin}
    what = f"the setting {key} is invalid"
    if source and key not in KEYS.secret:
        value = ascii(source.value)
        details["value"] = value if len(value) <= 100 else f"{value[:97]}..."
        what = f"the setting {key} cannot be {details['value']}"
    raise BadSetting(
        what,
        why=f"{why} ({origin})",
        next="Correct it or remove it; docs/settings.md lists all settings.",
        **details,
    ) from None


def _value(config: Config, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _display_value(value: Any, *, is_address: bool) -> Any:
    if isinstance(value, SecretStr):
        return _mask_password(value.get_secret_value()) if is_address else MASK
    if isinstance(value, BaseModel):
        given = {name: getattr(value, name) for name in type(value).model_fields if name in value.model_fields_set}
        return {name: _display_value(item, is_address=False) for name, item in given.items()}
    if isinstance(value, tuple):
        return [_display_value(item, is_address=False) for item in cast(tuple[object, ...], value)]
    return str(value) if isinstance(value, Path) else value


def _mask_password(address: str) -> str:
    parts = urlsplit(address)
    # An @ after the host belongs to a password with a character that should have been percent-encoded.
    if "@" in parts.path + parts.query + parts.fragment:
        return MASK
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    query = "&".join(
        f"{name}={MASK}" if "password" in unquote(name).lower() else parameter
        for parameter in parts.query.split("&")
        for name in [parameter.partition("=")[0]]
    )
    return _join_url(parts._replace(netloc=f"{user}{colon}{MASK if colon else ''}{at}{host}", query=query))


def _with_login(address: str, username: str | None, password: SecretStr | None) -> str:
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    user, _, word = login.partition(":")
    user = user if username is None else quote(username, safe="")
    word = word if password is None else quote(password.get_secret_value(), safe="")
    login = f"{user}:{word}@" if word else f"{user}@" if user else ""
    return _join_url(parts._replace(netloc=f"{login}{host}"))


def _join_url(parts: SplitResult) -> str:
    # urlunsplit drops the slashes if there is no host, but PostgreSQL clients need them.
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?' if parts.query else ''}{parts.query}"
