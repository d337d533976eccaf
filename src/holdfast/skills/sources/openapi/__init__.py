"""OpenAPI 3.x and Swagger 2.0 documents, read and made into tools: bytes in, tools out, and nothing else happens.

`read_document` reads JSON or YAML; `import_document` makes tools of the operations that are chosen, named by the rules
in `names`, with schemas that a model can read (`schemas`, `pruning`) and requests that a runner can send.
"""

from holdfast.skills.sources.openapi.documents import Document, read_document
from holdfast.skills.sources.openapi.importer import OpenAPI, import_document

__all__ = ["Document", "OpenAPI", "import_document", "read_document"]
