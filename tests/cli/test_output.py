import io
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from holdfast.cli.output import Output, printable

pytestmark = pytest.mark.req("UI-02")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def a_terminal() -> Generator[tuple[Terminal, Terminal]]:
    """Standard output and error on a terminal."""
    out, err = Terminal(), Terminal()
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err


@pytest.fixture(autouse=True)
def term(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal with colours, whatever the machine says."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def test_what_a_terminal_would_obey_is_made_visible(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).rows([{"label": "\x1b[31mred\x07 [bold]x[/bold] :smile:"}], {"label": "LABEL"})

    assert "\\x1b[31mred\\x07 [bold]x[/bold] :smile:" in capsys.readouterr().out


def test_lines_and_tabs_of_our_own_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert printable("one\n\ttwo") == "one\n\ttwo"


def test_a_table_in_a_pipe_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).rows([{"text": "x" * 500}], {"text": "TEXT"})

    assert "x" * 500 in capsys.readouterr().out


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    for no_color in ("", "1"):
        monkeypatch.setenv("NO_COLOR", no_color)
        with a_terminal() as (_, err), Output(json=False).progress() as progress:
            progress("working")
        said.append(err.getvalue())

    green = "\x1b[32m"
    assert green in said[0]
    assert green not in said[1]


def test_progress_is_shown_on_a_terminal_and_on_stderr_alone() -> None:
    with a_terminal() as (out, err), Output(json=False).progress() as progress:
        progress("working")

    assert "working" in err.getvalue()
    assert out.getvalue() == ""


@pytest.mark.parametrize("json", [False, True])
def test_progress_is_not_shown_in_a_pipe(json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with Output(json=json).progress() as progress:
        progress("working")

    assert capsys.readouterr() == ("", "")


def test_with_json_there_are_no_words() -> None:
    with a_terminal() as (_, err), Output(json=True).progress() as progress:
        Output(json=True).say("words")
        progress("working")

    assert err.getvalue() == ""


def test_with_json_text_of_any_kind_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).rows([{"text": "é\ud83d\0"}], {"text": "TEXT"})

    assert '"\\u00e9\\ud83d\\u0000"' in capsys.readouterr().out
