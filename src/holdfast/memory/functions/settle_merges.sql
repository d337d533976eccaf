-- Computes anew what entities are merged into: those given, and those that are merged into them. Of merges of one entity, the one that
-- somebody made counts, then the oldest. In a circle, all are merged into the one with the lowest id.
create or replace function holdfast.settle_merges(tenant uuid, ids uuid[]) returns void language plpgsql
set enable_seqscan = off as $$
declare
  affected uuid[] := ids;
  further uuid[] := ids;
  one uuid;
  root uuid;
  next uuid;
  seen uuid[];
begin
  for depth in 1 .. 20 loop
    further := array(
      select distinct m.other_id from public.entity_merges m
      where m.tenant_id = tenant and m.keep_id = any(further) and m.undone_at is null and m.other_id <> all(affected));
    exit when further = '{}';
    affected := affected || further;
  end loop;
  foreach one in array array(select distinct a.id from unnest(affected) as a (id) order by a.id) loop
    root := one;
    seen := array[one];
    loop
      select m.keep_id into next from public.entity_merges m
      where m.tenant_id = tenant and m.other_id = root and m.undone_at is null
      order by m.memory_id is null desc, m.id limit 1;
      exit when not found;
      if next = any(seen) then
        root := (select min(s.id::text)::uuid from unnest(seen[array_position(seen, next):]) as s (id));
        exit;
      end if;
      root := next;
      seen := seen || next;
    end loop;
    update public.entities e set merged_into = nullif(root, e.id), canonical = k.key
    from public.entities k
    where e.tenant_id = tenant and e.id = one and k.tenant_id = tenant and k.id = root
      and (e.merged_into is distinct from nullif(root, e.id) or e.canonical <> k.key);
  end loop;
end $$;
revoke execute on function holdfast.settle_merges from public;
grant execute on function holdfast.settle_merges to holdfast_app;
