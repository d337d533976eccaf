"""Replies: checks whether a client can be asked for something, and whether its answer fits the question."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from holdfast.mcp.inputs import (
    Elicit,
    Forwarded,
    InputRequest,
    ListRoots,
    MissingCapability,
    Sample,
    capability_of,
)
from holdfast.skills.argument_errors import find_errors
from holdfast.skills.validators import checker_of


def is_supported(capabilities: Mapping[str, Any], request: InputRequest) -> bool:
    """Whether a client with these capabilities can be asked for this."""
    declared = capabilities.get(capability_of(request))
    if capability_of(request) == "elicitation" and isinstance(declared, dict):
        if isinstance(request, Forwarded) and request.params.get("mode") == "url":
            return "url" in declared
        return "form" in declared or "url" not in declared  # an empty capability means forms
    return isinstance(declared, dict)


def undeclared_capabilities(capabilities: Mapping[str, Any], requests: Iterable[InputRequest]) -> dict[str, Any]:
    """Return the capabilities that these requests need and the client has not declared."""
    return {capability_of(each): {} for each in requests if not is_supported(capabilities, each)}


def missing_capability(error: BaseException | None) -> MissingCapability | None:
    """Return the missing capability that caused an error, if one did."""
    while error is not None and not isinstance(error, MissingCapability):
        error = error.__cause__
    return error


def describe_mismatch(request: InputRequest, answer: Mapping[str, Any]) -> str:
    """Return what is wrong with an answer; empty if it fits the question."""
    match request:
        case Elicit():
            return _form_mismatch(request, answer)
        case Sample():
            content = answer.get("content")
            has_texts = all(isinstance(answer.get(key), str) for key in ("role", "model"))
            return "" if has_texts and isinstance(content, dict | list) else "it has no `role`, `content` and `model`"
        case ListRoots():
            roots = answer.get("roots")
            fits = isinstance(roots, list) and all(map(_is_root, cast(list[Any], roots)))
            return "" if fits else "its `roots` are no list of objects with a `uri`"
        case Forwarded():  # the server that asks knows what fits
            return ""


def _form_mismatch(request: Elicit, answer: Mapping[str, Any]) -> str:
    action, content = answer.get("action"), answer.get("content")
    if action in ("decline", "cancel"):
        return ""
    if action != "accept":
        return "its `action` is not accept, decline or cancel"
    given: object = {} if content is None else content
    if not isinstance(given, dict):
        return "its `content` is no object"
    checker = checker_of(request.schema)
    if checker.validator.is_valid(given):
        return ""
    found, _ = find_errors(checker, cast(dict[str, Any], given))
    return "; ".join(map(str, found)) or "its `content` is not what was asked for"


def _is_root(root: object) -> bool:
    return isinstance(root, dict) and isinstance(cast(dict[str, Any], root).get("uri"), str)
