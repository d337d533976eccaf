import subprocess
import sys

import pytest

import holdfast.embeddings
import holdfast.knowledge
import holdfast.memory
from holdfast.core.lazy_exports import lazy_exports


def test_a_name_is_imported_at_its_first_use() -> None:
    find = lazy_exports("holdfast.memory", {"Owner": "holdfast.memory.owners"})

    assert find("Owner") is holdfast.memory.Owner


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'holdfast\.memory' has no attribute 'Nothing'"):
        _ = holdfast.memory.Nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


@pytest.mark.parametrize("package", ["holdfast.memory", "holdfast.embeddings", "holdfast.knowledge"])
def test_a_package_costs_nothing_until_it_is_used(package: str) -> None:
    code = f"import sys, {package}; print(*sorted(name for name in sys.modules if name.startswith('holdfast')))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert loaded == sorted({"holdfast", "holdfast.core", "holdfast.core.lazy_exports", package})


def test_every_exported_name_exists() -> None:
    assert holdfast.memory.Memories.__module__ == "holdfast.memory.memories"
    assert holdfast.embeddings.Store.__module__ == "holdfast.embeddings.store"
    assert holdfast.knowledge.Document.__module__ == "holdfast.knowledge.document"
