from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import pytest
import typer

from holdfast.cli.invocation import SHARED, group
from holdfast.cli.operation_commands import derive, message, parameter
from holdfast.cli.operations import Input, Operation, operation
from holdfast.core.errors import InvalidInput


def command_of(of: str, **settings: Any) -> dict[str, Any]:
    """Derive a command and return its own parameters by name."""
    app = group("Test.")
    derive(app, "try", of, message("Done."), **settings)
    made: Any = typer.main.get_command(app)
    shared = {option.name for option in SHARED}
    return {each.name: each for each in made.commands["try"].params if each.name not in shared}


def page_operation(**inputs: Input) -> Operation:
    return Operation("edit_page", "PUT", "/api/pages/{name}", "write", "Edit a page.", "application/json", inputs)


def test_required_inputs_are_arguments_and_all_others_are_options() -> None:
    params = command_of("reset_group")

    kinds = {name: (each.param_type_name, each.required) for name, each in params.items()}
    assert kinds == {
        "group": ("argument", True),
        "topic": ("argument", True),
        "partition": ("option", False),
        "offset": ("option", False),
        "at": ("option", False),
        "end": ("option", False),
    }
    assert params["end"].is_flag
    assert params["offset"].help == "Continue at this offset."


def test_an_option_has_the_default_the_range_and_the_help_of_the_input() -> None:
    about = Input("query", "integer", default=50, min=1, max=100, help="Maximum number.")

    limit = parameter("limit", about, argument=False)

    (given,) = limit.annotation.__metadata__
    assert (limit.annotation.__origin__, limit.default) == (int, 50)
    assert (given.min, given.max, given.help) == (1, 100, "Maximum number.")


def test_choices_are_checked_before_a_server_is_asked() -> None:
    about = Input("query", "choice", choices=["queued", "done"])

    state = parameter("state", about, argument=False)

    assert state.annotation.__origin__ == Literal["queued", "done"] | None
    assert state.default is None


def test_inputs_can_be_omitted_fixed_or_made_arguments() -> None:
    assert [*command_of("list_executions", without=["user", "before"], arguments=["tool"])] == [
        "tool",
        "status",
        "limit",
    ]
    assert command_of("list_executions", arguments=["tool"])["tool"].param_type_name == "argument"
    assert [*command_of("decide_approval", fixed={"decision": "deny"})] == ["id", "comment"]


def test_the_help_is_the_summary_of_the_operation_unless_it_is_given() -> None:
    app = group("Test.")
    derive(app, "one", "list_topics", message("Done."))
    derive(app, "two", "list_topics", message("Done."), help="List them.")

    commands: Any = typer.main.get_command(app)

    assert commands.commands["one"].help == operation("list_topics").summary
    assert commands.commands["two"].help == "List them."


def test_the_limits_of_the_database_are_left_to_the_server() -> None:
    about = Input("body", "integer", min=0, max=2**63 - 1)

    (given,) = parameter("offset", about, argument=False).annotation.__metadata__

    assert (given.min, given.max) == (0, None)


def test_a_time_without_a_zone_is_local() -> None:
    (given,) = parameter("at", Input("body", "time"), argument=False).annotation.__metadata__

    assert datetime.fromisoformat(given.parser("2026-01-31")).utcoffset() is not None
    with pytest.raises(InvalidInput):
        given.parser("yesterday")


def test_a_request_has_each_argument_in_its_place() -> None:
    edit = page_operation(
        name=Input("path", "text", required=True),
        draft=Input("query", "flag"),
        version=Input("query", "integer"),
        text=Input("body", "text"),
        id=Input("body", "id"),
    )

    request = edit.request({"name": "a/b %", "draft": True, "version": 3, "text": "hello", "id": UUID(int=7)})

    assert request.path == "/api/pages/a%2Fb%20%25?draft=true&version=3"
    assert (request.method, request.body) == ("PUT", {"text": "hello", "id": UUID(int=7)})


def test_a_name_that_the_server_decodes_twice_is_encoded_twice() -> None:
    edit = page_operation(name=Input("path", "text", required=True, encoded_twice=True))

    assert edit.request({"name": "a/b%"}).path == "/api/pages/a%252Fb%2525"


def test_none_is_an_omitted_argument() -> None:
    edit = page_operation(name=Input("path", "text", required=True), text=Input("body", "text"))

    assert edit.request({"name": "a", "text": None}).body == {}


def test_an_argument_that_is_not_utf_8_is_refused() -> None:
    edit = page_operation(name=Input("path", "text", required=True))

    with pytest.raises(InvalidInput, match="not UTF-8"):
        edit.request({"name": "\udcff"})


def test_an_operation_without_a_body_sends_none() -> None:
    assert operation("cancel_run").request({"id": UUID(int=7)}).body is None
    assert operation("redrive_dead_letters").request({}).body == {}
