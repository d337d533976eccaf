from typing import Any

import pytest

from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.memory import memory_indexer, user
from holdfast.postgres.database import Database
from tests.memory.conftest import OpenWith
from tests.memory.test_recall import VECTORS

ANN = user("ann")
# Two owners more, as large as the one who is asked for.
OTHERS = """
insert into memory (tenant_id, scope, owner, digest, content, length, terms, language, conversation, seq)
select m.tenant_id, m.scope, o.owner, gen_random_uuid(), m.content, m.length, m.terms, m.language, m.conversation, m.seq
from memory m, (values (gen_random_uuid()), (gen_random_uuid())) as o (owner);
insert into memory_term (tenant_id, scope, owner, term, memory_id)
select m.tenant_id, m.scope, m.owner, t.term, m.id from memory m, unnest(m.terms) as t (term)
on conflict do nothing;
"""
SCANS = """
select sum(seq_scan)::int as whole, sum(idx_scan)::int as looked_up
from pg_stat_xact_user_tables where $1::uuid is not null and relname ^@ 'memory'
"""


@pytest.mark.req("MEM-05", "ENG-04")
async def test_a_search_of_ten_thousand_reads_no_table_whole_and_looks_up_few(
    models: Store, words_only: Engine, open_with: OpenWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_indexer, "FIRST", 3600)  # no vectors of the model's own among these
    for start in (0, 5000):
        items = [
            {
                "content": f"tea number {n} of {n % 50}",
                "conversation": f"c{n // 100}",
                "seq": n,
                "metadata": {"even": n % 2 == 0},
            }
            for n in range(start, start + 5000)
        ]
        await words_only.memory.remember_many(ANN, items)
    async with open_with(embedding={"folder": models.cache}) as engine, engine.postgres.owner() as owner:
        await owner.script(OTHERS)
        await owner.run(VECTORS, engine.embeddings.model("en"))
        sent: list[tuple[Any, ...]] = []
        real = Database.all

        def spy(self: Database, *args: Any) -> Any:
            sent.append(args)
            return real(self, *args)

        monkeypatch.setattr(Database, "all", spy)
        hits = [
            await engine.memory.search(ANN, "Which tea is number 77?", where=where) for where in (None, {"even": True})
        ]

        searches = [args for args in sent if "search_memories" in args[0]]
        scans: list[tuple[int, int]] = []
        for prepare in ("select", "analyze"):  # without statistics, and with them
            await owner.script(prepare)
            for search in searches:
                async with engine.transaction() as tx:
                    [before] = await tx.all(SCANS)  # of former statements of the connection, not yet reported
                    await tx.all(*search)
                    [after] = await tx.all(SCANS)
                    scans.append((after["whole"] - before["whole"], after["looked_up"] - before["looked_up"]))

    assert all(hits)
    assert len(searches) == 2
    assert [whole for whole, _ in scans] == [0, 0, 0, 0]
    assert all(looked_up < 5000 for _, looked_up in scans), scans
