"""Trimming: shortens values that are too long for a model, so that it can still make sense of them.

JSON stays JSON: lists keep their first items and say how many more there are, long texts are cut, objects keep their
keys. Equal values are trimmed equally. A result never exceeds the limit.
"""

from typing import Any, cast

from holdfast.core.text import render

LEAST = 2  # bytes of the shortest JSON
LEAST_SHOWN = 24  # bytes shown of a value, unless it is shorter
DEEPEST = 24  # levels; deeper values are left out
SHARE = 8  # items of a list that are shown at least, unless it is shorter or there is no room
ELLIPSIS = "…"


def trimmed(value: Any, most: int) -> Any:
    """Shorten a JSON value so that its JSON has at most `most` bytes, or two if that is less."""
    if isinstance(value, str):
        return value if _size(value) <= most else _cut_string(value, most)
    return value if len(render(value)) <= most else _trim(value, max(LEAST, most), 0)


def trimmed_text(text: str, most: int) -> str:
    """Shorten a text to at most `most` bytes: its beginning, a note with its full size, and its end."""
    data = text.encode(errors="surrogatepass")
    if len(data) <= most:
        return text
    note = f"\n[{ELLIPSIS} {len(data):,} bytes in all; the middle is left out {ELLIPSIS}]\n"
    room = most - len(note.encode())
    if room <= 0:
        return _head(data, max(0, most))
    tail = room // 4
    return _head(data, room - tail) + note + data[len(data) - tail :].decode(errors="ignore")


def _trim(value: Any, room: int, depth: int) -> Any:
    """Shorten a value that is known not to fit."""
    if isinstance(value, str):
        return _cut_string(value, room)
    if isinstance(value, list | tuple):
        items = cast(list[Any], value)
        return _trim_list(items, room, depth) if depth < DEEPEST else _left_out(f"{len(items):,} items", room)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return _trim_object(members, room, depth) if depth < DEEPEST else _left_out(f"{len(members):,} keys", room)
    return _left_out("a number", room)


def _trim_list(items: list[Any], room: int, depth: int) -> Any:
    note = f"{ELLIPSIS} {{:,}} more of {len(items):,} items"
    left = room - LEAST - _size(note.format(len(items)))
    share = max(LEAST_SHOWN, left // SHARE, left // len(items) - 1)
    shown: list[Any] = []
    for item in items:
        space = min(share, left - 1)
        whole = len(render(item)) <= space
        if not whole and space < LEAST_SHOWN:
            break
        shown.append(item if whole else _trim(item, space, depth + 1))
        left -= len(render(shown[-1])) + 1
    if not shown:
        return _left_out(f"{len(items):,} items", room)
    missing = len(items) - len(shown)
    return [*shown, note.format(missing)] if missing else shown


def _trim_object(members: dict[str, Any], room: int, depth: int) -> Any:
    """Keep all keys that there is room for. Small values stay whole, and the others share the rest."""
    rest = ELLIPSIS
    while rest in members:
        rest += ELLIPSIS
    note = f"{{:,}} more of {len(members):,} keys"
    left = room - LEAST - _size(rest) - _size(note.format(len(members))) - 2
    beyond: dict[str, int] = {}  # bytes of each value beyond LEAST_SHOWN
    for name, value in members.items():
        size = len(render(value))
        least = _size(name) + 2 + min(size, LEAST_SHOWN)
        if least > left:
            break
        left -= least
        beyond[name] = max(0, size - LEAST_SHOWN)
    if not beyond:
        return _left_out(f"{len(members):,} keys", room)
    share = _fair_share(sorted(beyond.values()), left)
    shown = {
        name: members[name] if more <= share else _trim(members[name], LEAST_SHOWN + share, depth + 1)
        for name, more in beyond.items()
    }
    missing = len(members) - len(shown)
    return {**shown, rest: note.format(missing)} if missing else shown


def _fair_share(sizes: list[int], room: int) -> int:
    """Return how much each value may take if smaller ones leave their rest to the others. `sizes` is sorted."""
    for number, size in enumerate(sizes):
        share = room // (len(sizes) - number)
        if size > share:
            return share
        room -= size
    return sizes[-1]


def _cut_string(text: str, room: int) -> str:
    """Cut a text so that its JSON takes at most `room` bytes."""
    note = f"{ELLIPSIS} [{len(text):,} characters in all]"
    room -= LEAST
    if len(note.encode()) * 2 > room:
        note = ELLIPSIS if room >= len(ELLIPSIS.encode()) else ""
    low, high = 0, min(len(text), room)
    left = room - len(note.encode())
    while low < high:  # a binary search: escapes make some characters longer than others
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(text[:middle]) - LEAST <= left else (low, middle - 1)
    return text[:low] + note


def _left_out(what: str, room: int) -> Any:
    return _cut_string(f"[{what} left out]", room)


def _head(data: bytes, most: int) -> str:
    return data[:most].decode(errors="ignore")


def _size(text: str) -> int:
    return len(render(text))
