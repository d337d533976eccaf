"""`holdfast models`: list and download embedding models."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from holdfast.cli.invocation import Invocation, command, group
from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.local import fetch_in_thread
from holdfast.embeddings.store import Store

app = group("List and download embedding models. No server is needed.")

COLUMNS = {
    "name": "MODEL",
    "serves": "SERVES",
    "dimensions": "DIMENSIONS",
    "bytes": "BYTES",
    "state": "STATE",
    "place": "WHERE",
}


@command(app, local=True)
def ls(invocation: Invocation) -> None:
    """List the configured models and those that can be downloaded."""
    settings = invocation.config().memory.embedding
    store = Store(settings.folder)
    invocation.output.rows([_row(settings, store, *model) for model in _models(settings)], COLUMNS)


@command(app, local=True)
async def fetch(
    invocation: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Models to download. [default: the configured ones]", show_default=False
        ),
    ] = None,
) -> None:
    """Download missing models and verify existing ones.

    Models come from the hub, or from Maven's repository if `mvn` is installed. They are stored in a shared cache.
    """
    settings = invocation.config().memory.embedding
    store = Store(settings.folder)
    if not names and settings.url is not None:
        invocation.output.say(f"Nothing to download: vectors come from {settings.url}.")
    done: list[dict[str, object]] = []
    for name in names or ([] if settings.url else _configured_models(settings)):
        with _bar(f"fetching {name}", quiet=invocation.json) as progress:
            files = await fetch_in_thread(store, name, progress)
        done.append({"name": name, "bytes": files.bytes, "place": str(files.onnx.parent)})
        invocation.output.say(f"The model {name} is in {files.onnx.parent}.")
    if invocation.json:
        invocation.output.rows(done, {})


def _configured_models(settings: EmbeddingSettings) -> dict[str, str]:
    """Return the configured models and the language of each."""
    if settings.chinese_model in ("", settings.model):
        return {settings.model: "every language"}
    return {settings.model: "English", settings.chinese_model: "Chinese"}


def _models(settings: EmbeddingSettings) -> Iterator[tuple[str, str, int]]:
    configured = _configured_models(settings)
    lengths = {settings.chinese_model: settings.chinese_dimensions, settings.model: settings.dimensions}
    for name, serves in configured.items():
        yield name, serves, lengths[name]
    for name, known in KNOWN.items():
        if name not in configured:
            yield name, "", known.dimensions


def _row(settings: EmbeddingSettings, store: Store, name: str, serves: str, dimensions: int) -> dict[str, Any]:
    row = {"name": name, "serves": serves, "dimensions": dimensions, "bytes": None, "state": "missing", "place": None}
    if serves and settings.url is not None:
        return row | {"state": "remote", "place": settings.url}
    files = store.find(name)
    if files is None:
        return row
    state = "damaged" if store.find_damaged(files) else "here"
    return row | {"bytes": files.bytes, "state": state, "place": str(files.onnx.parent)}


@contextmanager
def _bar(doing: str, *, quiet: bool) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None)
        yield lambda here, total: progress.update(task, completed=here, total=total)
