"""Engines that know what the sandbox withstands on this machine, and the processes that a test starts."""

from collections.abc import Callable

import psutil
import pytest

from holdfast.engine import Engine

Started = Callable[[], list[psutil.Process]]


@pytest.fixture
def tried(words_only: Engine) -> Engine:
    """An open engine. The first test that registers a script makes the attacks; the others share the verdict."""
    return words_only


@pytest.fixture
def started() -> Started:
    """Returns the processes that were started since the test began, with their children, and run now.

    Servers of earlier tests, and the processes that they start meanwhile, are not among them.
    """
    earlier = {*psutil.Process().children()}

    def running() -> list[psutil.Process]:
        children = [each for each in psutil.Process().children() if each not in earlier]
        return [*children, *(grandchild for each in children for grandchild in each.children(recursive=True))]

    return running
