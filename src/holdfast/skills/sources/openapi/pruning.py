"""Prunes the schemas of arguments: small ones stay whole, and those too large for a model are cut.

A schema contains only the definitions that it reaches. A schema that is too large is cut at a depth: deeper parts keep
only their type and description, so they accept anything of that type. A definition is as deep as the highest place that
refers to it, and is included once for all places.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from holdfast.skills.sources.openapi.keywords import FRAGILE, HOLDERS, LISTS, MAPS, short, subschemas
from holdfast.skills.sources.openapi.schemas import DEFS, Fragment, Schemas

MAX_SCHEMA_BYTES = 24_000
DEEPEST = 8
STUB_DESCRIPTION = 200  # characters


@dataclass(frozen=True, slots=True)
class Pruned:
    """A schema with its definitions, notes about what was left out, and the depth at which it was cut, if it was."""

    schema: dict[str, Any]
    notes: list[str]
    depth: int | None = None


@dataclass(slots=True)
class _Level:
    """The depth at which each definition is reached, and the deepest level that may fit."""

    depths: dict[str, int] = field(default_factory=dict[str, int])
    deepest: int = DEEPEST


@dataclass(slots=True)
class _Node:
    """A schema, its keywords for a cut, its size without inner schemas, these schemas, and its reference."""

    schema: dict[str, Any]
    keywords: dict[str, Any]
    size: int
    inside: list[Any]
    name: str | None
    stub: dict[str, Any] | None = None


class Pruning:
    """Builds schemas of arguments from the fragments of one document."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._nodes: dict[int, _Node] = {}

    def prune(self, root: Fragment, path: str) -> Pruned:
        """Return the schema of an operation at `path`, with all that it needs."""
        whole = self._whole(root, path)
        if whole is not None:
            return whole
        level = self._levels(root, path)
        for depth in range(level.deepest, -1, -1):
            schema = self._cut(root.schema, level, depth, path)
            if _size(schema) <= MAX_SCHEMA_BYTES:
                return self._with_notes(schema, root, level, depth, path)
        schema = self._cut(root.schema, level, 0, path)
        for limit in (STUB_DESCRIPTION // 4, 0):
            schema = _shorten_descriptions(schema, limit)
            if _size(schema) <= MAX_SCHEMA_BYTES:
                break
        return self._with_notes(schema, root, level, 0, path)

    def _whole(self, root: Fragment, path: str) -> Pruned | None:
        size = root.size
        found: dict[str, Fragment] = {}
        waiting = list(root.references)
        while waiting and size <= MAX_SCHEMA_BYTES:
            name = waiting.pop()
            if name in found:
                continue
            found[name] = fragment = self._schemas.definition(name, path)
            size += fragment.size + len(name) + 4
            waiting += fragment.references
        if size > MAX_SCHEMA_BYTES:
            return None
        schema = dict(root.schema)
        if found:
            schema["$defs"] = {name: found[name].schema for name in sorted(found)}
        return Pruned(schema, [*root.notes, *(note for name in sorted(found) for note in found[name].notes)])

    def _levels(self, root: Fragment, path: str) -> _Level:
        """Return the depths of definitions, level by level, as far down as may fit."""
        found = _Level()
        level: list[Any] = [root.schema]
        size = 0
        for depth in range(DEEPEST + 1):
            below: list[Any] = []
            for schema in level:  # grows during the loop: a definition is as deep as its reference
                if not isinstance(schema, dict):
                    continue
                node = self._node(cast(dict[str, Any], schema))
                size += node.size
                if size > MAX_SCHEMA_BYTES and depth > 0:
                    found.deepest = depth - 1
                    return found
                if node.name is not None and node.name not in found.depths:
                    found.depths[node.name] = depth
                    level.append(self._schemas.definition(node.name, path).schema)
                below += node.inside
            level = below
        return found

    def _node(self, schema: dict[str, Any]) -> _Node:
        known = self._nodes.get(id(schema))
        if known is None:
            keywords = {keyword: value for keyword, value in schema.items() if keyword not in FRAGILE}
            own = {
                keyword: list(cast(dict[str, Any], value)) if keyword in MAPS else 0 if keyword in HOLDERS else value
                for keyword, value in keywords.items()
            }
            reference = cast(str | None, schema.get("$ref"))
            name = None if reference is None else reference.removeprefix(DEFS)
            known = self._nodes[id(schema)] = _Node(schema, keywords, _size(own), list(subschemas(keywords)), name)
        return known

    def _cut(self, root: dict[str, Any], level: _Level, limit: int, path: str) -> dict[str, Any]:
        definitions = {name: depth for name, depth in level.depths.items() if depth <= limit}

        def cut(schema: Any, depth: int) -> Any:
            if not isinstance(schema, dict):
                return schema
            node = self._node(cast(dict[str, Any], schema))
            if depth > limit:
                return self._stub(node, definitions, path)
            if not node.inside:
                return node.keywords
            found: dict[str, Any] = {}
            for keyword, value in node.keywords.items():
                if keyword in MAPS:
                    found[keyword] = {name: cut(inner, depth + 1) for name, inner in value.items()}
                elif keyword in LISTS:
                    found[keyword] = [cut(inner, depth + 1) for inner in value]
                else:
                    found[keyword] = cut(value, depth + 1) if keyword in HOLDERS else value
            return found

        schema = cut(root, 0)
        if definitions:
            schema["$defs"] = {
                name: cut(self._schemas.definition(name, path).schema, definitions[name])
                for name in sorted(definitions)
            }
        return schema

    def _stub(self, node: _Node, definitions: Collection[str], path: str) -> dict[str, Any]:
        if node.name is not None and node.name in definitions:
            return {"$ref": DEFS + node.name, **_outline(node.schema)}
        if node.stub is None:
            target = {} if node.name is None else _outline(self._schemas.definition(node.name, path).schema)
            node.stub = {**target, **_outline(node.schema)}
        return node.stub

    def _with_notes(self, schema: dict[str, Any], root: Fragment, level: _Level, depth: int, path: str) -> Pruned:
        names = sorted(name for name, at in level.depths.items() if at <= depth)
        notes = [f"{path}: its schema is cut below level {depth}, as it has more than {MAX_SCHEMA_BYTES} bytes"]
        notes += root.notes
        notes += [note for name in names for note in self._schemas.definition(name, path).notes]
        return Pruned(schema, notes, depth)


def _outline(schema: Any) -> dict[str, Any]:
    """Return what a cut schema keeps."""
    if not isinstance(schema, dict):
        return {}
    fields = cast(dict[str, Any], schema)
    found = {keyword: fields[keyword] for keyword in ("type", "description") if keyword in fields}
    if "description" in found:
        found["description"] = short(found["description"], STUB_DESCRIPTION)
    return found


def _size(schema: Any) -> int:
    return len(msgspec.json.encode(schema))


def _shorten_descriptions(schema: dict[str, Any], limit: int) -> dict[str, Any]:
    """Cut each argument's description to `limit` characters; the last resort, for hundreds of arguments."""
    properties: dict[str, Any] = {}
    for name, inner in schema["properties"].items():
        properties[name] = {keyword: value for keyword, value in inner.items() if keyword != "description"}
        if limit and "description" in inner:
            properties[name]["description"] = short(inner["description"], limit)
    return {**schema, "properties": properties}
