-- Finds paths between two entities, given by their canonical keys, in the spaces of `scopes` and `owners`: over relationships, and over memories
-- that name both. It searches from both ends, always on the side with fewer entities, and never visits one twice, so that circles end. An
-- entity between the ends that more than `hub` memories name is not passed through. `steps` limits how many links are followed. Returns at most
-- `most` paths, the shortest first, as lists of canonical keys; of the same length, those with more stated relations first. `cut`: a limit was reached, so that there may be more. Without a path, returns one row with a null path.
create or replace function holdfast.graph_paths(
  tenant uuid, scopes text[], owners uuid[], from_key text, to_key text, hops int, most int, hub int, steps int
) returns table (path text[], stated int, cut boolean) language plpgsql
set enable_seqscan = off as $$
declare
  moment constant timestamptz := holdfast.now();
  -- Of each side: the entities that were seen, the newest of them, and the links: from, to, the level of `to`, whether it is stated.
  forth_seen text[] := array[from_key];
  back_seen text[] := array[to_key];
  forth_front text[] := array[from_key];
  back_front text[] := array[to_key];
  forth_from text[] := '{}';
  forth_to text[] := '{}';
  forth_level int[] := '{}';
  forth_stated boolean[] := '{}';
  back_from text[] := '{}';
  back_to text[] := '{}';
  back_level int[] := '{}';
  back_stated boolean[] := '{}';
  forth_depth int := 0;
  back_depth int := 0;
  is_forth boolean;
  found_from text[];
  found_to text[];
  found_stated boolean[];
  followed int;
  skipped boolean;
  complete int;
  was_cut boolean := false;
begin
  while forth_depth + back_depth < hops and steps > 0 loop
    exit when forth_front = '{}' or back_front = '{}';
    is_forth := cardinality(forth_front) <= cardinality(back_front);
    select n.sources, n.targets, n.stated, n.followed, n.skipped into found_from, found_to, found_stated, followed, skipped
    from holdfast.graph_neighbours(
      tenant, scopes, owners, case when is_forth then forth_front else back_front end, array[from_key, to_key],
      case when is_forth then forth_seen else back_seen end, moment, hub, steps) n;
    was_cut := was_cut or skipped or followed >= steps;
    steps := steps - followed;
    if is_forth then
      forth_depth := forth_depth + 1;
      forth_from := forth_from || found_from;
      forth_to := forth_to || found_to;
      forth_stated := forth_stated || found_stated;
      forth_level := forth_level || array_fill(forth_depth, array[coalesce(cardinality(found_to), 0)]);
      forth_front := array(select distinct u.key from unnest(found_to) as u (key));
      forth_seen := forth_seen || forth_front;
    else
      back_depth := back_depth + 1;
      back_from := back_from || found_from;
      back_to := back_to || found_to;
      back_stated := back_stated || found_stated;
      back_level := back_level || array_fill(back_depth, array[coalesce(cardinality(found_to), 0)]);
      back_front := array(select distinct u.key from unnest(found_to) as u (key));
      back_seen := back_seen || back_front;
    end if;
    select count(*) into complete
    from holdfast.graph_routes(
      from_key, to_key, forth_depth, back_depth, forth_from, forth_to, forth_level, forth_stated, back_from, back_to, back_level, back_stated,
      most) r;
    exit when complete >= most;
  end loop;
  was_cut := was_cut or steps <= 0;
  return query
    select r.path, r.stated, was_cut
    from holdfast.graph_routes(
      from_key, to_key, forth_depth, back_depth, forth_from, forth_to, forth_level, forth_stated, back_from, back_to, back_level, back_stated,
      most) r
    order by cardinality(r.path), r.stated desc, r.path limit most;
  if not found then
    return query select null::text[], 0, was_cut;
  end if;
end $$;
revoke execute on function holdfast.graph_paths from public;
grant execute on function holdfast.graph_paths to holdfast_app;

