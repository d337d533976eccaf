"""The limit index: finds the limits of a call in the same time, however many there are for other subjects. Pure.

Limits that differ only in their names form a group, such as all limits on requests per minute of users. Of each group
the most specific limit counts: that of `user ann` in place of that of `each user`. Limits of different groups all
count. So do those of the operator and those of the tenant: a tenant can tighten what the operator allows, and not
loosen it.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from uuid import UUID

from holdfast.quotas.limit import Measure, Scope, UsageLimit, Window

Subject = tuple[tuple[Scope, str | None], ...]
Group = tuple[bool, tuple[Scope, ...], Measure, Window | None]
Names = tuple[str | None, ...]


class LimitIndex:
    """The limits of a tenant: those of the settings, which the operator can replace for a tenant, and stored ones."""

    def __init__(self, defaults: Iterable[UsageLimit] = ()) -> None:
        self._defaults = {limit.id: limit for limit in defaults}
        self._limits = dict(self._defaults)
        self._groups: dict[Group, dict[Names, UsageLimit]] = {}
        for limit in self._limits.values():
            self._add(limit)

    def __bool__(self) -> bool:
        return bool(self._limits)

    @property
    def limits(self) -> Mapping[UUID, UsageLimit]:
        """All limits, by id."""
        return self._limits

    def is_default(self, limit: UsageLimit) -> bool:
        """Whether a limit is one of the settings."""
        return self._defaults.get(limit.id) is limit

    def set(self, limit: UsageLimit) -> None:
        """Add a limit. It replaces the one with the same id."""
        self._remove(self._limits.get(limit.id))
        self._limits[limit.id] = limit
        self._add(limit)

    def remove(self, id: UUID) -> None:
        """Remove a limit. A limit of the settings that it replaced counts again."""
        self._remove(self._limits.pop(id, None))
        default = self._defaults.get(id)
        if default is not None:
            self.set(default)

    def limits_of(
        self, *, user: str | None = None, agent: str | None = None, key: str | None = None, tool: str | None = None
    ) -> list[tuple[UsageLimit, Subject]]:
        """Return the limits that count for a call, each with the subject whose share it uses."""
        given: Mapping[Scope, str | None] = {"user": user, "agent": agent, "key": key, "tool": tool}
        found: list[tuple[UsageLimit, Subject]] = []
        for (_, scopes, _, _), limits in self._groups.items():
            names = [given[scope] for scope in scopes]
            if None in names:
                continue
            for candidate in product(*((name, None) for name in names)):
                limit = limits.get(candidate)
                if limit is not None:
                    found.append((limit, tuple(zip(scopes, names, strict=True))))
                    break
        return found

    def _add(self, limit: UsageLimit) -> None:
        self._groups.setdefault(_group_of(limit), {})[_names_of(limit)] = limit

    def _remove(self, limit: UsageLimit | None) -> None:
        if limit is None:
            return
        group = _group_of(limit)
        limits = self._groups[group]
        del limits[_names_of(limit)]
        if not limits:
            del self._groups[group]


def _group_of(limit: UsageLimit) -> Group:
    return limit.by_operator, limit.scopes, limit.measure, limit.window


def _names_of(limit: UsageLimit) -> Names:
    return tuple(name for _, name in limit.subject)
