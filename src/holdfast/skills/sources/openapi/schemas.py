"""Converts schemas of a document to JSON Schema 2020-12. Each part is converted once; references are kept.

Content that does not belong in a request is left out: `readOnly` properties, examples of objects, and keywords that
validators do not know. Leaving out or cutting makes a schema looser, never tighter. So `oneOf` becomes `anyOf`:
alternatives that differ in what was left out would exclude each other. The back end checks each request in any case.
"""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from holdfast.skills.sources.openapi.documents import Version
from holdfast.skills.sources.openapi.keywords import (
    LISTS,
    MAPS,
    MAX_EXAMPLE,
    MEANT,
    PLAIN,
    SINGLES,
    TYPES,
    compile_schema,
    is_of,
    is_pattern,
    short,
    subschemas,
)
from holdfast.skills.sources.openapi.references import References, UnusablePart, tokens

DEFS = "#/$defs/"
BASE64 = {"contentEncoding": "base64"}

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_AT_HOME = {
    True: re.compile(r"#/definitions/([A-Za-z0-9_.-]+)"),
    False: re.compile(r"#/components/schemas/([A-Za-z0-9_.-]+)"),
}  # by whether the document is Swagger
_QUIET = frozenset({"required", "description", "uniqueItems", "deprecated"})  # left out without a note


@dataclass(slots=True)
class Fragment:
    """A converted schema, the definitions that it refers to, and notes about what was left out."""

    schema: Any = None
    references: dict[str, None] = field(default_factory=dict[str, None])
    notes: list[str] = field(default_factory=list[str])
    _size: int | None = None

    @property
    def size(self) -> int:
        """The size in bytes of JSON."""
        if self._size is None:
            self._size = len(msgspec.json.encode(self.schema))
        return self._size


