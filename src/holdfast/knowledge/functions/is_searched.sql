-- Whether a search covers a document: by its owner (`spaces` are scope and owner, joined by a colon), its collection, its id, its metadata and
-- its time. An argument that is null filters nothing. PostgreSQL inlines the function.
create or replace function holdfast.is_searched(
  scope text, owner uuid, collection text, id uuid, metadata jsonb, created_at timestamptz,
  spaces text[], collections text[], documents uuid[], containing jsonb, since timestamptz, until timestamptz
) returns boolean language sql immutable parallel safe as $$
  select scope || ':' || owner::text = any(spaces)
    and (collections is null or collection = any(collections))
    and (documents is null or id = any(documents))
    and (containing is null or metadata @> containing)
    and (since is null or created_at >= since)
    and (until is null or created_at < until)
$$;
revoke execute on function holdfast.is_searched from public;
grant execute on function holdfast.is_searched to holdfast_app;
