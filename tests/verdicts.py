"""Where tests keep the verdicts on the sandbox: with the user, so that not every test makes all attacks again."""

import os
from pathlib import Path

from holdfast.execution.composition import verdicts_file

KEPT = verdicts_file(os.environ)


def share_verdicts(cache: Path) -> None:
    """Let programs whose cache folder this is use the verdicts on the sandbox, and nothing else that the user has."""
    place = verdicts_file({"XDG_CACHE_HOME": str(cache)})
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    place.parent.parent.mkdir(parents=True, exist_ok=True)
    if not place.parent.exists():
        place.parent.symlink_to(KEPT.parent)