class Schemas:
    """Converts the schemas of one document."""

    def __init__(self, references: References, version: Version) -> None:
        self._references = references
        self._version = version
        self._fragments: dict[int, tuple[Any, Fragment]] = {}
        self._names: dict[str, str] = {}
        self._origins: dict[str, str] = {}

    def fragment(self, schema: Any, path: str) -> Fragment:
        """Return the converted schema at `path`. It is shared and must not be modified."""
        known = self._fragments.get(id(schema))
        if known is None:
            fragment = Fragment()
            fragment.schema = self._schema(schema, path, fragment)
            # Keeps the schema alive, because its id is the key.
            known = self._fragments[id(schema)] = (schema, fragment)
        return known[1]

    def definition(self, name: str, path: str) -> Fragment:
        """Return the schema with this name in references. Raise UnusablePart if the document has none."""
        node, place = self._references.target(self._origins[name], path)
        return self.fragment(node, place)

    def _schema(self, node: Any, path: str, into: Fragment) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            if node is not None:
                into.notes.append(f"{path}: no schema, so any value is accepted")
            return {}
        keywords = cast(dict[str, Any], node)
        found: dict[str, Any] = {}
        if "$ref" in keywords:
            found["$ref"] = self._reference(keywords["$ref"], path, into)
            if self._version != "3.1":  # other keywords beside a reference are to be ignored
                keywords = {
                    keyword: keywords[keyword] for keyword in ("description", "nullable") if keyword in keywords
                }
        self._take_type(keywords, path, found, into)
        for keyword, value in keywords.items():
            if keyword in PLAIN:
                self._take_plain(keyword, value, path, found, into)
            elif keyword in MAPS:
                self._take_map(keyword, value, path, found, into)
            elif keyword in LISTS or keyword == "oneOf":
                self._take_list(keyword, value, path, found, into)
            elif keyword in SINGLES:
                self._take_single(keyword, value, path, found, into)
        self._take_rest(keywords, path, found, into)
        return _nullable(found) if keywords.get("nullable") is True or keywords.get("x-nullable") is True else found

    def _reference(self, reference: Any, path: str, into: Fragment) -> str:
        node, _ = self._references.target(reference, path)
        reference = cast(str, reference)
        if not isinstance(node, dict | bool):
            raise UnusablePart(path, f"it refers to a part that is not a schema: {reference[:200]}")
        name = self._names.get(reference)
        if name is None:
            name = self._names[reference] = _definition_name(reference, swagger=self._version == "2.0")
            self._origins[name] = reference
        into.references[name] = None
        return DEFS + name

    def _take_type(self, keywords: dict[str, Any], path: str, found: dict[str, Any], into: Fragment) -> None:
        value = keywords.get("type")
        if value is None:
            return
        values = cast(list[Any], value) if isinstance(value, list) else [value]
        types = [_type(one) for one in values]
        if types != values:
            into.notes.append(f"{path}: type {short(str(values), 40)} read as {', '.join(types) or 'any'}")
        if "" not in types and types:
            types = list(dict.fromkeys(types))
            found["type"] = types[0] if len(types) == 1 else types
        if value == "file":
            found |= BASE64

    def _take_plain(self, keyword: str, value: Any, path: str, found: dict[str, Any], into: Fragment) -> None:
        if keyword in ("exclusiveMaximum", "exclusiveMinimum") and isinstance(value, bool):
            return  # OpenAPI 3.0: applies to the limit; see _take_rest
        if keyword == "format" and value == "binary" and found.get("type") == "string":
            found |= BASE64  # a model can write bytes only as text
            return
        converted = PLAIN[keyword](value)
        if converted is not None:
            found[keyword] = converted
        elif keyword not in _QUIET and value is not None and value != []:
            into.notes.append(f"{path}: {keyword} {short(str(value), 80)} omitted, it is invalid")

    def _take_map(self, keyword: str, value: Any, path: str, found: dict[str, Any], into: Fragment) -> None:
        if not isinstance(value, dict):
            if value is not None:
                into.notes.append(f"{path}: {keyword} omitted, it is not an object")
            return
        converted: dict[str, Any] = {}
        for name, inner in cast(dict[str, Any], value).items():
            place = f"{path}.{keyword}.{name}"
            if keyword == "patternProperties" and not is_pattern(name):
                into.notes.append(f"{place}: omitted, its pattern is not supported")
                found["additionalProperties"] = True  # the names of the pattern stay allowed
            elif keyword != "properties" or not self._is_read_only(inner, place):
                converted[name] = self._schema(inner, place, into)
        found[keyword] = converted

    def _is_read_only(self, node: Any, path: str) -> bool:
        if not isinstance(node, dict):
            return False
        keywords = cast(dict[str, Any], node)
        if "$ref" in keywords and keywords.get("readOnly") is None:
            target, _ = self._references.target(keywords["$ref"], path)
            keywords = cast(dict[str, Any], target) if isinstance(target, dict) else {}
        return keywords.get("readOnly") is True

    def _take_list(self, keyword: str, value: Any, path: str, found: dict[str, Any], into: Fragment) -> None:
        if not isinstance(value, list) or not value:
            into.notes.append(f"{path}: {keyword} omitted, it is not a list of schemas")
            return
        converted = [
            self._schema(inner, f"{path}.{keyword}.{index}", into) for index, inner in enumerate(cast(list[Any], value))
        ]
        keyword = "anyOf" if keyword == "oneOf" else keyword
        if keyword == "anyOf" and "anyOf" in found:
            found.setdefault("allOf", []).append({"anyOf": converted})
        elif keyword == "allOf":
            found.setdefault("allOf", []).extend(converted)
        else:
            found[keyword] = converted

    def _take_single(self, keyword: str, value: Any, path: str, found: dict[str, Any], into: Fragment) -> None:
        if keyword == "items" and isinstance(value, list):
            if value:
                self._take_list("prefixItems", cast(list[Any], value), path, found, into)
        elif isinstance(value, dict | bool):
            found.setdefault(keyword, self._schema(value, f"{path}.{keyword}", into))
        elif value is not None:
            into.notes.append(f"{path}: {keyword} omitted, it is not a schema")

    def _take_rest(self, keywords: dict[str, Any], path: str, found: dict[str, Any], into: Fragment) -> None:
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if keywords.get(exclusive) is True and limit in found:
                found[exclusive] = found.pop(limit)
        if "required" in found and "properties" in found:
            read_only = cast(dict[str, Any], keywords["properties"]).keys() - found["properties"].keys()
            found["required"] = [name for name in found["required"] if name not in read_only]
        if "required" in found and not found["required"]:
            del found["required"]
        if "additionalProperties" in found and found["additionalProperties"] is True:
            del found["additionalProperties"]
        if "const" in keywords:
            found["const"] = keywords["const"]
        if "enum" in found and "type" in found:
            self._take_enum(path, found, into)
        match found.get("allOf"):
            case [{"$ref": str(reference), **others}] if not others and "$ref" not in found:
                del found["allOf"]
                found["$ref"] = reference
            case _:
                pass
        self._take_values(keywords, path, found, into)

    def _take_enum(self, path: str, found: dict[str, Any], into: Fragment) -> None:
        # YAML reads `1.0` as a number and `true` as a boolean where the author meant text.
        values = [_as_text(value) for value in found["enum"]] if found["type"] == "string" else found["enum"]
        values = [value for value in values if is_of(value, found["type"])]
        if not values:
            into.notes.append(f"{path}: enum omitted, no value has the type {found['type']}")
            del found["enum"]
        elif values != found["enum"]:
            found["enum"] = values

    def _take_values(self, keywords: dict[str, Any], path: str, found: dict[str, Any], into: Fragment) -> None:
        default = keywords.get("default")
        if found.get("type") == "string":
            default = _as_text(default)
        if default is not None:
            # A call with a default that its own schema refuses would fail.
            if _fits(default, found):
                found["default"] = default
            else:
                into.notes.append(f"{path}: default {short(str(default), 80)} omitted, it does not match its schema")
        elif not found.keys() & {"enum", "const"}:
            values = keywords.get("examples")
            examples = [keywords.get("example"), *(cast(list[Any], values) if isinstance(values, list) else [])]
            example = next((value for value in examples if isinstance(value, str | int | float) and value != ""), None)
            if example is not None and len(str(example)) <= MAX_EXAMPLE:
                found["examples"] = [example]


