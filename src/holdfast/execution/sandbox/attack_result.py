"""The result of an attack on the sandbox."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttackResult:
    """How an attack ended. `detail`: what stopped it, or what it got.

    An attack that is not `made`, such as for want of a program, says nothing about the sandbox.
    """

    group: str
    attack: str
    blocked: bool
    detail: str
    made: bool = True

    @property
    def succeeds(self) -> bool:
        """Whether the sandbox does not stop it."""
        return self.made and not self.blocked

    @property
    def outcome(self) -> str:
        """How it ended, for people."""
        return "succeeded" if self.succeeds else "blocked" if self.made else "not made"
