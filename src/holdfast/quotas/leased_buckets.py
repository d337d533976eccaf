"""Leased buckets: the part of a limit that this process holds. Pure: the time comes in as an argument.

Processes share a limit through rows. Each leases a block of tokens or slots, and calls take from it in memory. A block
is what the process needs for half a second at its present rate, but at most a twentieth of what the bucket holds, and
less near the end. What is not used goes back.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import RateLimited
from holdfast.quotas.limit import UsageLimit, subject_key
from holdfast.quotas.limit_index import Subject

AHEAD = 0.5  # seconds for which tokens are leased
LOW = 0.2  # seconds for which the rest of the tokens lasts when more are asked for
IDLE = 1.0  # seconds without a call after which tokens and slots go back
SPARE_IDLE = 30.0  # the same for the spare tokens of callers who call now and then
SPARE = 40  # a fortieth of what a bucket holds is spare, so that such a caller does not wait for the row
MOST_SPARE = 25
PART = 20  # a process leases at most a twentieth of a bucket at a time,
PART_SECONDS = 0.1  # or what the whole limit allows in a tenth of a second, if that is more
SMOOTHING = 0.25  # seconds over which the rate of calls is averaged
SHORTEST_REST = 0.02  # seconds after a refusal until the rows are asked again
LONGEST_REST = 1.0


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of the row of a bucket. `needed`: for calls that wait; of slots: those in use."""

    wanted: float
    needed: float
    returned: float = 0.0


class LeasedBucket(ABC):
    """A limit of one subject, as this process holds it.

    `on_due` is called when the row should be asked soon, before calls wait.
    """

    slots = False

    def __init__(self, limit: UsageLimit, subject: Subject, on_due: "Callable[[LeasedBucket], None]") -> None:
        self.limit = limit
        self.subject = subject
        self.subject_key = subject_key(subject)
        self.waiting = 0  # calls that wait for the row
        self.refused_until = 0.0  # until then, the row is known to have nothing
        self.refused_at = 0.0  # when it last had nothing
        self.retry_at = 0.0  # when it may have something
        self.is_asked = False
        self.ask_after = 0.0  # until then, calls wait a little, because the row had less than was wanted
        self.quiet_until = 0.0  # until then, there is nothing to ask unless a call comes
        self._on_due = on_due
        self._used_at = 0.0

    def renew(self, limit: UsageLimit) -> None:
        """Take over a changed limit. Hold no more of it than a process could lease now."""
        self.limit = limit
        self.refused_until = self.quiet_until = 0.0

    @abstractmethod
    def has_room(self, now: float) -> bool:
        """Whether a call can be admitted without asking the row."""

    @abstractmethod
    def take(self, now: float) -> None:
        """Admit a call."""

    @abstractmethod
    def give_back(self) -> None:
        """Undo `take`: the call was not made."""

    @abstractmethod
    def release(self) -> None:
        """End a call that was admitted."""

    @abstractmethod
    def ask(self, now: float) -> Ask | None:
        """Return what to ask of the row, if anything."""

    @abstractmethod
    def receive(self, ask: Ask, granted: float, retry_after: float, asked_at: float, now: float) -> None:
        """Apply what the row answered."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nothing is leased, so that it can be forgotten."""

    @abstractmethod
    def last_ask(self) -> Ask | None:
        """Return what gives everything back, when the process ends."""

    def refusal(self, now: float) -> RateLimited:
        """Return the error for a call that finds no room."""
        wait = max(self.retry_at - now, 0.001)
        return RateLimited(
            f"the limit of {self.subject_key} is reached",
            why=f"it is `{self.limit.rule}`",
            retry_after=math.ceil(1000 * wait) / 1000,
            limit=self.limit.name,
            subject=self.subject_key,
            measure=self.limit.measure,
            amount=self.limit.amount,
            window=self.limit.window,
        )

    def describe(self, ask: Ask, place: int) -> dict[str, Any]:
        """Return an ask for the statement."""
        return {
            "place": place,
            "limit_id": self.limit.id,
            "subject": self.subject_key,
            "shared": self.limit.is_shared,
            "slots": self.slots,
            "rate": self.limit.rate,
            "capacity": self.limit.capacity,
            "wanted": ask.wanted,
            "needed": ask.needed,
            "returned": ask.returned,
        }

    def _refuse(self, retry_after: float, now: float) -> None:
        self.refused_at, self.retry_at = now, now + retry_after
        self.refused_until = now + min(max(retry_after, SHORTEST_REST), LONGEST_REST)