def references_of(schema: dict[str, Any]) -> dict[str, None]:
    """Return the names of the definitions that a schema refers to."""
    found: dict[str, None] = {}
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "$ref" in node:
                found[cast(str, node["$ref"]).removeprefix(DEFS)] = None
            waiting += subschemas(cast(dict[str, Any], node))
    return found


def _type(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    return value if value in TYPES else MEANT.get(value.lower(), value.lower() if value.lower() in TYPES else "")


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str) and not schema.keys() & {"$ref", "allOf", "anyOf", "const"}:
        nullable = {**schema, "type": [kind, "null"]}
        if "enum" in schema and None not in schema["enum"]:
            nullable["enum"] = [*schema["enum"], None]
        return nullable
    if isinstance(kind, list) or not schema.keys() & {"$ref", "allOf", "anyOf", "const", "enum"}:
        return schema
    outside = {keyword: schema[keyword] for keyword in ("description", "default") if keyword in schema}
    inside = {keyword: value for keyword, value in schema.items() if keyword not in outside}
    return {"anyOf": [inside, {"type": "null"}], **outside}


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    alone = {keyword: inner for keyword, inner in schema.items() if keyword not in ("$ref", *MAPS, *LISTS, *SINGLES)}
    try:
        return compile_schema(alone).is_valid(value)
    except ValueError:
        return False


def _definition_name(reference: str, *, swagger: bool) -> str:
    at_home = _AT_HOME[swagger].fullmatch(reference)
    if at_home:
        return at_home[1]
    digest = hashlib.sha256(reference.encode()).hexdigest()[:6]
    words = _NAME.sub("_", "_".join(tokens(reference)[-2:])).strip("_")
    return f"{words[-50:]}_{digest}".lstrip("_")
