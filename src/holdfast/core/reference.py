"""`docs/settings.md`, written from the settings themselves: `python -m holdfast.core.reference > docs/settings.md`."""

import sys
from typing import cast

from pydantic.fields import FieldInfo

from holdfast.core.config import Config, fields, is_secret, object_of
from holdfast.core.sources import environment_name

_HEAD = """\
# Settings

Written by `python -m holdfast.core.reference` from `holdfast.core.settings`; change that, not this page.

A value comes from the first of these that has it:

1. flags of the command line (`--port 4601`),
2. the environment (`HOLDFAST_SERVER__PORT=4601`: two underscores between section and name). An empty variable counts as
   unset. `HOLDFAST_DATABASE_URL` and `HOLDFAST_DATABASE_OWNER_URL` may be written with one underscore;
   `PGVECTOR_URL`, `PGVECTOR_USER` and `PGVECTOR_PASSWORD` stand for `memory.storage`; `OPENAI_API_KEY`,
   `OPENROUTER_API_KEY` and `ANTHROPIC_API_KEY` for the keys of `llm`,
3. `holdfast.toml` in the working folder, or else in `$XDG_CONFIG_HOME/holdfast` (`~/.config/holdfast`). Names may be
   written with `-` or `_`; a relative `data` starts from the file's folder,
4. the default.

A secret can be kept in a file of its own: `HOLDFAST_SECRET_FILE=/run/secrets/holdfast` reads `secret` from there, and
so for each key marked *secret*. A list is written with commas in the environment, a list of objects as JSON. An unknown
or unfit setting stops the start with a message that names it and its source. `holdfast config show` tells where each
value came from.

| key | environment | default | meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """The page with every setting."""
    rows = "".join(_row(key, field) for key, field in fields(Config))
    return _HEAD + rows + "".join(_parts(key, field) for key, field in fields(Config))


def _parts(key: str, field: FieldInfo) -> str:
    """What each object has in a setting that is a list of them."""
    kind = object_of(field)
    if kind is None:
        return ""
    head = f"\n## Each of `{key}`\n\n| name | default | meaning |\n|---|---|---|\n"
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
