"""Converts Swagger 2.0 to OpenAPI 3: parameters, bodies and forms. References are unchanged."""

from typing import Any, cast

from holdfast.skills.sources.openapi.bodies import FORM, MULTIPART
from holdfast.skills.sources.openapi.parameters import PlacedParameter

_NOT_SCHEMA = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "schema"})
_STYLES = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}


def upgrade(
    parameters: list[PlacedParameter], root: dict[str, Any], operation: dict[str, Any], notes: list[str]
) -> tuple[list[PlacedParameter], dict[str, Any] | None]:
    """Return the parameters and body of an operation as in OpenAPI 3; add what it cannot express to `notes`."""
    others = [
        (_parameter(parameter), place) for parameter, place in parameters if parameter["in"] not in ("body", "formData")
    ]
    body = next((parameter for parameter, _ in parameters if parameter["in"] == "body"), None)
    form = {place: parameter for parameter, place in parameters if parameter["in"] == "formData"}
    values: Any = operation.get("consumes", root.get("consumes"))
    consumes = [kind for kind in cast(list[Any], values if isinstance(values, list) else []) if isinstance(kind, str)]
    if body is not None:
        types = [kind for kind in consumes if not kind.startswith((FORM, MULTIPART))] or ["application/json"]
        media = {"schema": body.get("schema")}
        return others, {**_about(body), "content": dict.fromkeys(types, media)}
    return others, _form(form, consumes, notes) if form else None


def _form(places: dict[str, dict[str, Any]], consumes: list[str], notes: list[str]) -> dict[str, Any]:
    form = places.values()
    with_file = any(parameter.get("type") == "file" for parameter in form)
    multipart = with_file or (any(kind.startswith(MULTIPART) for kind in consumes) and FORM not in consumes)
    schema = {
        "type": "object",
        "properties": {parameter["name"]: _schema(parameter, with_description=True) for parameter in form},
        "required": [parameter["name"] for parameter in form if parameter.get("required") is True],
    }
    if multipart:
        joined = [place for place, parameter in places.items() if parameter.get("collectionFormat") in _STYLES]
        notes += [f"{place}: sent as one part per value, its collectionFormat is ignored" for place in joined]
    encoding = {
        parameter["name"]: _style(parameter) for parameter in form if parameter.get("type") == "array" and not multipart
    }
    content = {MULTIPART if multipart else FORM: {"schema": schema, "encoding": encoding}}
    return {"required": bool(schema["required"]), "content": content}


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    style = _style(parameter) if parameter.get("type") == "array" else {}
    if parameter["in"] != "query":
        style.pop("style", None)
    return {
        **_about(parameter),
        "name": parameter["name"],
        "in": parameter["in"],
        "schema": _schema(parameter),
        **style,
    }


def _about(parameter: dict[str, Any]) -> dict[str, Any]:
    return {key: parameter[key] for key in ("description", "required") if key in parameter}


def _schema(parameter: dict[str, Any], *, with_description: bool = False) -> dict[str, Any]:
    left_out = _NOT_SCHEMA - {"description"} if with_description else _NOT_SCHEMA
    return {keyword: value for keyword, value in parameter.items() if keyword not in left_out}


def _style(parameter: dict[str, Any]) -> dict[str, Any]:
    collection = parameter.get("collectionFormat")
    return {"style": _STYLES.get(str(collection), "form"), "explode": collection == "multi"}
