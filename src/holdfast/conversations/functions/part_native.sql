-- Removes the JSON of a framework's event that is stored as several nodes, before one of these nodes changes. The first of them has the
-- JSON; a revision keeps it. From then on, all readers see the nodes themselves.
create or replace function holdfast.part_native(tenant uuid, node uuid, changed_at bigint) returns void language plpgsql as $$
declare
  part record;
  head record;
  next_seq bigint;
begin
  select n.root, n.seq, n.form from public.node n where n.tenant_id = tenant and n.id = node into part;
  if part.form is null then
    return;
  end if;
  select n.id, n.seq from public.node n
    where n.tenant_id = tenant and n.root = part.root and n.seq <= part.seq and n.form = part.form and n.native is not null
    order by n.seq desc limit 1 into head;
  select n.seq from public.node n
    where n.tenant_id = tenant and n.root = part.root and n.seq > head.seq and (n.form is distinct from part.form or n.native is not null)
    order by n.seq limit 1 into next_seq;
  if head.id <> node then
    perform holdfast.keep_revision(tenant, head.id);
    update public.node n set form = null, native = null, version = n.version + 1, revision = changed_at, updated_at = holdfast.now()
      where n.tenant_id = tenant and n.id = head.id;
  end if;
  update public.node n set form = null
    where n.tenant_id = tenant and n.root = part.root and n.seq > head.seq and (next_seq is null or n.seq < next_seq);
end $$;
revoke execute on function holdfast.part_native from public;
grant execute on function holdfast.part_native to holdfast_app;
