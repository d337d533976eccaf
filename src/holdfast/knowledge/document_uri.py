"""The addresses of documents, under which clients of MCP read them."""

from collections.abc import Callable

from holdfast.postgres.database import Database
from holdfast.skills.uri_templates import UriTemplate

SCHEME = "knowledge:"
DOCUMENT = "knowledge://{collection}/{document}"
PAGE = "knowledge://{collection}/{document}/pages/{page}"

# Tells the readers of an address in a tenant that what is there has changed; does not wait.
Announce = Callable[[Database, str], None]

_DOCUMENT = UriTemplate(DOCUMENT)


def document_uri(collection: str, name: str) -> str:
    """Return the address of a document. That of a very long name is longer than any that clients can subscribe to."""
    return _DOCUMENT.expand({"collection": collection, "document": name})
