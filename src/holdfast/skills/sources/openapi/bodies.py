"""Bodies of an operation: which content type is sent, and which arguments it consists of.

The properties of a small JSON object become separate arguments, so that a model reads one flat list. So do the fields
of a form, regardless of their number, because each can have its own style. Any other body is one argument, `body`.
Bytes are base64.
"""

import re
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.skills.request import BodyField, RequestBody, Style
from holdfast.skills.sources.openapi.arguments import OperationArguments, with_description
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


def take_body(body: dict[str, Any], place: str, schemas: Schemas, into: OperationArguments) -> RequestBody | None:
    """Convert a request body at `place` to arguments."""
    content: Any = body.get("content")
    if not isinstance(content, dict) or not content:
        into.notes.append(f"{place}: omitted, it has no content type")
        return None
    content_type = preferred_type(list(cast(dict[str, Any], content)))
    media: Any = cast(dict[str, Any], content)[content_type]
    media = cast(dict[str, Any], media if isinstance(media, dict) else {})
    fragment = schemas.fragment(media.get("schema"), f"{place}.content.{content_type}.schema")
    required = body.get("required") is True
    if _JSON.match(content_type) or (content_type.startswith("*") and not _is_binary(fragment.schema)):
        kind = "application/json" if "*" in content_type else content_type
        return _take_json(kind, fragment, body, required, place, schemas, into)
    if content_type.lower().startswith((FORM, "multipart/")):
        return _take_form(content_type, fragment, media, body, required, place, schemas, into)
    return _take_raw(content_type, fragment, body, required, into)


def preferred_type(content_types: list[str]) -> str:
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
    visited: set[str] = set()
    waiting = [fragment]
    while waiting:
        part = waiting.pop()
        if not isinstance(part.schema, dict):
            return None
        schema = cast(dict[str, Any], part.schema)
        if (
            schema.keys() - _FLAT
            or schema.get("type", "object") != "object"
            or schema.get("additionalProperties", False)
        ):
            return None
        properties = cast(dict[str, Any], schema.get("properties", {}))
        if properties.keys() & found.properties.keys():
            return None
        found.properties |= properties
        found.required.update(schema.get("required", ()))
        found.notes += part.notes
        waiting += [Fragment(inner) for inner in reversed(schema.get("allOf", ()))]
        if "$ref" in schema:
            name: str = schema["$ref"].removeprefix(DEFS)
            if name in visited:
                return None
            visited.add(name)
            waiting.append(schemas.definition(name, place))
    return found if found.properties else None


def _take_json(
    kind: str,
    fragment: Fragment,
    body: dict[str, Any],
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
        return RequestBody(
            kind, argument=into.add("body", "body", with_description(fragment.schema, body), required=required)
        )
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
    body: dict[str, Any],
    required: bool,
    place: str,
    schemas: Schemas,
    into: OperationArguments,
) -> RequestBody:
    flat = members(fragment, schemas, place)
    if flat is None:
        into.notes += fragment.notes
        return RequestBody(
            kind, argument=into.add("body", "body", with_description(fragment.schema, body), required=required)
        )
    into.notes += flat.notes
    encoding: Any = media.get("encoding")
    encodings = cast(dict[str, Any], encoding if isinstance(encoding, dict) else {})
    multipart = not kind.lower().startswith(FORM)
    fields: list[BodyField] = []
    for name, schema in flat.properties.items():
        field_encoding: Any = encodings.get(name)
        field_encoding = cast(dict[str, Any], field_encoding if isinstance(field_encoding, dict) else {})
        content_type = _part_type(field_encoding.get("contentType"), schema, multipart=multipart)
        is_bytes = (
            multipart and content_type is not None and not (_JSON.match(content_type) or _TEXT.match(content_type))
        )
        style = field_encoding.get("style") if field_encoding.get("style") in _FIELD_STYLES else None
        explode = field_encoding.get("explode") if isinstance(field_encoding.get("explode"), bool) else None
        argument = into.add(
            name, "body", _in_base64(schema) if is_bytes else schema, required=required and name in flat.required
        )
        fields.append(BodyField(argument, name, content_type, style, explode))
    return RequestBody(kind, fields=tuple(fields))


def _take_raw(
    kind: str, fragment: Fragment, body: dict[str, Any], required: bool, into: OperationArguments
) -> RequestBody:
    schema: dict[str, Any] = {"type": "string"}
    if not _TEXT.match(kind):
        schema |= BASE64
        kind = BINARY if "*" in kind else kind
    fields = cast(dict[str, Any], fragment.schema) if isinstance(fragment.schema, dict) else {}
    if "description" in fields:
        schema["description"] = fields["description"]
    return RequestBody(kind, argument=into.add("body", "body", with_description(schema, body), required=required))


def _part_type(content_type: Any, schema: Any, *, multipart: bool) -> str | None:
    if isinstance(content_type, str) and content_type.strip():
        return content_type.strip()
    inner: Any = cast(dict[str, Any], schema).get("items") if isinstance(schema, dict) else None
    return BINARY if multipart and (_is_binary(schema) or _is_binary(inner)) else None


def _is_binary(schema: Any) -> bool:
    return isinstance(schema, dict) and cast(dict[str, Any], schema).get("contentEncoding") == BASE64["contentEncoding"]


def _in_base64(schema: Any) -> Any:
    """Return the schema of a part that is sent as bytes: a text, or a list of texts."""
    fields = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    about = {keyword: fields[keyword] for keyword in ("description", "deprecated") if keyword in fields}
    text = {"type": "string", **BASE64}
    return {"type": "array", "items": text, **about} if fields.get("type") == "array" else {**text, **about}
