"""What it takes to make tools of OpenAPI documents, beside FastMCP's importer on the same documents; and of GraphQL.

`--specs FOLDER`: the documents (`*.json`, `*.yaml`, `*.yml`, `*.graphql`); else two that are made up, of schemas that
refer to one another in unions. All operations are imported, each document in a fresh process; to load the program is
not counted.
`--limit SECONDS`: how long an import may take.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure import Table, arguments, scratch
from peers import ENVIRONMENTS, ROOT

from holdfast.core.errors import InvalidInput
from holdfast.skills.sources.graphql.sdl import read_sdl
from holdfast.skills.sources.openapi import OpenApiDocument, read_document

PROGRAM = Path(__file__).parent / "programs" / "importer.py"
PEER = ENVIRONMENTS / "import" / "bin" / "python"
ROUNDS = 3
GRAPHQL = ".graphql"
METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


@dataclass(frozen=True, slots=True)
class Way:
    """What came of importing a document; `trouble`: why nothing did."""

    trouble: str = ""
    tools: int = 0
    skipped: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    bytes: int = 0
    biggest: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A document, and what came of it."""

    name: str
    size: int
    operations: int
    ours: Way
    theirs: Way | None


def run(way: str, python: Path, file: Path, limit: float) -> Way:
    """Import a document in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [str(python), str(PROGRAM), way, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    except subprocess.TimeoutExpired:
        return Way(trouble=f"over {limit:g} s")
    if done.returncode != 0:
        return Way(trouble=f"ended with {done.returncode}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Way(trouble=f"refused ({said['refused']})") if "refused" in said else Way(**said)


def operations(document: OpenApiDocument) -> int:
    """How many operations there are in a document."""
    paths: dict[str, Any] = document.root.get("paths") or {}
    return sum(len(METHODS & item.keys()) for item in paths.values() if isinstance(item, dict))


def measure(file: Path, folder: Path, limit: float) -> Row | None:
    """What importing a document takes, if it is one."""
    if file.suffix == GRAPHQL:
        there = len(read_sdl(file.read_text()).operations)
        return Row(file.name, file.stat().st_size, there, ours(file, limit), None)
    try:
        document = read_document(file.read_bytes())
    except InvalidInput as error:
        print(f"{file.name} is left out: {error}", file=sys.stderr)
        return None
    as_json = folder / "document.json"
    as_json.write_text(json.dumps(document.root))
    there = operations(document)
    theirs = run("fastmcp", PEER, as_json, limit) if PEER.exists() else None
    if theirs is not None and not theirs.trouble:
        theirs = replace(theirs, skipped=there - theirs.tools)
    return Row(file.name, file.stat().st_size, there, ours(file, limit), theirs)


def ours(file: Path, limit: float) -> Way:
    """What our import of a document takes: the median of some."""
    rounds = [run("holdfast", Path(sys.executable), file, limit) for _ in range(ROUNDS)]
    return sorted(rounds, key=lambda way: way.cpu)[ROUNDS // 2]


def made_up(folder: Path, *, schemas: int, paths: int) -> Path:
    """A document whose schemas all reach one another, on countless ways."""
    chance = random.Random(1)

    def reference() -> dict[str, str]:
        return {"$ref": f"#/components/schemas/s{chance.randrange(schemas)}"}

    def schema() -> dict[str, Any]:
        union = {f"p{field}": {"anyOf": [{"type": "string"}, reference(), reference()]} for field in range(12)}
        return {"type": "object", "properties": {"id": {"type": "string"}, **union}, "required": ["id"]}

    def operation() -> dict[str, Any]:
        body = {"required": True, "content": {"application/json": {"schema": reference()}}}
        return {"post": {"requestBody": body, "responses": {"200": {"description": "Done."}}}}

    root = {
        "openapi": "3.0.3",
        "info": {"title": "Made up", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:9"}],
        "paths": {f"/v1/s{number}": operation() for number in range(paths)},
        "components": {"schemas": {f"s{number}": schema() for number in range(schemas)}},
    }
    file = folder / f"made-up-{schemas}.json"
    file.write_text(json.dumps(root))
    return file


def table(rows: Sequence[Row], limit: float) -> Table:
    """Ours beside theirs, document by document."""
    head = [
        "document",
        "MB",
        "operations",
        "way",
        "tools",
        "skipped",
        "s",
        "CPU s",
        "MB of memory",
        "kB of schemas",
        "biggest kB",
    ]
    cells = [[*head, "ours takes"]]
    for row in rows:
        start = [row.name, f"{row.size / 1e6:.2f}", str(row.operations)]
        cells.append([*start, "Holdfast", *shown(row.ours), ""])
        if row.theirs is not None:
            cells.append([*start, "FastMCP", *shown(row.theirs), ratio(row.ours, row.theirs)])
    notes = [
        "All operations of a document are imported. `skipped` are operations that became no tool: ours with a reason",
        "each, FastMCP's with a line in its log.",
        "`s` and CPU are those of reading the document and listing all tools with their schemas; ours are medians of",
        f"{ROUNDS}. FastMCP gets JSON in any case. `ours takes`: our CPU for one second of FastMCP's, within the run.",
        f"An import that takes longer than {limit:g} s is ended. Schemas are of arguments, as compact JSON.",
        "FastMCP imports no GraphQL.",
    ]
    if not PEER.exists():
        notes.append("Left out: FastMCP, not installed here; `make bench` installs it.")
    figures = [
        {"document": row.name, "operations": row.operations, "ours": told(row.ours), "theirs": told(row.theirs)}
        for row in rows
    ]
    return Table(
        "import",
        "What it takes to make tools of OpenAPI documents and GraphQL schemas",
        cells,
        figures,
        notes,
        ["holdfast", "msgspec", "PyYAML", "graphql-core", "jsonschema-rs"],
    )


def shown(way: Way) -> list[str]:
    """The figures of one way, or why there are none."""
    if way.trouble:
        return [way.trouble[:60], *[""] * 6]
    counts = [str(way.tools), str(way.skipped), f"{way.seconds:.2f}", f"{way.cpu:.2f}", f"{way.memory:.0f}"]
    return [*counts, f"{way.bytes / 1e3:.0f}", f"{way.biggest / 1e3:.1f}"]


def told(way: Way | None) -> dict[str, object] | None:
    """The figures of one way, to keep."""
    if way is None:
        return None
    return (
        {"trouble": way.trouble}
        if way.trouble
        else {name: getattr(way, name) for name in Way.__slots__ if name != "trouble"}
    )


def ratio(ours: Way, theirs: Way) -> str:
    """What ours takes for one of theirs."""
    is_whole = not ours.trouble and not theirs.trouble and theirs.skipped <= ours.skipped
    return "" if not is_whole else f"{ours.cpu / theirs.cpu:.3f}x"


def main() -> None:
    """Measure, print, keep."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--specs", type=Path)
    own.add_argument("--limit", type=float, default=240.0)
    (asked, sys.argv[1:]) = own.parse_known_args()
    options = arguments(str(__doc__), seconds=240)
    with scratch() as folder:
        files = [made_up(folder, schemas=40, paths=40), made_up(folder, schemas=400, paths=100)]
        if asked.specs is not None:
            files = sorted(file for file in asked.specs.iterdir() if file.suffix in (".json", ".yaml", ".yml", GRAPHQL))
        limit = max(20.0, min(asked.limit, options.seconds))
        rows = [row for file in files if (row := measure(file, folder, limit)) is not None]
    table(rows, limit).publish(options.results)


if __name__ == "__main__":
    main()
