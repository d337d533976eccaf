"""The result of an attack on the sandbox."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttackResult:
    """How an attack ended. `detail`: what stopped it, or what it got."""

    group: str
    attack: str
    blocked: bool
    detail: str
