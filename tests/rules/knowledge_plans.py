"""How the statements of documents and of their ingestion find their rows."""

from datetime import timedelta

from tests.rules.plan import ID, LAST, Plan

OWNER = ("organization", ID)

OF_A_TENANT: dict[str, Plan] = {
    "knowledge/sql/chunk_range.sql": Plan("document_pkey", (ID, 0, 2, 1)),
    "knowledge/sql/collections.sql": Plan("document_", (None, None, None)),
    "knowledge/sql/count_unembedded_chunks.sql": Plan("chunk_by_model", (["en"], ["m"])),
    "knowledge/sql/discard_upload.sql": Plan("ingest_job_", (ID,)),
    "knowledge/sql/document.sql": Plan("document_pkey", (ID,)),
    "knowledge/sql/documents_by_name.sql": Plan(
        "Index Scan Backward using document_by_name", ("document 7", None, None, None, LAST, 9, None)
    ),
    "knowledge/sql/export_chunks.sql": Plan("chunk_pkey", (ID, -1, False, 9)),
    "knowledge/sql/find_document.sql": Plan("document_", (*OWNER, "default", "document 7")),
    "knowledge/sql/job.sql": Plan("ingest_job_", (ID,)),
    "knowledge/sql/list_documents.sql": Plan("document_pkey", (None, None, ID, 9)),
    "knowledge/sql/list_documents_of_owners.sql": Plan("document_", (["organization"], [ID], None, None, ID, 9)),
    "knowledge/sql/document_chunks.sql": Plan("chunk_pkey", (ID, -1, 9)),
    "knowledge/sql/list_jobs.sql": Plan("ingest_job_", (None, None, None, None, ID, 9, None, None)),
    "knowledge/sql/marks.sql": Plan("document_pkey", (ID, 9)),
    "knowledge/sql/next_document.sql": Plan("document_by_owner", OWNER),
    "knowledge/sql/piece.sql": Plan("ingest_upload_pkey", (ID, 0)),
    "knowledge/sql/read.sql": Plan("document_pkey", (ID, 0, 9)),
    "knowledge/sql/renew_ingest_jobs.sql": Plan("ingest_job_", (ID, [ID], [1], timedelta(seconds=9))),
    "knowledge/sql/reusable_digests.sql": Plan("ingest_chunk_by_digest", (ID, ID, [ID], ["m"])),
    "knowledge/sql/sweep_uploads.sql": Plan("ingest_job_", (timedelta(hours=1), 9)),
    "knowledge/sql/unchanged.sql": Plan("document_", (*OWNER, "default", "a", b"", "512/50", None, None, None, None)),
    "knowledge/sql/unembedded_chunks.sql": Plan("chunk_by_model", ("en", "m", [ID], 9)),
    "knowledge/sql/update_document.sql": Plan("document_pkey", (ID, None, "title", "title", None)),
    "server/routes/sql/document_ids.sql": Plan("document_pkey", (ID, ID, 11)),
    "server/routes/sql/ingest_job_ids.sql": Plan("ingest_job_pkey", (ID, ID, 11)),
    "memory/sql/chunk.sql": Plan("chunk_tenant_id_id_key", (ID,)),
}
OF_THE_SYSTEM: dict[str, Plan] = {
    "knowledge/sql/tenants_with_jobs.sql": Plan("ingest_job_open", (), whole=("tenant",)),
    "knowledge/sql/tenants_with_unembedded_chunks.sql": Plan("chunk_by_model", (["en"], ["m"]), whole=("tenant",)),
    "knowledge/sql/tenants_with_uploads.sql": Plan("ingest_job_", (timedelta(hours=1),), whole=("tenant",)),
}

ROWS = """
insert into document (tenant_id, scope, owner, name)
  select id, 'organization', id, 'document ' || n from busy, generate_series(1, 60) n;
insert into chunk (
    tenant_id, document_id, chunk_index, char_start, char_end, tokens, length, language, embedded, digest,
    passages, content)
  select d.tenant_id, d.id, n, 100 * n, 100 * n + 99, 9, 9, 'en', 'm', gen_random_uuid(), '{0,9}', 'text'
  from document d, generate_series(0, 20) n on conflict do nothing;
insert into ingest_job (tenant_id, document_id, hash, splitting, state)
  select d.tenant_id, d.id, '', '512/50', case when random() < 0.05 then 'pending' else 'done' end from document d;
insert into ingest_upload (tenant_id, job_id, piece, bytes) select tenant_id, id, 0, '' from ingest_job;
insert into ingest_chunk (
    tenant_id, job_id, chunk_index, char_start, char_end, tokens, length, language, model, digest, passages, section,
    content, terms, vectors)
  select j.tenant_id, j.id, n, 100 * n, 100 * n + 99, 9, 9, 'en', 'm', gen_random_uuid(), '{0,9}', '{}', 'text', '{1}',
    array['[1,2]'::halfvec]
  from ingest_job j, generate_series(0, 20) n;
"""
