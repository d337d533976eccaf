"""Parameters of an operation, which are sent in the URL, headers and cookies."""

import re
from collections.abc import Collection
from typing import Any, cast

from holdfast.skills.request import AuthScheme, Location, RequestParameter, Style
from holdfast.skills.sources.openapi.arguments import OperationArguments, with_description
from holdfast.skills.sources.openapi.references import References, UnusablePart
from holdfast.skills.sources.openapi.schemas import Schemas

PlacedParameter = tuple[dict[str, Any], str]  # a parameter and its path in the document

PLACES: tuple[Location, ...] = ("path", "query", "header", "cookie")
_STYLES: dict[Location, tuple[Style, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
# The standard ignores the first three. The others belong to the connection, and a caller cannot set them.
_NOT_ARGUMENTS = frozenset({
    "accept", "content-type", "authorization", "accept-encoding", "connection", "content-length", "expect", "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-zA-Z-]+")
_PLACEHOLDER = re.compile(r"\{([^{}/?]+)\}")


def list_parameters(
    item: dict[str, Any], operation: dict[str, Any], place: str, references: References
) -> list[PlacedParameter]:
    """List the parameters of an operation and of its path; those of the operation override those of the path.

    `place` is the operation's path in the document.
    """
    found: dict[tuple[str, str], PlacedParameter] = {}
    for owner, path in ((item, place.rpartition(".")[0]), (operation, place)):
        parameters: Any = owner.get("parameters")
        if parameters is None:
            continue
        if not isinstance(parameters, list):
            raise UnusablePart(f"{path}.parameters", "they are not a list")
        for index, one in enumerate(cast(list[Any], parameters)):
            where = f"{path}.parameters.{index}"
            parameter, _ = references.follow(one, where)
            name, location = parameter.get("name"), parameter.get("in")
            if not isinstance(name, str) or not isinstance(location, str):
                raise UnusablePart(where, "the parameter has no `name` or no `in`")
            found[location, name] = (parameter, where)
    return list(found.values())


def take_parameters(
    parameters: Collection[PlacedParameter],
    path: str,
    place: str,
    shown: Collection[AuthScheme],
    schemas: Schemas,
    into: OperationArguments,
) -> tuple[RequestParameter, ...]:
    """Convert the parameters of `path` to arguments, except those that schemes in `shown` fill with a secret."""
    found: list[RequestParameter] = []
    wanted = list(dict.fromkeys(_PLACEHOLDER.findall(path)))
    secret = {(scheme.kind, scheme.parameter.lower()) for scheme in shown}
    by_name = {parameter["name"]: (parameter, where) for parameter, where in parameters if parameter["in"] == "path"}
    for name in wanted:
        if name not in by_name:
            into.notes.append(f"{place}: the path has {{{name}}}, but no parameter describes it")
        parameter, where = by_name.get(name, ({"name": name, "in": "path", "schema": {"type": "string"}}, place))
        found.append(_take_parameter(parameter, "path", where, schemas, into))
    for location in PLACES[1:]:
        for parameter, where in parameters:
            if parameter["in"] != location or (location, parameter["name"].lower()) in secret:
                continue
            if location != "header" or _is_sendable(parameter, where, into):
                found.append(_take_parameter(parameter, location, where, schemas, into))
    for parameter, where in parameters:
        location, name = parameter["in"], parameter["name"]
        if location == "path" and name not in wanted:
            into.notes.append(f"{where}: omitted, the path has no {{{name}}}")
        elif location not in PLACES:
            if parameter.get("required") is True:
                raise UnusablePart(where, f"a required parameter has an unknown location: {location[:40]}")
            into.notes.append(f"{where}: omitted, its location is unknown: {location[:40]}")
    return tuple(found)


def _is_sendable(parameter: dict[str, Any], where: str, into: OperationArguments) -> bool:
    name = parameter["name"]
    if name.lower() not in _NOT_ARGUMENTS and _HEADER.fullmatch(name):
        return True
    into.notes.append(f"{where}: omitted, callers cannot set the header {name[:60]}")
    return False


def _take_parameter(
    parameter: dict[str, Any], location: Location, where: str, schemas: Schemas, into: OperationArguments
) -> RequestParameter:
    name = parameter["name"]
    schema, content_type, at = _schema_of(parameter, where)
    fragment = schemas.fragment(schema, at)
    into.notes += fragment.notes
    required = location == "path" or parameter.get("required") is True
    argument = into.add(name, location, with_description(fragment.schema, parameter), required=required)
    style = parameter.get("style")
    if style not in _STYLES[location]:
        if style is not None:
            into.notes.append(f"{where}: style {str(style)[:40]} is invalid for a {location} parameter")
        style = _STYLES[location][0]
    explode = parameter.get("explode")
    return RequestParameter(
        argument,
        name,
        location,
        style=style,
        explode=explode if isinstance(explode, bool) else style in ("form", "deepObject"),
        allow_reserved=parameter.get("allowReserved") is True,
        content_type=content_type,
    )


def _schema_of(parameter: dict[str, Any], where: str) -> tuple[Any, str | None, str]:
    content: Any = parameter.get("content")
    if isinstance(content, dict) and content:
        content_type, media = next(iter(cast(dict[str, Any], content).items()))
        schema: Any = cast(dict[str, Any], media).get("schema") if isinstance(media, dict) else None
        return schema, content_type, f"{where}.content.{content_type}.schema"
    if "schema" not in parameter and "type" in parameter:  # form of Swagger 2.0 in a later document
        keywords = {keyword: value for keyword, value in parameter.items() if keyword not in ("in", "name", "required")}
        return keywords, None, where
    return parameter.get("schema"), None, f"{where}.schema"
