"""A real GraphQL service: a schema that graphql-core executes, behind HTTP."""

import json
from typing import Any

from aiohttp import web
from graphql import (
    ExecutionResult,
    build_schema,
    execute_sync,  # pyright: ignore[reportUnknownVariableType]
    parse,
    validate,
)

from tests.execution.backend import Service

SDL = '''
"""The orders of a shop."""
schema { query: Query mutation: Mutation subscription: Subscription }

scalar DateTime
scalar JSON

type Query {
  "An order by its number."
  order(id: ID!): Order
  orders(first: Int, after: String, last: Int, state: State): OrderConnection!
  search(text: String!, limit: Int! = 3): [Hit!]!
  broken(id: ID!): Order
  old: String @deprecated(reason: "Use order.")
  echo(text: String, at: DateTime, any: JSON, filter: Filter): String
}
type Mutation {
  "Create an order."
  createOrder(input: OrderInput!): CreateOrderPayload
}
type Subscription { orderChanged: Order }

enum State { NEW PAID }
input OrderInput { title: String!, state: State = NEW, note: String, lines: [LineInput!] }
input LineInput { name: String!, count: Int! = 1, parts: [LineInput!] }
input Filter { text: String, and: [Filter!], not: Filter }

interface Node { id: ID! }
type Order implements Node {
  id: ID!
  title: String!
  state: State
  secretary: String @deprecated
  customer: Customer
  comments(first: Int): CommentConnection!
  price(currency: String!): Float
  related: [Order!]!
}
type Customer implements Node { id: ID! name: String! orders(first: Int): OrderConnection! total: Int }
type Comment { id: ID! text: String! }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type OrderConnection { nodes: [Order] pageInfo: PageInfo! totalCount: Int! }
type CommentConnection { edges: [CommentEdge] pageInfo: PageInfo! }
type CommentEdge { cursor: String! node: Comment }
type Product { id: ID! name: String! total: String }
union Hit = Customer | Product
type CreateOrderPayload { order: Order }
'''
SCHEMA = build_schema(SDL)
HITS = {"Customer": "ann", "Product": "tea"}


class Shop(Service):
    """A GraphQL service with orders. It refuses connections of unknown size, as GitHub's does."""

    def __init__(self) -> None:
        super().__init__()
        self.introspects = True
        self.will_answer("/graphql", self._graphql)

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"{self.url}/graphql"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, as they came in."""
        return [json.loads(asked.body) for asked in self.asked]

    async def _graphql(self, request: web.Request) -> web.StreamResponse:
        call = json.loads(self.asked[-1].body)
        if "__schema" in call["query"] and not self.introspects:
            return web.json_response({"errors": [{"message": "introspection is off"}]})
        document = parse(call["query"])
        errors = validate(SCHEMA, document)
        done = ExecutionResult(None, errors)
        if not errors:
            done = execute_sync(SCHEMA, document, Root(), None, call.get("variables"), call.get("operationName"))
        return web.json_response(done.formatted)


class Root:
    """Resolves the fields of queries and mutations."""

    def order(self, _: object, id: str) -> dict[str, Any] | None:
        return None if id == "0" else order(id)

    def orders(self, _: object, first: int | None = None, last: int | None = None, **_more: object) -> dict[str, Any]:
        return connection([order(str(number)) for number in range(size(first, last))])

    def search(self, _: object, text: str, limit: int) -> list[dict[str, Any]]:
        return [
            {"__typename": kind, "id": "1", "name": name, "total": 7, "orders": no_orders}
            for kind, name in HITS.items()
        ]

    def broken(self, _: object, id: str) -> dict[str, Any]:
        def customer(_: object) -> None:
            raise ValueError(f"no customer of {id}")

        return {**order(id), "customer": customer}

    def echo(self, _: object, **given: object) -> str:
        return json.dumps(given, sort_keys=True)

    def createOrder(self, _: object, input: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if input["title"] == "none":
            raise ValueError("sold out")
        return {"order": {**order("9"), "title": json.dumps(input, sort_keys=True)}}


def order(id: str) -> dict[str, Any]:
    """An order."""

    def comments(_: object, first: int | None = None) -> dict[str, Any]:
        found = [{"cursor": "c", "node": {"id": str(number), "text": "good"}} for number in range(size(first))]
        return {**connection([]), "edges": found}

    return {
        "id": id,
        "title": f"Order {id}",
        "state": "NEW",
        "customer": {"id": "5", "name": "Ann", "orders": no_orders},
        "comments": comments,
        "related": [],
        "price": price,
    }


def no_orders(_: object, first: int | None = None) -> dict[str, Any]:
    """A page of the orders of somebody without any."""
    size(first)
    return connection([])


def price(_: object, currency: str) -> float:
    """A price."""
    return 5.0


def connection(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A page of a connection."""
    return {"nodes": nodes, "totalCount": len(nodes), "pageInfo": {"hasNextPage": False, "endCursor": None}}


def size(*sizes: int | None) -> int:
    """The size of a page. Refuse an unknown one."""
    found = [each for each in sizes if each is not None]
    if len(found) != 1:
        raise ValueError("You must provide a `first` or `last` value to properly paginate the connection.")
    return min(found[0], 2)
