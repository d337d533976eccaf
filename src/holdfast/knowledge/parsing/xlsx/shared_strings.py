"""The texts that the cells of a workbook share, in little memory."""

from array import array
from collections.abc import Iterator

from holdfast.knowledge.parsing.archive import Archive
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, events, forget


class SharedStrings:
    """Texts by number: one buffer and an offset for each, not an object for each."""

    def __init__(self, archive: Archive, part: str | None) -> None:
        self._text = bytearray()
        self._ends = array("Q")
        if part is not None:
            with archive.open(part) as stream:
                for _, element in events(archive, stream, part, ("si",)):
                    self._text += rich_text(element).encode("utf-8", "surrogatepass")
                    self._ends.append(len(self._text))
                    forget(element)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> str:
        begin = self._ends[index - 1] if index else 0
        return self._text[begin : self._ends[index]].decode("utf-8", "surrogatepass")


def rich_text(element: Element) -> str:
    """The text of an `si` or `is`, without the readings of Asian characters."""
    return "".join(_texts(element))


def _texts(element: Element) -> Iterator[str]:
    for each in element:
        match NAMES[each.tag]:
            case "s:t":
                yield each.text or ""
            case "s:r":
                yield from _texts(each)
            case _:
                pass
