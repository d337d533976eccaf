-- Changes what is known about a document. Null leaves a column as it is.
update document d set
  metadata = coalesce($3::jsonb, d.metadata), title = coalesce($4::text, d.title), collection = coalesce($6::text, d.collection),
  title_key = case when $4::text is null then d.title_key else $5::text end, title_given = d.title_given or $4::text is not null,
  updated_at = holdfast.now()
where d.tenant_id = $1 and d.id = $2
returning d.id, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.version, d.status, d.error, d.hash, d.media_type, d.size, d.pages, d.chunks,
  d.characters, d.metadata, d.created_at, d.updated_at
