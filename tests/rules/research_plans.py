"""Plans of the statements of research, and enough rows that a missing index shows."""

from datetime import timedelta

from tests.rules.plan import ID, LAST, MINUTE, Cold, Plan

OF_DOCUMENTS = Cold("it reads documents once for many model calls, of a corpus that may be all that there are")

OF_A_TENANT: dict[str, Plan | Cold] = {
    "knowledge/research/sql/cancel.sql": Plan("research_pkey", (ID,)),
    "knowledge/research/sql/chunk_sizes.sql": OF_DOCUMENTS,
    "knowledge/research/sql/chunks.sql": OF_DOCUMENTS,
    "knowledge/research/sql/claim.sql": Plan("research_open", (ID, MINUTE)),
    "knowledge/research/sql/document_owners.sql": OF_DOCUMENTS,
    "knowledge/research/sql/document_sections.sql": OF_DOCUMENTS,
    "knowledge/research/sql/documents.sql": OF_DOCUMENTS,
    "knowledge/research/sql/erase.sql": Plan("research_by_user", ("user 7",)),
    "knowledge/research/sql/events.sql": Plan("research_event_pkey", (ID, 0, 100)),
    "knowledge/research/sql/existing_chunks.sql": OF_DOCUMENTS,
    "knowledge/research/sql/export.sql": Plan("research_", ("user 7", ID, 20)),
    "knowledge/research/sql/fail_call.sql": Plan("research_pkey", (ID, 1, ID, True, True)),
    "knowledge/research/sql/finish.sql": Plan("research_pkey", (ID, 1, "done", {}, None)),
    "knowledge/research/sql/forget.sql": Plan("research_finished", (timedelta(days=90), 100)),
    "knowledge/research/sql/get.sql": Plan("research_pkey", (ID,)),
    "knowledge/research/sql/list.sql": Plan("Index Scan Backward using research_pkey", (LAST, 50)),
    "knowledge/research/sql/list_of_user.sql": Plan(
        "Index Scan Backward using research_by_user", (LAST, 5, "user 7", None)
    ),
    "knowledge/research/sql/release.sql": Plan("research_pkey", (ID, 1, MINUTE)),
    "knowledge/research/sql/remove.sql": Plan("research_pkey", (ID,)),
    "knowledge/research/sql/renew.sql": Plan("research_pkey", ([ID], [1], MINUTE)),
    "knowledge/research/sql/resume.sql": Plan("research_pkey", (ID, 1, 1)),
    "knowledge/research/sql/settle_call.sql": Plan("research_pkey", (ID, 1, ID, "So.", "end", "m", 1, 1, 0.1)),
    "knowledge/research/sql/spread.sql": OF_DOCUMENTS,
    "knowledge/research/sql/step.sql": Plan("research_step_pkey", (ID, "found:0")),
    "knowledge/research/sql/store_step.sql": Plan("research_pkey", (ID, 1, "found:0", [1])),
    "knowledge/research/sql/tell.sql": Plan("research_pkey", (ID, 1, "read:0:1", "read", {})),
    "server/routes/sql/research_ids.sql": Plan("research_pkey", (ID, ID, 11)),
}

OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "knowledge/research/sql/due_tenants.sql": Plan("research_open"),
    "knowledge/research/sql/tenants_with_old_research.sql": Plan("research_finished", (timedelta(days=90),)),
}

ROWS = """
insert into research (
  tenant_id, id, user_name, question, target, model, max_calls, max_tokens, state, leased_until, created_at,
  finished_at, events)
  select id, gen_random_uuid(), 'user ' || n % 300, 'Why?', '{}', 'm', 1, 1,
    case when n % 100 = 0 then 'queued' else 'done' end, null, holdfast.now(),
    case when n % 100 > 0 then holdfast.now() - n * interval '2 hours' end, 2
  from busy, generate_series(1, 3000) n;
insert into research_event (tenant_id, research_id, seq, name, kind, data)
  select tenant_id, id, n, 'event ' || n, 'read', '{}' from research, generate_series(1, 3) n;
insert into research_call (tenant_id, research_id, key, step, reserved)
  select tenant_id, id, gen_random_uuid(), 'read', 1 from research, generate_series(1, 3) n;
insert into research_step (tenant_id, research_id, name, result)
  select tenant_id, id, 'step ' || n, '[1]' from research, generate_series(1, 3) n;
"""
