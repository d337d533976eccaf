"""Served tools: which registered tools a worker serves, besides the functions of its app. Pure.

    github_*         the tools with such a name
    source:github    the tools of a source
    kind:rest        the tools of a kind
    *                all tools

A tool of a source may need secrets, a network or settings that only some workers have. So a worker serves no such tool
unless it says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.core.errors import InvalidInput
from holdfast.skills.tool import KINDS

KIND, SOURCE = "kind:", "source:"
BY_APP = ("function", "java")  # a worker serves its app's functions anyway, and no Java at all
ESCAPES = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_", "*": "%", "?": "_"})
WAYS = f"Use names such as `github_*`, `{SOURCE}NAME`, `{KIND}KIND`, or `*` for all tools."


@dataclass(frozen=True, slots=True)
class ServedTools:
    """What a worker serves: tools of `kinds`, of sources, and by name. Names and sources are patterns for `like`."""

    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, declared: Iterable[str]) -> "ServedTools":
        """Return what these declarations mean. In names, `*` is any text, and `?` any character."""
        if isinstance(declared, str):
            raise InvalidInput(f"the tools of a worker cannot be {declared!r:.200}", next="Pass a list of texts.")
        kinds: list[str] = []
        sources: list[str] = []
        names: list[str] = []
        for each in declared:
            if each.startswith(KIND):
                kinds.append(_kind(each.removeprefix(KIND)))
            elif not each.removeprefix(SOURCE) or (":" in each and not each.startswith(SOURCE)):
                raise InvalidInput(f"{each!r:.200} names no tools", next=WAYS)
            else:
                (sources if each.startswith(SOURCE) else names).append(each.removeprefix(SOURCE).translate(ESCAPES))
        return cls(tuple(kinds), tuple(sources), tuple(names))


def _kind(name: str) -> str:
    kinds = [kind for kind in KINDS if kind not in BY_APP]
    if name not in kinds:
        raise InvalidInput(f"a worker cannot serve tools of the kind {name!r:.100}", next=f"Use {', '.join(kinds)}.")
    return name
