"""Bodies of an operation: which content type is sent, and which arguments it consists of.

The properties of a small JSON object become separate arguments, so that a model reads one flat list. So do the fields
of a form, regardless of their number, because each can have its own style. Any other body is one argument, `body`.
Bytes are base64.
"""

import re
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.skills.request import BodyField, RequestBody, Style
from holdfast.skills.sources.openapi.arguments import OperationArguments, told
from holdfast.skills.sources.openapi.schemas import BASE64, DEFS, Fragment, Schemas

MOST_FLAT = 30  # properties

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
BINARY = "application/octet-stream"

_JSON = re.compile(r"\s*(application|text)/([\w.-]+\+)?json\s*(;|$)", re.IGNORECASE)
_TEXT = re.compile(
    r"text/|[^;]*[/+](xml|yaml|x-yaml|javascript|graphql|x-ndjson|ndjson|jsonl|sql|toml|csv)\s*(;|$)", re.IGNORECASE
)
_PREFERRED = ("application/json", MULTIPART, FORM)
_FIELD_STYLES: tuple[Style, ...] = ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject")
# Keywords that an object with nothing but properties can have.
_FLAT = frozenset({
    "type", "properties", "required", "additionalProperties", "description", "deprecated", "examples", "default",
    "$ref", "allOf",
})  # fmt: skip


@dataclass(slots=True)
class Members:
    """The properties of an object, collected from all its schemas."""

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: set[str] = field(default_factory=set[str])
    notes: list[str] = field(default_factory=list[str])


def take_body(said: dict[str, Any], place: str, schemas: Schemas, into: OperationArguments) -> RequestBody | None:
    """Convert a request body at `place` to arguments."""
    content: Any = said.get("content")
    if not isinstance(content, dict) or not content:
        into.notes.append(f"{place}: omitted, it has no content type")
        return None
    content_type = preferred(list(cast(dict[str, Any], content)))
    media: Any = cast(dict[str, Any], content)[content_type]
    media = cast(dict[str, Any], media if isinstance(media, dict) else {})
    fragment = schemas.fragment(media.get("schema"), f"{place}.content.{content_type}.schema")
    required = said.get("required") is True
    if _JSON.match(content_type) or (content_type.startswith("*") and not _is_binary(fragment.schema)):
        kind = "application/json" if "*" in content_type else content_type
        return _take_json(kind, fragment, said, required, place, schemas, into)
    if content_type.lower().startswith((FORM, "multipart/")):
        return _take_form(content_type, fragment, media, said, required, place, schemas, into)
    return _take_raw(content_type, fragment, said, required, into)


def preferred(content_types: list[str]) -> str:
    """Return the content type that describes best what a model can write."""

    def rank(content_type: str) -> int:
        kind = content_type.partition(";")[0].strip().lower()
        if kind in _PREFERRED:
            return (0, 2, 3)[_PREFERRED.index(kind)]
        if _JSON.match(kind):
            return 1
        return 4 if _TEXT.match(kind) else 5

    return min(content_types, key=rank)


def members(fragment: Fragment, schemas: Schemas, place: str) -> Members | None:
    """Return the properties of an object, from all its schemas; None if it is more than its properties."""
    found = Members()
    followed: set[str] = set()
    waiting = [fragment]
    while waiting:
        part = waiting.pop()
        if not isinstance(part.schema, dict):
            return None
        said = cast(dict[str, Any], part.schema)
        if said.keys() - _FLAT or said.get("type", "object") != "object" or said.get("additionalProperties", False):
            return None
        properties = cast(dict[str, Any], said.get("properties", {}))
        if properties.keys() & found.properties.keys():
            return None
        found.properties |= properties
        found.required.update(said.get("required", ()))
        found.notes += part.notes
        waiting += [Fragment(inner) for inner in reversed(said.get("allOf", ()))]
        if "$ref" in said:
            name: str = said["$ref"].removeprefix(DEFS)
            if name in followed:
                return None
            followed.add(name)
            waiting.append(schemas.definition(name, place))
    return found if found.properties else None


