"""The gateway with all governance, and without: what is set in each, for the same calls."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from parts.fronts import TOOL
from parts.standing import AGENT

RULES = 20  # access rules that could match a call
OTHERS = 1000  # access rules and limits of other users

# Without governance, tokens, permissions and arguments are still checked.
UNGOVERNED: Mapping[str, str] = MappingProxyType({"HOLDFAST_AUDIT__ENABLED": "false"})
# The back end learns who calls: by headers with a token that the gateway signs.
IDENTITY: Mapping[str, str] = {"kind": "signed"}


def rules() -> str:
    """Access rules: some that could match each call, and many of other users."""
    could_match = [f'large-{n}: deny tool "{TOOL}" when id > {1_000_000 + n}' for n in range(RULES - 1)]
    others = [f'other-{n}: deny user "user-{n}" tool "{TOOL}"' for n in range(OTHERS)]
    return "\n".join([*could_match, f'nights: deny agent "{AGENT}" tool "refund*" between 22:00 and 06:00', *others])


def limits() -> Sequence[str]:
    """Limits that hold for each call, and that are never reached."""
    return (
        "tenant: 100000 requests per second",
        "each user: 100000 requests per second",
        f"agent {AGENT}: 100000 requests per second",
        f"each user of tool {TOOL}: 100000 requests per second",
        f"tool {TOOL}: 1000 concurrent calls",
    )


def governance() -> Sequence[tuple[str, str, object]]:
    """The requests that set them."""
    return [
        ("PUT", "/api/gateway/rules", {"text": rules()}),
        *(("PUT", "/api/limits", {"rule": limit}) for limit in limits()),
    ]
