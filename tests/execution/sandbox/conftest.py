"""Engines that know what the sandbox withstands on this machine."""

import pytest

from holdfast.engine import Engine


@pytest.fixture
def tried(words_only: Engine) -> Engine:
    """An open engine. The first test that registers a script makes the attacks; the others share the verdict."""
    return words_only
