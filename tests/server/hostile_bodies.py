"""JSON values that take long to read, check, store or show for their size."""

from collections.abc import Callable, Mapping

BYTES = 8_000_000  # a little less than the largest body that a server takes
_Maker = Callable[[int], bytes]


def _repeated(item: bytes) -> _Maker:
    """A list of the same item."""
    return lambda size: b"[" + item * (size // len(item)) + b"0]"


def _counted(item: bytes, count: int) -> _Maker:
    """As many of the same item as are taken, if they fit."""
    return lambda size: b"[" + item * min(size // len(item), count) + b"0]"


def _text(item: str) -> _Maker:
    """A long text."""
    data = item.encode()
    return lambda size: b'"' + data * (size // len(data)) + b'"'


def _members(value: str) -> _Maker:
    """An object with many members."""
    member = '"k{:07}":' + value
    return lambda size: b"{%b}" % ",".join(map(member.format, range(size // (len(value) + 12)))).encode()


HOSTILE: Mapping[str, _Maker] = {
    # Numbers that are hard to convert
    "large floats": _repeated(b"1e308,"),
    "small floats": _repeated(b"1e-300,"),
    "floats beyond the largest": _repeated(b"1e999,"),
    "floats with an exponent": _repeated(b"1E+15,"),
    "floats of 17 digits near the largest": _repeated(b"1.2345678901234567e308,"),
    "floats of 17 digits near zero": _repeated(b"1.2345678901234567e-320,"),
    "floats between two others": _repeated(b"9007199254740993.00000000001,"),
    "floats of 700 digits": _repeated(b"2.2250738585072011" + b"3" * 700 + b"e-308,"),
    "one float of many digits": lambda size: b"[0." + b"1" * size + b"]",
    "one float of many zeros": lambda size: b"[0." + b"0" * size + b"1]",
    "integers of 4299 digits": _repeated(b"9" * 4299 + b","),
    "integers of 250 digits": _repeated(b"9" * 250 + b","),
    "one integer of many digits": lambda size: b"[" + b"9" * size + b"]",
    "negative zeros": _repeated(b"-0.0,"),
    # Many values
    "digits": _repeated(b"0,"),
    "nulls": _repeated(b"null,"),
    "empty texts": _repeated(b'"",'),
    "empty lists": _repeated(b"[],"),
    "empty objects": _repeated(b"{},"),
    "objects with a list": _repeated(b'{"a":[]},'),
    "lists in lists": _repeated(b"[[[[]]]],"),
    "members": _members("0"),
    "members that are lists": _members("[]"),
    "one name many times": lambda size: b"{" + b'"a":0,' * (size // 6) + b'"a":0}',
    "as many digits as are taken": _counted(b"0,", 99_000),
    "as many large floats as are taken": _counted(b"1e308,", 99_000),
    "as many nulls as are taken": _counted(b"null,", 99_000),
    "as many objects as are taken": _counted(b'{"a":[]},', 33_000),
    "as many texts as are taken": _counted(b'"' + b"x" * 70 + b'",', 99_000),
    # Nesting
    "deep lists": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "deep objects": lambda size: b'{"a":' * (size // 6) + b"0" + b"}" * (size // 6),
    "deep lists without an end": lambda size: b"[" * size,
    "lists of 120 levels": _repeated(b"[" * 120 + b"]" * 120 + b","),
    # Texts
    "a text": _text("Well, yes, [no], {and} so on. "),
    "a Chinese text": _text("中文没有空格"),
    "a text of escapes": _text("\\u4e2d\\n"),
    "a text of half characters": _text("\\ud83d"),
    "a text of NULs": _text("\\u0000"),
    "a text of quotes": _text('\\"'),
    "a text of backslashes": _text("\\\\"),
    "a text of digits": _text("0123456789"),
    # No JSON
    "blanks": lambda size: b" " * size + b"0",
    "a text without an end": lambda size: b'"' + b"x" * size,
    "bytes that are no UTF-8": lambda size: b'"' + b"\xff" * size + b'"',
}
