"""The sources of settings: flags, the environment, `holdfast.toml`.

Each source returns values by dotted key, together with its name. An unknown key is an error that names the most
similar key. `holdfast.core.config` validates the values.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from holdfast.core.errors import BadSetting

SECTION_SEPARATOR = "__"
PREFIX = "HOLDFAST_"
ALIASES = {"HOLDFAST_DATABASE_URL": "database.url", "HOLDFAST_DATABASE_OWNER_URL": "database.owner_url"}
# Variables of other tools. HOLDFAST_ variables have priority over them.
FOREIGN_VARIABLES = {
    "PGVECTOR_URL": "memory.storage.url",
    "PGVECTOR_USER": "memory.storage.username",
    "PGVECTOR_PASSWORD": "memory.storage.password",
    "OPENAI_API_KEY": "llm.openai_api_key",
    "OPENROUTER_API_KEY": "llm.openrouter_api_key",
    "ANTHROPIC_API_KEY": "llm.anthropic_api_key",
}
FILE_NAME = "holdfast.toml"
MAX_FILE_BYTES = 1024 * 1024
MAX_DEPTH = 8  # levels of tables; no setting is deeper
SHOWN_NAME = 80  # characters of an unknown name in an error

# Kubernetes sets variables for each service in every container. For a service named holdfast, they have our prefix.
_KUBERNETES = re.compile(r"HOLDFAST_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
_KUBERNETES_PORT = re.compile(r"HOLDFAST_(\w+_)?PORT=(tcp|udp|sctp)://.*")
_TESTS = "HOLDFAST_TEST_"
# Variables that commands read themselves. They are not settings of a server.
_COMMANDS = ("HOLDFAST_BACKUP_PASSPHRASE", "HOLDFAST_SERVER_URL", "HOLDFAST_KEY")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A raw value, its source, and the folder to which its relative paths refer."""

    value: object
    origin: str
    folder: Path


@dataclass(frozen=True, slots=True)
class SettingKeys:
    """The known dotted keys, and which of them are secrets."""

    known: tuple[str, ...]
    secret: frozenset[str]


def gather(
    keys: SettingKeys, *, flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path, home: Path | None
) -> dict[str, GivenValue]:
    """Return the values from all sources; for each key, the value of the source with the highest priority."""
    return {
        **_from_file(keys, environ, cwd, home),
        **_from_foreign_variables(environ, cwd),
        **_from_environment(keys, environ, cwd),
        **_from_flags(keys, flags, cwd),
    }


