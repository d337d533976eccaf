"""Imports OpenAPI 3.x and Swagger 2.0 documents: bytes in, tools out, without side effects.

`read_document` parses JSON or YAML. `import_document` makes tools of the chosen operations, named by the rules in
`names`, with schemas that a model can read (`schemas`, `pruning`) and requests that a runner can send.
"""

from holdfast.skills.sources.openapi.documents import (
    OpenApiDocument,
    as_utf8,
    document_of,
    parse_document,
    read_document,
)
from holdfast.skills.sources.openapi.importer import import_document

__all__ = ["OpenApiDocument", "as_utf8", "document_of", "import_document", "parse_document", "read_document"]
