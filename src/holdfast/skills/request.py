"""How a call of a tool becomes an HTTP request, and how its back end is reached: as it is stored."""

from typing import Any, Literal

import msgspec

Location = Literal["path", "query", "header", "cookie"]
Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"]


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Stored as JSON without what goes without saying."""


class Parameter(Struct, frozen=True):
    """An argument that goes into the address, a header or a cookie, under the name that the back end has for it.

    With a `content_type` its value is written as that (JSON), and style and explode say nothing.
    """

    argument: str
    name: str
    location: Location
    style: Style = "form"
    explode: bool = False
    allow_reserved: bool = False
    content_type: str | None = None


class Field(Struct, frozen=True):
    """An argument that is one property of the body, or one part of it; `content_type` of a part, where it is said."""

    argument: str
    name: str
    content_type: str | None = None
    style: Style | None = None
    explode: bool | None = None


class Body(Struct, frozen=True):
    """What is sent in the body: one argument whole, or an object made of several.

    `content_type` is JSON, application/x-www-form-urlencoded, multipart/form-data, or any other (text or base64 then).
    """

    content_type: str
    argument: str | None = None
    fields: tuple[Field, ...] = ()


class Scheme(Struct, frozen=True):
    """One way to say who calls, by its name in the document.

    `kind`: a `header`, `query` parameter or `cookie` called `parameter`, or `basic` or `bearer` in `Authorization`.
    """

    name: str
    kind: Literal["header", "query", "cookie", "basic", "bearer"]
    parameter: str = ""


class Request(Struct, frozen=True):
    """A call as an HTTP request. `url` is absolute, or a path below the back end's address; `{name}` stand in it.

    `security`: one of these alternatives is shown, each of them whole; an empty one means nobody has to be known.
    `headers` are sent as they are, but for `{{secret:NAME}}` in them.
    """

    method: str
    url: str
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    security: tuple[tuple[Scheme, ...], ...] = ()
    headers: dict[str, str] = {}
    accept: str = "application/json, text/*;q=0.9, */*;q=0.5"


class Backend(Struct, frozen=True):
    """How the back end of a source is reached: `base_url` goes before the document's; `auth`: each scheme's secret.

    `headers` go with every request, `{{secret:NAME}}` in them; `timeout`: seconds of a call, unless its tool says.
    """

    source: str = ""
    base_url: str | None = None
    auth: dict[str, str] = {}
    headers: dict[str, str] = {}
    timeout: float | None = None

    def to_json(self) -> Any:
        """As it is stored."""
        return msgspec.to_builtins(self)
