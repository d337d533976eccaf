"""The plans of the statements of the graph."""

from tests.rules.plan import ID, LAST, MINUTE, Cold, Plan

SPACES = (["organization"], [ID])
OF_A_TENANT: dict[str, Plan | Cold] = {
    "memory/graph/sql/comparable.sql": Plan("entities_", ("organization", ID, 100)),
    "memory/graph/sql/delete_unnamed.sql": Plan("entities_pkey", (ID, 100)),
    "memory/graph/sql/describe.sql": Plan("entities_by_canonical", (*SPACES, ["acme"])),
    "memory/graph/sql/describe_read.sql": Plan(
        "entities_tenant_id_key_scope_owner_key", (["organization"], [ID], ["acme"], ["A firm."])
    ),
    "memory/graph/sql/entities.sql": Plan("entities_pkey", ([ID],)),
    "memory/graph/sql/erase.sql": Plan("entities_", ("organization", ID)),
    "memory/graph/sql/exact_name.sql": Plan("entities_tenant_id_key_scope_owner_key", (*SPACES, "acme")),
    "memory/graph/sql/export_entities.sql": Plan("entities_", ("organization", ID, ID, 100)),
    "memory/graph/sql/export_merges.sql": Plan("entity_merges_by_keep", ([ID],)),
    "memory/graph/sql/export_relationships.sql": Plan("relationships_pkey", ([ID],)),
    "memory/graph/sql/find_by_memories.sql": Plan("memory_entities_pkey", (*SPACES, [ID], [1.0], 10)),
    "memory/graph/sql/find_names.sql": Plan("entities_by_end", (*SPACES, "acme", "acmf", "emca", "emcb", ["acme"], 10)),
    "memory/graph/sql/hops.sql": Plan("entities_by_canonical", (*SPACES, ["acme"], ["oslo"], 3)),
    "memory/graph/sql/lease_reading.sql": Plan("", (ID, MINUTE), whole=("graph_reading",)),
    "memory/graph/sql/mentions.sql": Plan("entities_by_canonical", (*SPACES, "acme", LAST, 20)),
    "memory/graph/sql/merge_of.sql": Plan("entity_merges_pkey", (ID,)),
    "memory/graph/sql/merges.sql": Plan("entity_merges_by_keep", (*SPACES, "acme")),
    "memory/graph/sql/neighbours.sql": Plan("entities_by_canonical", (*SPACES, "acme", 50, 3)),
    "memory/graph/sql/parted.sql": Plan("entity_merges_by_keep", ([ID],)),
    "memory/graph/sql/release_reading.sql": Plan("", (ID,), whole=("graph_reading",)),
    "memory/graph/sql/reserve_reading.sql": Plan("", (1, 2, ID), whole=("graph_reading",)),
    "memory/graph/sql/settle_reading.sql": Plan("", (1, 1, None, None, ID), whole=("graph_reading",)),
    "memory/graph/sql/supports.sql": Plan("chunk_tenant_id_id_key", ([ID], 100)),
    "memory/graph/sql/unmerge.sql": Plan("entity_merges_pkey", (ID,)),
    "memory/graph/sql/unread_texts.sql": Plan("chunk_tenant_id_id_key", (None, None, 8, 100)),
}
OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "memory/graph/sql/tenants_to_read.sql": Plan("", whole=("tenant",)),
}
ROWS = """
insert into entities (tenant_id, scope, owner, key, canonical, name, type)
  select id, 'organization', id, 'name ' || n, 'name ' || n, 'Name ' || n, 'Name' from busy, generate_series(1, 400) n;
insert into document (tenant_id, scope, owner, name)
  select id, 'organization', id, 'page ' || n from busy, generate_series(1, 20) n;
insert into chunk (
    tenant_id, document_id, chunk_index, char_start, char_end, tokens, length, language, digest, passages, content)
  select d.tenant_id, d.id, n, 0, 1, 1, 1, 'en', gen_random_uuid(), '{0,1}', 'text'
  from document d, generate_series(1, 20) n;
insert into memory_entities (tenant_id, memory_id, entity_id, scope, owner)
  select e.tenant_id, gen_random_uuid(), e.id, e.scope, e.owner from entities e, generate_series(1, 3);
insert into relationships (tenant_id, source_id, target_id, relation_type, scope, owner)
  select e.tenant_id, e.id, e.id, 'KNOWS', e.scope, e.owner from entities e;
insert into relationship_sources (tenant_id, memory_id, source_id, target_id, relation_type)
  select r.tenant_id, gen_random_uuid(), r.source_id, r.target_id, r.relation_type from relationships r;
insert into entity_merges (tenant_id, keep_id, other_id) select e.tenant_id, e.id, e.id from entities e;
"""
