"""GraphQL sources over HTTP."""

import pytest

from tests.server.wire import Site

SDL = "type Query { order(id: ID!): Order } type Order { id: ID! title: String customer: Order }"


@pytest.mark.req("MCP-04")
async def test_a_source_has_the_selections_that_a_request_sets(site: Site) -> None:
    body = {
        "name": "shop",
        "kind": "graphql",
        "document": SDL,
        "base_url": "https://shop.example/graphql/",
        "choice": {"everything": True},
        "selection": {"depth": 1, "operations": {"query order": "{ title }"}},
    }

    added = await site.ask("POST", "/api/sources", json=body)
    refused = await site.ask("POST", "/api/sources", json={**body, "name": "b", "selection": {"depth": 99}})
    tool = await site.ask("GET", "/api/tools/order")

    assert added.status == 201
    assert added.json()["source"]["kind"] == "graphql"
    assert added.json()["source"]["selection"]["operations"] == {"query order": "{ title }"}
    assert refused.status == 400
    request = tool.json()["request"]
    assert request["url"] == "https://shop.example/graphql/"
    assert request["graphql"]["selection"] == "{ title }"
