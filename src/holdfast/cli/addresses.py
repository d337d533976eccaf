"""What commands put into a request: the options that were given, and names in addresses."""

from typing import Any
from urllib.parse import quote, urlencode

from holdfast.core.errors import InvalidInput


def given(**values: Any) -> dict[str, Any]:
    """Those that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def address(*names: object, **query: Any) -> str:
    """The address of something under `/api`, by its names, with the query that was given."""
    try:
        path = "/".join(["/api", *(quote(str(name), safe="") for name in names)])
        asked = urlencode(given(**query))
    except UnicodeEncodeError:
        raise InvalidInput("a name cannot be used", why="it is not UTF-8", next="Correct it.") from None
    return f"{path}?{asked}" if asked else path
