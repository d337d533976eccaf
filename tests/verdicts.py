"""Where tests keep the verdicts on the sandbox: with the user, so that not every test makes all attacks again."""

import os
from pathlib import Path

from holdfast.execution.composition import verdicts_file

KEPT = verdicts_file(os.environ)


def share_verdicts(cache: Path) -> None:
    """Let programs whose cache folder this is use the verdicts on the sandbox, and add to them."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    if not (cache / KEPT.parent.name).exists():
        (cache / KEPT.parent.name).symlink_to(KEPT.parent)
