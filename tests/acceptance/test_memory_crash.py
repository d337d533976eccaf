"""A process is killed while it remembers many texts at once: each call stored all of them or none."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from holdfast.engine import Engine
from holdfast.memory import user
from tests.processes import Processes

PROGRAM = str(Path(__file__).parent / "programs" / "rememberer.py")
SIZE = 2000
STORED = "select split_part(content, ' ', 2)::int as batch, count(*) as count from memory group by batch"
ORPHANS = """
select (select count(*) from memory_term t where not exists (select from memory m where m.id = t.memory_id))
  + (select count(*) from memory m where cardinality(m.terms)
      <> (select count(*) from memory_term t where t.memory_id = m.id))
"""


@pytest.mark.acceptance
@pytest.mark.req("MEM-02", "MEM-06", "ENG-02")
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
async def test_a_killed_process_has_remembered_each_batch_whole_or_not_at_all(
    kills: int, database_url: str, words_only: Engine, processes: Processes, tmp_path: Path
) -> None:
    dice = random.Random(int(os.environ.get("HOLDFAST_TEST_SEED", "7")))
    environment = {
        "HOLDFAST_DATABASE__URL": database_url,
        "HOLDFAST_DATA": str(tmp_path / "other"),
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
        "XDG_CACHE_HOME": str(tmp_path / "empty"),
    }
    acknowledged = 0

    for _ in range(kills):
        async with words_only.postgres.owner() as owner:
            await owner.script("truncate memory, memory_vector, memory_term")
        process = processes.start(PROGRAM, str(SIZE), environment=environment)
        await asyncio.to_thread(process.wait_for, "begins 1\n")
        await asyncio.sleep(dice.uniform(0, 0.5))  # any moment of a call may be the last
        process.kill()
        done = {int(line.split()[1]) for line in process.stdout.splitlines() if line.startswith("done")}
        async with words_only.postgres.owner() as owner:
            stored = {row["batch"]: row["count"] for row in await owner.all(STORED)}
            orphans = await owner.value(ORPHANS)

        assert set(stored.values()) <= {SIZE}, "all or none"
        assert done <= stored.keys(), "what was acknowledged is there"
        assert orphans == 0
        acknowledged += len(done)

    assert acknowledged >= kills
    hits = await words_only.memory.search(user("ann"), "batch 0 text 1999", limit=1)
    assert [hit.memory.content for hit in hits] == ["batch 0 text 1999"]