class TokenBucket(LeasedBucket):
    """Tokens for requests. A call takes one."""

    def __init__(self, limit: UsageLimit, subject: Subject, on_due: Callable[[LeasedBucket], None]) -> None:
        super().__init__(limit, subject, on_due)
        self.tokens = 0
        self._low = 0.0
        self._taken = 0
        self._rate = 0.0
        self._measured_at = 0.0

    def renew(self, limit: UsageLimit) -> None:
        """Take over a changed limit. Hold no more of it than a process could lease now."""
        super().renew(limit)
        self.tokens = min(self.tokens, max(int(self._most), self._spare))

    def has_room(self, now: float) -> bool:
        """Whether a token is here."""
        return self.tokens > 0

    def take(self, now: float) -> None:
        """Take a token. If few are left, ask for more in the background."""
        self.tokens -= 1
        self._taken += 1
        self._used_at = now
        if self.tokens < self._low and not self.is_asked and now >= self.ask_after:
            self._on_due(self)

    def give_back(self) -> None:
        """Put a token back."""
        self.tokens += 1

    def release(self) -> None:
        """Do nothing: a token is used up."""

    def ask(self, now: float) -> Ask | None:
        """Ask for the tokens of the next half second; give back what is left after a second without a call."""
        rate, spare = self._measure(now), self._spare
        self.quiet_until = 0.0
        if self.waiting == 0 and (idle := now - self._used_at) > IDLE:
            returned = self.tokens - (spare if idle < SPARE_IDLE else 0)
            if returned <= 0:
                self.quiet_until = self._used_at + SPARE_IDLE
                return None
            self.tokens -= returned
            return Ask(0, 0, returned)
        ahead = math.ceil(min(rate * AHEAD, self._most))
        self._low = max(min(rate * LOW, ahead / 2), (spare + 1) // 2)
        if self.waiting == 0 and self.tokens >= self._low:
            return None
        wanted = max(self.waiting + spare, ahead) - max(self.tokens, 0)
        return Ask(wanted, self.waiting) if wanted > 0 else None

    def receive(self, ask: Ask, granted: float, retry_after: float, asked_at: float, now: float) -> None:
        """Add the tokens. If the row has no more, refuse calls for a moment as soon as these tokens are used up."""
        self.tokens += int(granted)
        if retry_after > 0:
            self._refuse(retry_after, now)
        if granted < ask.wanted:
            self.ask_after = now + SHORTEST_REST

    @property
    def is_empty(self) -> bool:
        """Whether no token is here."""
        return self.tokens <= 0

    def last_ask(self) -> Ask | None:
        """Give all tokens back."""
        returned, self.tokens = self.tokens, 0
        return Ask(0, 0, returned) if returned > 0 else None

    @property
    def _most(self) -> float:
        return max(self.limit.capacity / PART, self.limit.rate * PART_SECONDS)

    @property
    def _spare(self) -> int:
        return min(int(self.limit.capacity // SPARE), MOST_SPARE)

    def _measure(self, now: float) -> float:
        """Return the rate of calls, averaged with what it was before."""
        since = now - self._measured_at
        if since >= SMOOTHING:
            recent = self._taken / since
            self._rate = recent if since > 4 * SMOOTHING else (self._rate + recent) / 2
            self._taken, self._measured_at = 0, now
        return max(self._rate, self._taken / max(since, SMOOTHING))


class SlotBucket(LeasedBucket):
    """Slots for concurrent calls. They are leased for a time, and renewed while they are needed."""

    slots = True

    def __init__(
        self, limit: UsageLimit, subject: Subject, on_due: Callable[[LeasedBucket], None], *, lease: float
    ) -> None:
        super().__init__(limit, subject, on_due)
        self.held = 0
        self.in_use = 0
        self._lease = lease
        self._leased_until = 0.0
        self._peak = 0  # of the calls at the same time, in this second and in the one before
        self._former_peak = 0
        self._peak_since = 0.0

    def renew(self, limit: UsageLimit) -> None:
        """Take over a changed limit. Hold no more of it than a process could lease now."""
        super().renew(limit)
        self.held = min(self.held, int(limit.amount))
        self._leased_until = 0.0  # the next call asks the row

    def has_room(self, now: float) -> bool:
        """Whether a slot is free here."""
        return self.in_use < self.held and now < self._leased_until

    def take(self, now: float) -> None:
        """Take a slot."""
        self.in_use += 1
        self._used_at = now
        self._peak = max(self._peak, self.in_use)

    def give_back(self) -> None:
        """Free the slot."""
        self.release()

    def release(self) -> None:
        """Free the slot."""
        self.in_use -= 1

    def ask(self, now: float) -> Ask | None:
        """Ask for slots for the calls that wait; renew the lease; give back what was not used in the last second.

        From now on, nobody here takes a slot that is about to go back: another process may have it before the answer.
        """
        if now - self._peak_since > IDLE:
            is_long_ago = now - self._peak_since > 2 * IDLE
            self._former_peak = self.in_use if is_long_ago else self._peak
            self._peak, self._peak_since = self.in_use, now
        target = max(self._peak, self._former_peak, self.in_use + self.waiting)
        is_old = self.held > 0 and now > self._leased_until - 2 * self._lease / 3
        if not is_old and target == self.held:
            return None
        self.held = min(self.held, target)
        return Ask(target, self.in_use)

    def receive(self, ask: Ask, granted: float, retry_after: float, asked_at: float, now: float) -> None:
        """Hold the slots from now on."""
        self.held = int(granted)
        self._leased_until = asked_at + self._lease
        if granted < ask.wanted:
            self._refuse(retry_after, now)
            self.refused_until = now + SHORTEST_REST  # a slot can become free at any time

    @property
    def is_empty(self) -> bool:
        """Whether no slot is held."""
        return self.held <= 0 and self.in_use <= 0

    def last_ask(self) -> Ask | None:
        """Give all slots back."""
        held, self.held = self.held, 0
        return Ask(0, 0) if held else None
