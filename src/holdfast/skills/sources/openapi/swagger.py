"""Converts Swagger 2.0 to OpenAPI 3: parameters, bodies and forms. References are unchanged."""

from typing import Any, cast

from holdfast.skills.sources.openapi.bodies import FORM, MULTIPART
from holdfast.skills.sources.openapi.parameters import Said

_NOT_SCHEMA = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "schema"})
_STYLES = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}


def upgraded(
    parameters: list[Said], root: dict[str, Any], operation: dict[str, Any], notes: list[str]
) -> tuple[list[Said], dict[str, Any] | None]:
    """Return the parameters and body of an operation as in OpenAPI 3; add what it cannot express to `notes`."""
    kept = [(_parameter(said), place) for said, place in parameters if said["in"] not in ("body", "formData")]
    body = next((said for said, _ in parameters if said["in"] == "body"), None)
    form = {place: said for said, place in parameters if said["in"] == "formData"}
    listed: Any = operation.get("consumes", root.get("consumes"))
    consumes = [kind for kind in cast(list[Any], listed if isinstance(listed, list) else []) if isinstance(kind, str)]
    if body is not None:
        types = [kind for kind in consumes if not kind.startswith((FORM, MULTIPART))] or ["application/json"]
        media = {"schema": body.get("schema")}
        return kept, {**_about(body), "content": dict.fromkeys(types, media)}
    return kept, _form(form, consumes, notes) if form else None


def _form(places: dict[str, dict[str, Any]], consumes: list[str], notes: list[str]) -> dict[str, Any]:
    form = places.values()
    with_file = any(said.get("type") == "file" for said in form)
    multipart = with_file or (any(kind.startswith(MULTIPART) for kind in consumes) and FORM not in consumes)
    schema = {
        "type": "object",
        "properties": {said["name"]: _schema(said, with_description=True) for said in form},
        "required": [said["name"] for said in form if said.get("required") is True],
    }
    if multipart:
        joined = [place for place, said in places.items() if said.get("collectionFormat") in _STYLES]
        notes += [f"{place}: sent as one part per value, its collectionFormat is ignored" for place in joined]
    encoding = {said["name"]: _style(said) for said in form if said.get("type") == "array" and not multipart}
    content = {MULTIPART if multipart else FORM: {"schema": schema, "encoding": encoding}}
    return {"required": bool(schema["required"]), "content": content}


def _parameter(said: dict[str, Any]) -> dict[str, Any]:
    style = _style(said) if said.get("type") == "array" else {}
    if said["in"] != "query":
        style.pop("style", None)
    return {**_about(said), "name": said["name"], "in": said["in"], "schema": _schema(said), **style}


def _about(said: dict[str, Any]) -> dict[str, Any]:
    return {key: said[key] for key in ("description", "required") if key in said}


def _schema(said: dict[str, Any], *, with_description: bool = False) -> dict[str, Any]:
    left_out = _NOT_SCHEMA - {"description"} if with_description else _NOT_SCHEMA
    return {keyword: value for keyword, value in said.items() if keyword not in left_out}


def _style(said: dict[str, Any]) -> dict[str, Any]:
    collection = said.get("collectionFormat")
    return {"style": _STYLES.get(str(collection), "form"), "explode": collection == "multi"}
