"""URLs and bodies of the requests that commands send."""

from typing import Any
from urllib.parse import quote, urlencode

from holdfast.core.errors import InvalidInput


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def address(*names: object, **query: Any) -> str:
    """Build the URL path of a resource under `/api` from its names and query parameters."""
    try:
        path = "/".join(["/api", *(quote(str(name), safe="") for name in names)])
        asked = urlencode(given(**query))
    except UnicodeEncodeError:
        raise InvalidInput("a name cannot be used", why="it is not UTF-8", next="Correct it.") from None
    return f"{path}?{asked}" if asked else path