def _take_json(
    kind: str,
    fragment: Fragment,
    said: dict[str, Any],
    required: bool,
    place: str,
    schemas: Schemas,
    into: OperationArguments,
) -> RequestBody:
    flat = members(fragment, schemas, place)
    # An optional body with required properties stays one argument: they are required only if it is sent.
    fits = flat is not None and len(flat.properties) <= MOST_FLAT and (required or not flat.required)
    if flat is None or not fits or flat.properties.keys() & into.properties.keys():
        into.notes += fragment.notes
        return RequestBody(kind, argument=into.add("body", "body", told(fragment.schema, said), required=required))
    into.notes += flat.notes
    return RequestBody(kind, fields=tuple(_flat_fields(flat, into, required=required)))


def _flat_fields(flat: Members, into: OperationArguments, *, required: bool) -> list[BodyField]:
    return [
        BodyField(into.add(name, "body", schema, required=required and name in flat.required), name)
        for name, schema in flat.properties.items()
    ]


def _take_form(
    kind: str,
    fragment: Fragment,
    media: dict[str, Any],
    said: dict[str, Any],
    required: bool,
    place: str,
    schemas: Schemas,
    into: OperationArguments,
) -> RequestBody:
    flat = members(fragment, schemas, place)
    if flat is None:
        into.notes += fragment.notes
        return RequestBody(kind, argument=into.add("body", "body", told(fragment.schema, said), required=required))
    into.notes += flat.notes
    encoding: Any = media.get("encoding")
    encodings = cast(dict[str, Any], encoding if isinstance(encoding, dict) else {})
    multipart = not kind.lower().startswith(FORM)
    fields: list[BodyField] = []
    for name, schema in flat.properties.items():
        how: Any = encodings.get(name)
        how = cast(dict[str, Any], how if isinstance(how, dict) else {})
        content_type = _part_type(how.get("contentType"), schema, multipart=multipart)
        is_bytes = (
            multipart and content_type is not None and not (_JSON.match(content_type) or _TEXT.match(content_type))
        )
        style = how.get("style") if how.get("style") in _FIELD_STYLES else None
        explode = how.get("explode") if isinstance(how.get("explode"), bool) else None
        argument = into.add(
            name, "body", _in_base64(schema) if is_bytes else schema, required=required and name in flat.required
        )
        fields.append(BodyField(argument, name, content_type, style, explode))
    return RequestBody(kind, fields=tuple(fields))


def _take_raw(
    kind: str, fragment: Fragment, said: dict[str, Any], required: bool, into: OperationArguments
) -> RequestBody:
    schema: dict[str, Any] = {"type": "string"}
    if not _TEXT.match(kind):
        schema |= BASE64
        kind = BINARY if "*" in kind else kind
    described = cast(dict[str, Any], fragment.schema) if isinstance(fragment.schema, dict) else {}
    if "description" in described:
        schema["description"] = described["description"]
    return RequestBody(kind, argument=into.add("body", "body", told(schema, said), required=required))


def _part_type(said: Any, schema: Any, *, multipart: bool) -> str | None:
    if isinstance(said, str) and said.strip():
        return said.strip()
    inner: Any = cast(dict[str, Any], schema).get("items") if isinstance(schema, dict) else None
    return BINARY if multipart and (_is_binary(schema) or _is_binary(inner)) else None


def _is_binary(schema: Any) -> bool:
    return isinstance(schema, dict) and cast(dict[str, Any], schema).get("contentEncoding") == BASE64["contentEncoding"]


def _in_base64(schema: Any) -> Any:
    """Return the schema of a part that is sent as bytes: a text, or a list of texts."""
    said = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    about = {keyword: said[keyword] for keyword in ("description", "deprecated") if keyword in said}
    text = {"type": "string", **BASE64}
    return {"type": "array", "items": text, **about} if said.get("type") == "array" else {**text, **about}
