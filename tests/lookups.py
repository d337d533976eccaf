"""Counts how often names are looked up."""

from typing import Any

import pytest

from holdfast.engine import Engine


class Lookups:
    """The statements by which an engine looked up names, from now on."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        call: Any = engine.database._call  # pyright: ignore[reportPrivateUsage]

        def counted(method: str, statement: str, *args: Any, **options: Any) -> Any:
            self.count += "from identity" in statement
            return call(method, statement, *args, **options)

        monkeypatch.setattr(engine.database, "_call", counted)
