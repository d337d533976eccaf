"""What benchmarks measure, one module for each part.

bench/log.py: publishing, delivering, consuming, relaying. bench/memory.py: remembering and searching, with the memories
that they take (banks) and where these lie (storing). bench/skills.py: disclosing, with the skills it takes (shelves).
bench/gateway.py and bench/federation.py: cases, loading servers, ours (standing) and others' (fronts) in front of a
back end or of MCP servers (upstreams), and what our functions take (profiling).
"""

from dataclasses import dataclass, field

from measure.rounds import Spent

FLOOR = "the bare statement"
SUBSCRIBE = "log.subscribe, with commits"


@dataclass(frozen=True, slots=True)
class Case:
    """What is done, with how many."""

    what: str
    size: str


@dataclass(slots=True)
class Found:
    """The costs by case and way, and the times that somebody waited for a record."""

    costs: dict[Case, dict[str, list[Spent]]] = field(default_factory=dict[Case, dict[str, list[Spent]]])
    waits: dict[Case, dict[str, list[float]]] = field(default_factory=dict[Case, dict[str, list[float]]])
    left_out: str = ""

    def add(self, other: "Found") -> None:
        """Another part's figures."""
        self.costs |= other.costs
        self.waits |= other.waits
        self.left_out = self.left_out or other.left_out
