"""Reads SQL statements from `.sql` files, one statement each, beside the module that runs them."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files


def statements(module: str) -> Callable[[str], str]:
    """Return a reader of the `sql/` folder beside a module: `sql = statements(__name__)`, then `sql("by_name")`."""
    folder = files(module.rpartition(".")[0]) / "sql"

    @cache
    def sql(name: str) -> str:
        return (folder / f"{name}.sql").read_text(encoding="utf-8")

    return sql
