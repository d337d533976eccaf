"""Rules for the errors and their codes on each wire."""

from collections.abc import Iterator, Mapping

from holdfast.core import errors, wires
from holdfast.core.errors import HoldfastError

WIRES: dict[str, Mapping[str, int]] = {
    "HTTP_STATUS": wires.HTTP_STATUS,
    "JSONRPC_CODE": wires.JSONRPC_CODE,
    "MCP_CODE": wires.MCP_CODE,
    "EXIT_CODE": wires.EXIT_CODE,
}


def public_errors() -> list[type[HoldfastError]]:
    """The classes of the one tree."""
    return [cls for cls in _tree(HoldfastError) if cls.__module__ == errors.__name__]


def miscoded(classes: list[type[HoldfastError]]) -> list[str]:
    """Every error has a code of its own, and every wire a number for each code and for nothing else."""
    codes = [cls.code for cls in classes]
    shared = [f"{cls.__name__} shares the code {cls.code}" for cls in classes if codes.count(cls.code) > 1]
    missing = [f"{name} has no {cls.code}" for cls in classes for name, table in WIRES.items() if cls.code not in table]
    stale = [f"{name} has {code}, no error" for name, table in WIRES.items() for code in table if code not in codes]
    return shared + missing + stale


def _tree(root: type[HoldfastError]) -> Iterator[type[HoldfastError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)