def environment_name(key: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + key.upper().replace(".", SECTION_SEPARATOR)


def _from_flags(keys: SettingKeys, flags: Mapping[str, object], cwd: Path) -> dict[str, GivenValue]:
    """Return the values of the flags. A flag that is None counts as unset."""
    found: dict[str, GivenValue] = {}
    for name, value in flags.items():
        if name not in keys.known:
            raise unknown_setting(name, "flag", keys)
        if value is not None:
            found[name] = GivenValue(value, "flag", cwd)
    return found


def _from_environment(keys: SettingKeys, environ: Mapping[str, str], cwd: Path) -> dict[str, GivenValue]:
    """Return the values of HOLDFAST_ variables. An empty variable counts as unset."""
    names = {environment_name(key): key for key in keys.known} | ALIASES
    files = {f"{name}_FILE": key for name, key in names.items() if key in keys.secret}
    found: dict[str, GivenValue] = {}
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or not value:
            continue
        origin = f"environment {name}"
        key = names.get(name) or files.get(name)
        if key is None:
            if _is_foreign(name, value):
                continue
            key = name.removeprefix(PREFIX).lower().replace(SECTION_SEPARATOR, ".")
            raise _unknown(name, origin, environment_name(_nearest(key, keys)))
        if key in found:
            raise _set_twice(key, found[key].origin, origin)
        found[key] = GivenValue(_secret_from_file(cwd / value, key, origin) if name in files else value, origin, cwd)
    return found


def _from_foreign_variables(environ: Mapping[str, str], cwd: Path) -> dict[str, GivenValue]:
    return {
        key: GivenValue(environ[name], f"environment {name}", cwd)
        for name, key in FOREIGN_VARIABLES.items()
        if environ.get(name)
    }


def _from_file(keys: SettingKeys, environ: Mapping[str, str], cwd: Path, home: Path | None) -> dict[str, GivenValue]:
    found: dict[str, GivenValue] = {}
    for path in _file_candidates(environ, cwd, home):
        if not path.exists():
            continue
        origin = f"{FILE_NAME} {path}"
        for name, value in _leaves(_read_toml(path), keys):
            key = name.replace("-", "_")
            if key not in keys.known:
                raise unknown_setting(name, origin, keys)
            if key in found:
                raise _set_twice(key, origin, origin)
            found[key] = GivenValue(value, origin, path.parent)
        break
    return found


def _file_candidates(environ: Mapping[str, str], cwd: Path, home: Path | None) -> Iterator[Path]:
    yield cwd / FILE_NAME
    # The XDG specification says to ignore relative paths.
    xdg = Path(environ.get("XDG_CONFIG_HOME", ""))
    if xdg.is_absolute():
        yield xdg / "holdfast" / FILE_NAME
    elif home is not None:
        yield home / ".config" / "holdfast" / FILE_NAME


def _read_toml(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            why = f"it has more than {MAX_FILE_BYTES} bytes"
            raise BadSetting(
                f"{path} is too large", why=why, next="Remove everything but settings from it.", file=str(path)
            )
        return tomllib.loads(path.read_text("utf-8"))
    except RecursionError:
        why = "its values are nested too deeply"
        raise BadSetting(
            f"{path} cannot be read", why=why, next="Remove the nested tables; no setting needs them.", file=str(path)
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(
            f"{path} is not valid TOML", why=str(error), next="Correct that line.", file=str(path)
        ) from None
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8 (byte {error.start})"
        raise BadSetting(f"{path} is not valid TOML", why=why, next="Save it as UTF-8.", file=str(path)) from None
    except OSError as error:
        raise BadSetting(
            f"{path} cannot be read",
            why=error.strerror or str(error),
            next="Make it readable for this account, or move it elsewhere.",
            file=str(path),
        ) from None


def _leaves(table: Mapping[str, object], keys: SettingKeys, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values by dotted name. A table that contains no setting counts as a value."""
    for name, value in table.items():
        path = f"{prefix}{name}"
        key = path.replace("-", "_")
        is_section = any(known.startswith(f"{key}.") for known in keys.known)
        deeper = path.count(".") < MAX_DEPTH
        if isinstance(value, dict) and deeper and (is_section or (value and key not in keys.known)):
            yield from _leaves(cast(dict[str, object], value), keys, f"{path}.")
        else:
            yield path, value


def _secret_from_file(path: Path, key: str, origin: str) -> str:
    """Read a secret from a file, without the trailing newline that editors and secret mounts add."""
    secret = why = ""
    try:
        secret = path.read_text("utf-8").removesuffix("\n").removesuffix("\r")
        why = "" if secret else f"{path} is empty"
    except OSError as error:
        why = f"{path} cannot be read, {error.strerror or error}"
    except ValueError:
        why = f"{path} is not a file of UTF-8 text"
    if why:
        raise BadSetting(
            f"the setting {key} has no value",
            why=f"{why} ({origin})",
            next="Name a readable file that contains only the secret.",
            key=key,
            origin=origin,
        )
    return secret


def unknown_setting(name: str, origin: str, keys: SettingKeys) -> BadSetting:
    """Return the error for an unknown setting, which names the most similar key."""
    return _unknown(name, origin, _nearest(name.replace("-", "_"), keys))


def _is_foreign(name: str, value: str) -> bool:
    return (
        name.startswith(_TESTS)
        or name in _COMMANDS
        or _KUBERNETES.fullmatch(name) is not None
        or _KUBERNETES_PORT.fullmatch(f"{name}={value}") is not None
    )


def _unknown(name: str, origin: str, nearest: str) -> BadSetting:
    name = name[:SHOWN_NAME]
    return BadSetting(
        f"unknown setting {name!a}",
        why=f"it is set by {origin}",
        next=f"Did you mean {nearest}? Correct the name or remove it.",
        key=name.encode("ascii", "backslashreplace").decode(),
        origin=origin,
        nearest=nearest,
    )


def _nearest(name: str, keys: SettingKeys) -> str:
    """Return the most similar key, compared as a whole, by its section and by the last part of its name."""

    name = name[:SHOWN_NAME]

    def likeness(key: str) -> tuple[float, float]:
        whole, section, own = (_similarity(name, part) for part in (key, key.partition(".")[0], key.rpartition(".")[2]))
        return max(whole, section, own), whole

    return max(keys.known, key=likeness)


def _similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def _set_twice(key: str, first: str, second: str) -> BadSetting:
    return BadSetting(
        f"the setting {key} is set twice",
        why=f"by {first} and by {second}",
        next="Remove one of them.",
        key=key,
        origin=first,
    )
