"""The trial of one row: first all that is denied, which must change nothing, then all that is allowed."""

import base64
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tests.access.matrix.objects import AGENT, Fields, unique
from tests.access.matrix.rows import Row
from tests.access.matrix.rules import CALLERS, Caller, Outcome, Target
from tests.access.matrix.transports import Answer, Transports
from tests.access.matrix.world import ACME, OURS, Fingerprints, World, marks, visible_marks

UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
SUGGESTION = re.compile(r"such as .*?, or search for others")  # whose names are most alike
VARY = {"date", "content-length", "x-request-id"}  # headers that are others each time
SHOWN = 400  # characters of an answer


@dataclass(frozen=True, slots=True)
class Cell:
    """Who calls, whose object they name, and what is to come of it."""

    caller: Caller
    target: Target
    outcome: Outcome

    @property
    def is_denied(self) -> bool:
        """Whether it is refused."""
        return isinstance(self.outcome, int)


RECORDED = ("tool", "rpc")  # the ways on which each call is a row


class Trial:
    """Asks every cell of a row, and notes what is not as the rule says."""

    def __init__(self, world: World, row: Row, transports: Transports) -> None:
        self.failures: list[str] = []
        self._world = world
        self._row = row
        self._transports = transports
        self._things: dict[Target, Fields] = {}
        self._last: Fingerprints = {}
        self._crosses = False
        self._refusals: defaultdict[tuple[Caller, int], dict[str, list[Target]]] = defaultdict(dict)

    async def run(self) -> None:
        """Ask all cells: what is denied changes nothing, and what is allowed nothing of the other tenant."""
        subject = unique("subject")
        for target in self._row.rule.targets:
            if self._row.uses_up or self._row.lists:  # a list shows the newest, a search what is about its subject
                self._things[target] = await self._world.fresh(self._row.kind, target, subject)
            else:
                self._things[target] = await self._world.thing(self._row.kind, target)
        cells = cells_of(self._row)
        allowed = [cell for cell in cells if not cell.is_denied]
        ours = [cell for cell in allowed if cell.caller != "stranger"]
        acmes = [cell for cell in allowed if cell.caller == "stranger"]
        await self._ask([cell for cell in cells if cell.is_denied], None, "what was denied has changed rows")
        await self._ask(ours, ACME, f"a caller of {OURS} has changed rows of {ACME}")
        await self._ask(acmes, OURS, f"a caller of {ACME} has changed rows of {OURS}")
        if self._row.crosses and not self._crosses:
            self.failures.append(f"{self._row}: no rows have changed: take `crosses` away")
        self._compare_refusals()

    async def _ask(self, cells: Sequence[Cell], tenant: str | None, what: str) -> None:
        """Ask some cells, after which the rows of a tenant, or of all, are as they were."""
        if not cells:
            return
        things = [await self._thing(cell) for cell in cells]
        before = self._last if self._last and not self._row.uses_up else await self._world.fingerprints()
        answer: Answer | None = None
        for number, (cell, thing) in enumerate(zip(cells, things, strict=True)):
            if not self._row.lists or number == 0 or cell.caller != cells[number - 1].caller:
                fields = {**extra_fields(), **thing, **self._own(cell, thing)}
                answer = await self._transports.ask(self._row, self._world.people[cell.caller], fields)
            assert answer is not None
            self._judge(cell, answer, thing)
        after = self._last = await self._world.fingerprints()
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        tables = {table for table, of in changed if tenant in (None, of)}
        if tenant is None and self._row.way in RECORDED:  # a call that fails is recorded, too: for its caller's tenant
            tables.discard("tool_executions")
        known = self._row.crosses if tenant else ""
        self._crosses |= bool(known and tables)
        if tables and not known:
            self.failures.append(f"{self._row}: {what}: {', '.join(sorted(tables))}")

    async def _thing(self, cell: Cell) -> Fields:
        """The object that a cell is about; one of its own where the call may use it up."""
        if self._row.uses_up and not cell.is_denied and not self._row.lists:
            return await self._world.fresh(self._row.kind, cell.target, unique("subject"))
        return self._things[cell.target]

    def _own(self, cell: Cell, thing: Fields) -> Fields:
        """The fields of the object that the caller has themselves; who has none has a session at least."""
        home = self._world.home(cell.caller)
        if self._row.way == "socket" and cell.caller in ("admin", "operator"):
            own = {"session": f"home-{thing.get('agent', AGENT)}"}
        else:
            own = thing if cell.target == home else self._things.get(home, {})
        return {f"own.{name}": value for name, value in own.items()}

    def _judge(self, cell: Cell, answer: Answer, thing: Fields) -> None:
        shown = thing["sign"] in answer.text
        right = False
        match cell.outcome:
            case "ok":
                right = answer.is_ok and (shown or not self._row.shows)
            case "absent":
                right = answer.is_ok and not shown
            case status:
                right = answer.status == status
                self._refusals[cell.caller, status].setdefault(normalize(answer, thing), []).append(cell.target)
        if not right:
            sight = f", which {'shows' if shown else 'does not show'} it" if self._row.shows else ""
            self._note(cell, f"expected {cell.outcome}, got {answer.status}{sight}: {answer.text[:SHOWN]}")
        foreign = marks(answer.text) - visible_marks(cell.caller)
        if foreign:
            self._note(cell, f"the answer tells of what is {', '.join(sorted(foreign))}'s: {answer.text}")

    def _compare_refusals(self) -> None:
        """Note refusals by which a caller can tell one object from another."""
        told = [(caller, status, forms) for (caller, status), forms in self._refusals.items() if len(forms) > 1]
        for caller, status, forms in told:
            targets = " and ".join(each[0] for each in forms.values())
            words = " AND ".join(form[:SHOWN] for form in forms)
            self.failures.append(f"{self._row} as {caller}: {status} is said in other words of {targets}: {words}")

    def _note(self, cell: Cell, what: str) -> None:
        self.failures.append(f"{self._row} as {cell.caller} on {cell.target}: {what}")


def normalize(answer: Answer, thing: Fields) -> str:
    """A refusal without what is another one each time: names, ids, times and lengths."""
    headers = sorted(f"{name}: {value}" for name, value in answer.headers.items() if name not in VARY)
    text = UUID.sub("…", "\n".join([answer.refusal or answer.text, *headers]))
    for value in sorted(filter(None, thing.values()), key=len, reverse=True):
        if value.isdigit():  # a number, which other numbers may contain
            text = re.sub(rf"\b{value}\b", "…", text)
        elif any(map(str.isdigit, value)):  # others are the same for every object
            text = text.replace(value, "…")
    return SUGGESTION.sub("…", text)


def cells_of(row: Row) -> list[Cell]:
    """All cells of a row."""
    rule = row.rule
    return [Cell(caller, target, rule.outcome(caller, target)) for caller in CALLERS for target in rule.targets]


def extra_fields() -> Fields:
    """Fields that are no object's."""
    name = unique("new")
    page = base64.b64encode(f"---\nname: {name}\ndescription: So.\n---\nDo so.\n".encode()).decode()
    return {"unique": name, "page": page, "agent": AGENT, "session": "", "left": "{", "right": "}"}