-- One step of a search: the entities that are linked to those of `front`, without those that were seen. `followed`: how many links were read, at
-- most `steps`. `skipped`: some were not, of entities that more than `hub` memories name. What expired, superseded or buried memories say does not count.
create or replace function holdfast.graph_neighbours(
  tenant uuid, scopes text[], owners uuid[], front text[], ends text[], seen text[], moment timestamptz, hub int, steps int
) returns table (sources text[], targets text[], stated boolean[], followed int, skipped boolean) language plpgsql
set enable_seqscan = off set enable_mergejoin = off as $$
begin
  return query
    with members as materialized (
      select e.id, e.canonical
      from unnest(front) as f (key) cross join unnest(scopes, owners) as o (scope, owner)
      join public.entities e on e.tenant_id = tenant and e.scope = o.scope and e.owner = o.owner and e.canonical = f.key
    ), named as materialized (
      select m.id, m.canonical, k.memories
      from members m
      cross join lateral (
        select array_agg(h.memory_id) as memories
        from (
          select l.memory_id from public.memory_entities l
          where l.tenant_id = tenant and l.entity_id = m.id and l.live_until > moment
          limit hub + 1
        ) h
      ) k
    ), links as materialized (
      select n.*
      from (
        select m.canonical as source, r.target_id as other, true as stated
        from members m join public.relationships r on r.tenant_id = tenant and r.source_id = m.id
        where exists (
          select from public.relationship_sources s
          where s.tenant_id = tenant and s.source_id = r.source_id and s.target_id = r.target_id and s.relation_type = r.relation_type
            and s.live_until > moment)
        union all
        select m.canonical, r.source_id, true
        from members m join public.relationships r on r.tenant_id = tenant and r.target_id = m.id
        where exists (
          select from public.relationship_sources s
          where s.tenant_id = tenant and s.source_id = r.source_id and s.target_id = r.target_id and s.relation_type = r.relation_type
            and s.live_until > moment)
        union all
        select n.canonical, l.entity_id, false
        from named n join public.memory_entities l on l.tenant_id = tenant and l.memory_id = any(n.memories) and l.entity_id <> n.id
        where n.canonical = any(ends) or cardinality(n.memories) <= hub
      ) n
      limit steps
    ), found as (
      select l.source, e.canonical as target, bool_or(l.stated) as stated
      from links l join public.entities e on e.tenant_id = tenant and e.id = l.other
      where l.source <> e.canonical
      group by 1, 2
    )
    select coalesce(array_agg(n.source), '{}'), coalesce(array_agg(n.target), '{}'), coalesce(array_agg(n.stated), '{}'),
      (select count(*)::int from links), exists (select from named h where cardinality(h.memories) > hub)
    from found n
    where not exists (select from unnest(seen) as s (key) where s.key = n.target);
end $$;
revoke execute on function holdfast.graph_neighbours from public;
grant execute on function holdfast.graph_neighbours to holdfast_app;

-- Puts the links of both sides together to paths, at most `most`, the shortest first. A path that makes a detour is left out: two of its entities
-- are linked directly, other than its ends.
create or replace function holdfast.graph_routes(
  from_key text, to_key text, forth_depth int, back_depth int, forth_from text[], forth_to text[], forth_level int[], forth_stated boolean[],
  back_from text[], back_to text[], back_level int[], back_stated boolean[], most int
) returns table (path text[], stated int) language plpgsql as $$
begin
  return query
    with recursive forth as materialized (
      select u.* from unnest(forth_from, forth_to, forth_level, forth_stated) as u (source, target, level, stated)
    ), back as materialized (
      select u.* from unnest(back_from, back_to, back_level, back_stated) as u (source, target, level, stated)
    ), places as (
      select from_key as key, 0 as level union select f.target, f.level from forth f
    ), other_places as (
      select to_key as key, 0 as level union select b.target, b.level from back b
    ), meetings as (
      select l.length, p.key, p.level, o.level as other_level
      from generate_series(1, forth_depth + back_depth) as l (length)
      join places p on p.level = l.length - least(l.length, back_depth)
      join other_places o on o.level = least(l.length, back_depth) and o.key = p.key
      order by l.length
      limit 100 * most
    ), lefts as (
      select m.length, m.other_level, m.level, array[m.key] as path, 0 as stated from meetings m
      union all
      select l.length, l.other_level, l.level - 1, f.source || l.path, l.stated + f.stated::int
      from lefts l join forth f on f.target = l.path[1] and f.level = l.level where l.level > 0
    ), rights as (
      select l.* from (
        select k.length, k.other_level as level, k.path, k.stated from lefts k where k.level = 0
        order by k.length, k.stated desc limit 100 * most
      ) l
      union all
      select r.length, r.level - 1, r.path || b.source, r.stated + b.stated::int
      from rights r join back b on b.target = r.path[cardinality(r.path)] and b.level = r.level where r.level > 0
    ), candidates as materialized (
      select row_number() over () as number, c.path, c.stated from (
        select r.path, r.stated from rights r
        where r.level = 0 and (select count(distinct u.key) from unnest(r.path) as u (key)) = cardinality(r.path)
        order by r.length, r.stated desc, r.path limit 100 * most
      ) c
    ), links as (
      select f.source, f.target from forth f union all select f.target, f.source from forth f
      union all select b.source, b.target from back b union all select b.target, b.source from back b
    ), detours as (
      select distinct p.number
      from (
        select c.number, c.path[i] as one, c.path[j] as other
        from candidates c cross join generate_series(1, 3) i cross join generate_series(3, 5) j
        where j > i + 1 and j <= cardinality(c.path) and j - i < cardinality(c.path) - 1
      ) p join links l on l.source = p.one and l.target = p.other
    )
    select c.path, c.stated from candidates c
    where c.number not in (select d.number from detours d)
    order by c.number limit most;
end $$;
revoke execute on function holdfast.graph_routes from public;
grant execute on function holdfast.graph_routes to holdfast_app;
