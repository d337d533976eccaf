-- The active skills and tools that match a query best, with the parts that add up to their scores: similarity of meaning, common words, and common
-- words in the name.
--
-- Works in two steps, as the search of memories: first it collects the pool of the nearest by vector and the best by words, then one statement scores
-- the pool. Every vector of the tenant is compared. The weight of a word depends on how rare it is among all entries of the given kinds that the
-- tenant has. Planner settings fix the plan, because a fresh table has no statistics.
--
-- A last row of the kind `removed` reports terms or vectors of entries that plain SQL has deleted (sql/forget_removed.sql).
--
-- `asked` are the words of the query, `named` the same words as terms of names. `vectors` are those of the query by each of `models`; `unrelated` is
-- the cosine that a model gives to unrelated texts. `within`: the ids that may be found; null: all.
create or replace function holdfast.search_registry(
  tenant uuid, kinds text[], wanted int, within uuid[], asked bigint[], named bigint[], models text[], vectors halfvec[],
  unrelated float8[], w_words float8, w_name float8, usual_length float8
) returns table (
  kind text, id uuid, name text, description text, skill text, parts float8[], score float8
) language plpgsql stable
set enable_nestloop = off set enable_seqscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
  each_best constant int := 2 * wanted + 30;
  hidden uuid[] := '{}';
  total float8 := 0;
  known bigint[];
  worths float8[];
  telling bigint[];
  asked_of text; -- a variable, because an array element would be extracted again for every row
  question halfvec;
  length int;
  pool uuid[];
begin
  if 'skill' = any(kinds) then
    total := total + (select count(*) from public.skill_t s where s.host_id = tenant);
    hidden := hidden || array(select s.skill_id from public.skill_t s where s.host_id = tenant and not s.active);
  end if;
  if 'tool' = any(kinds) then
    total := total + (select count(*) from public.tool_t t where t.host_id = tenant);
    hidden := hidden || array(select t.tool_id from public.tool_t t where t.host_id = tenant and (not t.active or t.held)) || array(
      select t.tool_id from public.tool_t t where t.host_id = tenant and t.source_id = any(array(
        select o.source_id from public.tool_source o where o.host_id = tenant and not o.active)));
  end if;

  select array_agg(c.term), array_agg(c.idf / sqrt(c.all_idf)) into known, worths from (
    select i.term, i.idf, greatest(sum(i.idf) filter (where i.term = any(asked)) over (), 1e-6) as all_idf from (
      select x.term, ln(1 + (total - count(*) + 0.5) / (count(*) + 0.5)) as idf from public.registry_term x
      where x.host_id = tenant and x.kind = any(kinds) and x.term = any(asked || named) group by x.term
    ) i
  ) c;
  -- Very common words count in the score, but do not add entries to the pool: that would read almost everything.
  telling := array(
    select w.term from unnest(known, worths) as w (term, worth) where w.worth >= (select max(m.worth) / 4 from unnest(worths) as m (worth)));
  pool := array(
    select x.id from public.registry_term x join unnest(known, worths) as w (term, worth) on w.term = x.term
    where x.host_id = tenant and x.kind = any(kinds) and x.term = any(telling)
      and x.id not in (select h.id from unnest(hidden) as h (id)) and (within is null or x.id in (select a.id from unnest(within) as a (id)))
    group by x.id order by sum(w.worth) desc, x.id limit each_best);
  for place in 1 .. cardinality(models) loop
    asked_of := models[place];
    question := vectors[place];
    length := vector_dims(question);
    pool := pool || array(
      select v.id from public.registry_vector v
      where v.host_id = tenant and v.kind = any(kinds) and v.model = asked_of and vector_dims(v.embedding) = length
        and v.id not in (select h.id from unnest(hidden) as h (id)) and (within is null or v.id in (select a.id from unnest(within) as a (id)))
      order by (v.embedding <#> question) + 0, v.id limit each_best);
  end loop;

  return query
  with entries as materialized (
    select 'skill'::text as kind, s.skill_id as id, s.name::text, s.description::text, s.terms
    from public.skill_t s where s.host_id = tenant and s.skill_id = any(pool) and 'skill' = any(kinds)
    union all
    select 'tool', t.tool_id, t.name, t.description, t.terms
    from public.tool_t t where t.host_id = tenant and t.tool_id = any(pool) and 'tool' = any(kinds)
  ), cosines as materialized (
    select v.kind, v.id, max(-(v.embedding <#> q.vector) - q.floor) as cosine
    from public.registry_vector v
    join unnest(models, vectors, unrelated) as q (model, vector, floor)
      on q.model = v.model and vector_dims(q.vector) = vector_dims(v.embedding)
    where v.host_id = tenant and v.kind = any(kinds) and v.model = any(models) and v.id = any(pool)
    group by v.kind, v.id
  ), parted as (
    select e.kind, e.id, e.name, e.description, coalesce(c.cosine, 0) as cosine, (
        select coalesce(sum(w.worth), 0) from unnest(known, worths) as w (term, worth) where w.term = any(asked) and w.term = any(e.terms)
      ) * w_words * 2.2 / (1 + 1.2 * sqrt(greatest(1, cardinality(e.terms) / usual_length))) as worded, (
        select coalesce(sum(w.worth), 0) from unnest(known, worths) as w (term, worth) where w.term = any(named) and w.term = any(e.terms)
      ) * w_name as in_name
    from entries e left join cosines c on c.kind = e.kind and c.id = e.id
  ), best as materialized (
    select p.*, p.cosine + p.worded + p.in_name as total from parted p
    where p.cosine + p.worded + p.in_name > 0
    order by p.cosine + p.worded + p.in_name desc, p.name limit wanted
  )
  select b.kind, b.id, b.name, b.description, (
    select min(s.name)::text from public.skill_tool_t l join public.skill_t s on s.host_id = tenant and s.skill_id = l.skill_id
    where l.host_id = tenant and l.tool_id = b.id and l.active and s.active
  ), array[b.cosine, b.worded, b.in_name], b.total
  from best b order by b.total desc, b.name;
  return query
  select 'removed', p.id, '', '', null, null::float8[], 0::float8 from unnest(pool) as p (id)
  where p.id not in (select s.skill_id from public.skill_t s where s.host_id = tenant and s.skill_id = any(pool))
    and p.id not in (select t.tool_id from public.tool_t t where t.host_id = tenant and t.tool_id = any(pool)) limit 1;
end $$;
revoke execute on function holdfast.search_registry from public;
grant execute on function holdfast.search_registry to holdfast_app;
