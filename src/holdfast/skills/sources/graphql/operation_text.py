"""Checks the operation of a GraphQL tool that somebody registers without a schema."""

from holdfast.core.errors import InvalidInput
from holdfast.skills.tool import Tool

MAX_TOKENS = 20_000


def check_operation(tool: Tool) -> None:
    """Refuse a GraphQL tool whose operation is not one query or mutation."""
    operation = tool.request.graphql if tool.request is not None else None
    if tool.kind != "graphql" or operation is None:
        return
    wrong = "it chooses fields by a schema that it does not have" if operation.fields else _error(operation.document)
    if wrong is not None:
        raise InvalidInput(
            f"the tool {tool.name!r:.200} cannot be stored",
            why=f"its operation is invalid: {wrong}",
            next="Write one operation, such as `query order($id: ID!) { order(id: $id) { total } }`.",
        )


def _error(text: str) -> str | None:
    from graphql.error import GraphQLError
    from graphql.language import OperationDefinitionNode, parse

    try:
        document = parse(text, no_location=True, max_tokens=MAX_TOKENS)
    except (GraphQLError, RecursionError) as error:
        return " ".join(str(getattr(error, "message", "it is nested too deeply")).split())[:300]
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    if len(operations) != 1:
        return f"the text has {len(operations)} operations"
    if operations[0].operation.value == "subscription":
        return "subscriptions are not supported"
    return None
