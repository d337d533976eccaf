"""Generates the page of settings: `python -m holdfast.core.reference > docs/settings.md`."""

import sys
from typing import cast

from pydantic.fields import FieldInfo

from holdfast.core.config import Config, fields, is_secret, object_type
from holdfast.core.setting_sources import environment_name

_HEAD = """\
# Settings

This page lists every setting, its environment variable, its default and its meaning. It is generated from the source by
`python -m holdfast.core.reference`: do not edit it.

## Where values come from

A setting takes its value from the first of these sources that has one:

1. A flag of the command: `--port 4601`.
2. An environment variable: `HOLDFAST_SERVER__PORT=4601`, with two underscores between section and name. An empty
   variable counts as unset.
3. The file `holdfast.toml` in the working folder. If there is none, `holdfast.toml` in `$XDG_CONFIG_HOME/holdfast`
   (by default `~/.config/holdfast`).
4. The default.

`holdfast config show` shows every setting and where its value comes from. If a setting is unknown or its value is
invalid, the engine does not start. The error names the setting and its source.

**Environment.** Separate the items of a list with commas. Write a list of objects as JSON. The engine also reads the
following variables. A variable with the prefix `HOLDFAST_` has priority over one without it.

| variable | setting |
|---|---|
| `HOLDFAST_DATABASE_URL` | `database.url` |
| `HOLDFAST_DATABASE_OWNER_URL` | `database.owner_url` |
| `PGVECTOR_URL` | `memory.storage.url` |
| `PGVECTOR_USER` | `memory.storage.username` |
| `PGVECTOR_PASSWORD` | `memory.storage.password` |
| `OPENAI_API_KEY` | `llm.openai_api_key` |
| `OPENROUTER_API_KEY` | `llm.openrouter_api_key` |
| `ANTHROPIC_API_KEY` | `llm.anthropic_api_key` |

**Secrets.** You can store a secret in a file and set a variable with the suffix `_FILE` to its path:
`HOLDFAST_SECRET_FILE=/run/secrets/holdfast`. This works for every setting that is marked *secret*.

**`holdfast.toml`.** A section is a table: `port` in `[server]` sets `server.port`. You can write names with `-` or `_`.
A relative path in `data` is relative to the folder of the file.

## All settings

[limits.md](limits.md) explains the section `limits`, [quotas.md](quotas.md) the section `quotas`, and
[scoring.md](scoring.md) the section `memory.scoring`.

| key | environment | default | meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """Return the page with every setting."""
    rows = "".join(_row(key, field) for key, field in fields(Config))
    return _HEAD + rows + "".join(_parts(key, field) for key, field in fields(Config))


def _parts(key: str, field: FieldInfo) -> str:
    """Return the table of the fields of each object, for a setting that is a list of objects."""
    kind = object_type(field)
    if kind is None:
        return ""
    head = f"\n## Fields of each entry of `{key}`\n\n| name | default | meaning |\n|---|---|---|\n"
    parts = kind.model_fields.items()
    return head + "".join(f"| `{name}` | {_default(name, part)} | {_meaning(part)} |\n" for name, part in parts)


def _row(key: str, field: FieldInfo) -> str:
    return f"| `{key}` | `{environment_name(key)}` | {_default(key, field)} | {_meaning(field)} |\n"


def _meaning(field: FieldInfo) -> str:
    return f"{field.description} (*secret*)" if is_secret(field) else field.description or ""


def _default(key: str, field: FieldInfo) -> str:
    if key == "data":
        return "`~/.local/share/holdfast`"
    if field.is_required() or field.default in (None, "", ()):
        return ""
    if isinstance(field.default, tuple):
        return f"`{','.join(cast(tuple[str, ...], field.default))}`"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
