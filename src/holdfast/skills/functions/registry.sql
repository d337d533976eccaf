-- Locks the registry of a tenant. Each change locks this row first, before any other row. So changes are serialized: two concurrent changes cannot
-- create a cycle together, and they cannot deadlock.
create or replace function holdfast.lock_registry(tenant uuid) returns void language plpgsql as $$
begin
  insert into public.registry (host_id) values (tenant) on conflict do nothing;
  perform from public.registry r where r.host_id = tenant for update;
end $$;
revoke execute on function holdfast.lock_registry from public;
grant execute on function holdfast.lock_registry to holdfast_app;

-- Returns the next revision, for the change that the caller makes. Holders of a cached copy see by it that their copy is out of date.
create or replace function holdfast.next_revision(tenant uuid) returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  following bigint;
begin
  insert into public.registry (host_id, revision) values (tenant, 1)
  on conflict (host_id) do update set revision = registry.revision + 1
  returning revision into following;
  perform pg_notify('holdfast_registry', '');
  return following;
end $$;
revoke execute on function holdfast.next_revision from public;
grant execute on function holdfast.next_revision to holdfast_app;

-- Stores changes in the history, all with the same new revision. A null in `befores` is a creation, a null in `afters` a removal.
create or replace function holdfast.note_changes(
  tenant uuid, kinds text[], names text[], befores jsonb[], afters jsonb[], person text
) returns void language plpgsql as $$
#variable_conflict use_column
declare
  revised bigint;
begin
  if coalesce(cardinality(kinds), 0) = 0 then
    return;
  end if;
  revised := holdfast.next_revision(tenant);
  insert into public.registry_change (host_id, revision, number, kind, name, operation, before, after, update_user)
  select tenant, revised, c.number, c.kind, c.name,
    case when c.before is null then 'created' when c.after is null then 'removed' else 'changed' end, c.before, c.after, person
  from unnest(kinds, names, befores, afters) with ordinality c (kind, name, before, after, number)
  on conflict do nothing;
end $$;
revoke execute on function holdfast.note_changes from public;
grant execute on function holdfast.note_changes to holdfast_app;

-- Returns the names on a path from one skill to another, including both, by dependencies or by parents (`kind`: needs, parent); null if there is no
-- path. Each skill is visited once, however many paths lead to it.
create or replace function holdfast.way_between(tenant uuid, kind text, begin_id uuid, end_id uuid) returns text[] language plpgsql as $$
declare
  seen uuid[] := array[begin_id];
  came_from uuid[] := array[null::uuid];
  newest uuid[] := seen;
  found_ids uuid[];
  found_from uuid[];
  way uuid[] := array[end_id];
begin
  if begin_id is null or end_id is null then
    return null;
  end if;
  while end_id <> all(seen) loop
    if kind = 'needs' then
      select array_agg(n.next), array_agg(n.previous) into found_ids, found_from from (
        select distinct on (d.depends_on_skill_id) d.depends_on_skill_id as next, d.skill_id as previous from public.skill_dependency_t d
        where d.host_id = tenant and d.skill_id = any(newest) and d.depends_on_skill_id <> all(seen)
      ) n;
    else
      select array_agg(s.parent_skill_id), array_agg(s.skill_id) into found_ids, found_from from public.skill_t s
      where s.host_id = tenant and s.skill_id = any(newest) and s.parent_skill_id <> all(seen);
    end if;
    if found_ids is null then
      return null;
    end if;
    newest := found_ids;
    seen := seen || found_ids;
    came_from := came_from || found_from;
  end loop;
  while way[1] <> begin_id loop
    way := came_from[array_position(seen, way[1])] || way;
  end loop;
  return array(
    select s.name from unnest(way) with ordinality w (id, place)
    join public.skill_t s on s.host_id = tenant and s.skill_id = w.id order by w.place
  );
end $$;
revoke execute on function holdfast.way_between from public;
grant execute on function holdfast.way_between to holdfast_app;
