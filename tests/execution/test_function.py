"""Rows name functions as `module:name`, and only those that the operator lets them."""

import sys
from types import ModuleType
from typing import Any

import pytest

from holdfast.core.errors import Unavailable
from holdfast.execution.function_runner import FunctionRunner
from holdfast.skills.tool import Tool
from tests.execution.backend import RUN

SHOP = '''
import internal_db
from internal_db import Database, drop

database = Database()

class Till:
    @staticmethod
    def pay(bill: str) -> str:
        """Pay."""
        return f"paid {bill}"

def pay(bill: str) -> str:
    """Pay."""
    return f"paid {bill}"

def order(given):
    """Order all of it."""
    return sorted(given.items())
'''
INTERNAL = '''
def drop() -> str:
    """Drop everything."""
    return "dropped"

class Database:
    def drop(self) -> str:
        """Drop everything."""
        return "dropped"
'''


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of tools, and one that it imports."""
    for name, code in (("internal_db", INTERNAL), ("shop_tools", SHOP)):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(code, module.__dict__)


async def call(reference: str, **arguments: Any) -> Any:
    """What the function of a row gives."""
    tool = Tool("job", "Does it.", {"type": "object"}, reference=reference)
    return (await FunctionRunner(["shop_tools"]).run(tool, arguments, RUN, timeout=5)).value


@pytest.mark.req("EXEC-01")
@pytest.mark.parametrize("name", ["pay", "Till.pay"])
async def test_a_function_of_a_named_module_is_run(name: str) -> None:
    assert await call(f"shop_tools:{name}", bill="7") == "paid 7"


@pytest.mark.req("EXEC-01")
async def test_a_function_takes_its_arguments_as_the_schema_of_its_row_has_them() -> None:
    schema = {"type": "object", "properties": {"parcel": {"type": "string"}, "amount": {"type": "integer"}}}
    tool = Tool("order", "Orders.", schema, reference="shop_tools:order")

    result = await FunctionRunner(["shop_tools"]).run(tool, {"parcel": "AB", "amount": 2}, RUN, timeout=5)

    assert result.value == [("amount", 2), ("parcel", "AB")]


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize(
    "reference",
    [
        "internal_db:drop",
        "shop_tools:internal_db.drop",
        "shop_tools:drop",
        "shop_tools:Database.drop",
        "shop_tools:database.drop",
        "shop_tools:internal_db",
        "shop_tools:nothing",
        "shop_tools:",
        "shop_tools",
    ],
)
async def test_what_a_named_module_has_only_imported_is_not_run(reference: str) -> None:
    with pytest.raises(Unavailable):
        await call(reference)
