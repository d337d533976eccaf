import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.skills.sources.openapi.names import argument_name, tool_names
from tests.skills.sources.openapi import document, imported, operation

pytestmark = pytest.mark.req("MCP-03")

NAMES = {
    ("GET", "/customers/{id}"): "get_customers_by_id",
    ("GET", "/orders/{id}/items/{item}"): "get_orders_by_id_items_by_item",
    ("POST", "/v1/pay-outs:cancel"): "post_v1_pay_outs_cancel",
    ("GET", "/repos/{owner}/{repo}"): "get_repos_by_owner_by_repo",
    ("GET", "/files/{name}.{ext}"): "get_files_by_name_by_ext",
    ("DELETE", "/a__b//c/"): "delete_a_b_c",
    ("GET", "/"): "get",
    ("PATCH", "/Users/{userId}"): "patch_Users_by_userId",
    ("GET", "/straße"): "get_stra_e",
}

operations = st.lists(
    st.tuples(st.sampled_from(["GET", "PUT"]), st.text("ab{}/-_.ä", max_size=90).map("/".__add__)), unique=True
)


@pytest.mark.parametrize(("given_", "name"), NAMES.items())
def test_a_tool_is_named_by_method_and_path(given_: tuple[str, str], name: str) -> None:
    assert tool_names([given_]) == {" ".join(given_): name}


def test_operations_of_the_same_name_get_a_mark_of_their_own_each() -> None:
    both = tool_names([("GET", "/a-b"), ("GET", "/a_b"), ("PUT", "/a-b")])
    turned = tool_names([("GET", "/a_b"), ("PUT", "/a-b"), ("GET", "/a-b")])

    assert both == turned
    assert both["PUT /a-b"] == "put_a_b"
    assert all(re.fullmatch("get_a_b_[0-9a-f]{6}", both[key]) for key in ("GET /a-b", "GET /a_b"))


def test_a_long_name_is_cut_at_a_word_and_marked() -> None:
    path = "/organizations/{organization}/repositories/{repository}/deployments/{deployment}"

    name = tool_names([("GET", path)])[f"GET {path}"]

    assert re.fullmatch("get_organizations_by_organization_repositories_by_[0-9a-f]{6}", name)


@given(operations)
def test_names_are_short_unique_and_do_not_depend_on_order(found: list[tuple[str, str]]) -> None:
    names = tool_names(found)

    assert names == tool_names(reversed(found))
    assert len(set(names.values())) == len(found)
    assert all(re.fullmatch("[a-zA-Z0-9_]{1,64}", name) for name in names.values())


def test_operations_that_are_not_chosen_count_for_names() -> None:
    from holdfast.skills.sources.source import Choice

    found = imported(document({"/a-b": {"get": {"x-ai-enabled": True}}, "/a_b": {"get": {}}}), Choice())

    assert re.fullmatch("get_a_b_[0-9a-f]{6}", found.tools[0].tool.name)


def test_the_operation_id_is_what_people_read() -> None:
    assert operation({"operationId": "Create Thing"}).display_name == "Create Thing"
    assert operation({"summary": "Make\none"}).display_name == "Make one"


@given(st.text(min_size=1), st.sets(st.text(max_size=3)))
def test_an_argument_has_a_name_that_models_take(name: str, taken: set[str]) -> None:
    found = argument_name(name, "query", taken)

    assert re.fullmatch("[a-zA-Z0-9_.-]{1,64}", found)
    assert found not in taken


@pytest.mark.parametrize(
    ("name", "found"), [("$filter", "filter"), ("expand[]", "expand"), ("X-Id", "X-Id"), ("a b", "a_b"), ("_x", "_x")]
)
def test_an_argument_keeps_as_much_of_its_name_as_can_be(name: str, found: str) -> None:
    assert argument_name(name, "query", set()) == found


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"summary": "Adds.", "description": "Adds a thing."}, "Adds a thing."),
        ({"summary": "Make one", "description": "It is new."}, "Make one\n\nIt is new."),
        ({"summary": "Make one"}, "Make one"),
        ({"description": "x " * 3000}, "x " * 1998 + "x…"),
        ({"summary": "Make one", "description": "y" * 1000}, "y" * 1000),
        ({}, "POST /things"),
    ],
)
def test_the_description_is_what_the_operation_says(said: dict[str, str], told: str) -> None:
    assert operation(said).tool.description == told
