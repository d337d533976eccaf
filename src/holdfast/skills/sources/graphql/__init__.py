"""Imports GraphQL schemas: one tool per chosen query or mutation.

`schema` is the model of a schema. `sdl` and `introspection` read it. `default_selection` decides what a tool asks for,
`chosen_selection` checks what a caller asks for instead, `input_schemas` describes the arguments, and `importer` makes
the tools.
"""

from holdfast.skills.sources.graphql.importer import import_graphql
from holdfast.skills.sources.graphql.introspection import is_introspection
from holdfast.skills.sources.graphql.sdl import is_sdl

__all__ = ["import_graphql", "is_introspection", "is_sdl"]
