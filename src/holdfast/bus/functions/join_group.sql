-- Renews a member's lease, and removes members whose lease has expired. Returns all live members, and whether one was added or removed.
-- The group's row stays locked until the commit, so that one member at a time assigns partitions.
create or replace function holdfast.join_group(tenant uuid, "group" text, member uuid, name text, reads text[], lease interval)
returns table (id uuid, topics text[], changed boolean) language plpgsql as $$
#variable_conflict use_column
declare
  came boolean;
  gone int;
begin
  insert into public.consumer_group as g (tenant_id, name) values (tenant, "group")
    on conflict (tenant_id, name) do update set seen_at = holdfast.now();
  delete from public.consumer_member m where m.tenant_id = tenant and m.group_name = "group" and m.leased_until <= holdfast.now() and m.id <> member;
  get diagnostics gone = row_count;
  update public.consumer_member m set leased_until = holdfast.now() + lease, heard_at = holdfast.now()
    where m.tenant_id = tenant and m.group_name = "group" and m.id = member;
  came := not found;
  if came then
    insert into public.consumer_member (tenant_id, group_name, id, name, topics, leased_until)
      values (tenant, "group", member, join_group.name, reads, holdfast.now() + lease);
  end if;
  return query select m.id, m.topics, came or gone > 0 from public.consumer_member m where m.tenant_id = tenant and m.group_name = "group";
end $$;
revoke execute on function holdfast.join_group from public;
grant execute on function holdfast.join_group to holdfast_app;

-- Removes a member from its group, and releases its partitions.
create or replace function holdfast.leave_group(tenant uuid, "group" text, member uuid) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform from public.consumer_group g where g.tenant_id = tenant and g.name = "group" for update;
  update public.consumer_offset o set owner = null, on_trial = false where o.tenant_id = tenant and o.group_name = "group" and o.owner = member;
  delete from public.consumer_member m where m.tenant_id = tenant and m.group_name = "group" and m.id = member;
end $$;
revoke execute on function holdfast.leave_group from public;
grant execute on function holdfast.leave_group to holdfast_app;
