"""Why a file cannot be read."""

from typing import Literal

ParseErrorCode = Literal[
    "encrypted",
    "damaged",
    "too_large",
    "too_deep",
    "too_slow",
    "no_text",
    "crashed",
    "unsupported",
    "not_this_format",
]


class ParseError(Exception):
    """A file cannot be read. It crosses a process boundary as its fields, not as an object.

    `what` is what failed, `why` the reason and `next` what to do about it. `code` is for programs:
    `encrypted` (it has a password), `damaged` (it is truncated or malformed), `too_large` (it exceeds a limit of size
    or number, or needs too much memory), `too_deep` (it is nested too deep), `too_slow` (it takes too long), `no_text`
    (it has only pictures), `crashed` (its parser crashed), `unsupported` (a variant that nothing here reads),
    `not_this_format` (its content is of another format than its name says).
    """

    def __init__(self, what: str, *, code: ParseErrorCode, why: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next = next
        self.code: ParseErrorCode = code

    def __str__(self) -> str:
        reason = f"{self.what}: {self.why}" if self.why else self.what
        return f"{reason.rstrip('.')}. {self.next}" if self.next else reason

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__  # __init__ has arguments that pickle does not know


def _rebuilt(kind: type[ParseError], args: tuple[object, ...]) -> ParseError:
    error = kind.__new__(kind)
    error.args = args
    return error
