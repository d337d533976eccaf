-- Returns the memories of each owner that match a query best, with their scores and the parts of the scores.
--
-- Search has two steps. The first selects the pool of candidates. If the owner has few memories, the pool has all of them. Otherwise it has the
-- nearest by vector, the best by words, the conversations of the top ten of each, and the turns before and after all these. The second step
-- is one statement that scores the pool. An owner without memories costs one index lookup. docs/scoring.md explains the parts.
--
-- The settings fix the plan, because a fresh table has no statistics: no nested loops (one over 10,000 rows and their vectors took four
-- seconds), no sequential scans, generic plans. The selection by vector and by words is exact within the owner's rows. The exception is
-- organizational memory with a vector index (memory/indexes.py): the index selects the nearest, unless a filter could discard its results.
--
-- `wanted` and `from_importance`: for each owner, the number of memories to return and their minimum importance. `vector_parts` and `term_parts`
-- number the parts of the query: 0 is the whole query, 1… its sentences. `vectors` has the vector of each part by each of `models`. `unrelated`
-- is the cosine that a model gives to unrelated texts; it is subtracted. `weights` has the order of `weights()` in memory/recall.py, and `parts`
-- the order of `ScoreParts` there.
drop function if exists holdfast.search_memories(
  uuid, text, uuid, uuid, int, int[], text[], halfvec[], float8[], int[], bigint[], bigint[], boolean, boolean, int[], int[], boolean[],
  float8[], float8[], float8, float8, float8, text[], jsonb, timestamptz, timestamptz, timestamptz);
create or replace function holdfast.search_memories(
  tenant uuid, scopes text[], owners uuid[], agents uuid[], wanted int[], from_importance float8[],
  vector_parts int[], models text[], vectors halfvec[], unrelated float8[], term_parts int[], asked_terms bigint[],
  names bigint[], first_person boolean, asks_when boolean, date_first int[], date_last int[], date_yearly boolean[], date_fade float8[],
  weights float8[], half_life float8, faded_below float8,
  types text[], containing jsonb, since timestamptz, until timestamptz, as_of timestamptz
) returns table (
  id uuid, scope text, owner uuid, agent_id uuid, user_id uuid, content text, type text, importance float8, trust text, metadata jsonb,
  source text, key text, conversation text, seq bigint, author text, said_at timestamptz, created_at timestamptz, valid_from timestamptz,
  valid_to timestamptz, expires_at timestamptz, superseded_by uuid, pinned boolean, buried_at timestamptz, embedded text, access_count int,
  last_accessed timestamptz, version int, parts float8[], score float8
) language plpgsql stable
set enable_nestloop = off set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  w_words constant float8 := weights[1];
  english_length constant float8 := weights[2];
  chinese_length constant float8 := weights[3];
  w_neighbours constant float8 := weights[4];
  w_around constant float8 := weights[5];
  w_conversation constant float8 := weights[6];
  w_author constant float8 := weights[7];
  w_date constant float8 := weights[8];
  w_when constant float8 := weights[9];
  w_recency constant float8 := weights[10];
  w_importance constant float8 := weights[11];
  w_trust constant float8 := weights[12];
  pool_from constant int := weights[13];
  pool_size constant int := weights[14];
  moment constant timestamptz := coalesce(as_of, holdfast.now());
  ending constant timestamptz := greatest(moment, holdfast.now()); -- an expired memory is never found, not even as of an earlier time
  is_filtered constant boolean := types is not null or containing <> '{}' or since is not null or until is not null or as_of is not null;
  of_scope text;
  of_owner uuid;
  of_agent uuid;
  wanted_count int;
  min_importance float8;
  fades boolean;
  filtered boolean;
  pool uuid[];
  allowed uuid[];
  near uuid[];
  worded uuid[];
  foremost uuid[];
  known_terms bigint[];
  known_idf float8[];
  total int;
begin
  for place in 1 .. cardinality(scopes) loop
    of_scope := scopes[place];
    of_owner := owners[place];
    of_agent := agents[place];
    wanted_count := wanted[place];
    min_importance := from_importance[place];
    fades := of_scope in ('user', 'agent');
    filtered := is_filtered or of_agent is not null;
    if of_agent is null then -- an index-only scan is enough
      pool := array(
        select m.id from public.memory m where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner limit pool_from + 1);
    else
      pool := array(
        select m.id from public.memory m
        where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.agent_id = of_agent limit pool_from + 1);
    end if;
    total := cardinality(pool);
    continue when total = 0;
    known_terms := '{}';
    known_idf := '{}';
    if total > pool_from then
      select count(*) into total from public.memory m where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner;
      if filtered then
        allowed := array(
          select m.id from public.memory m
          where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner
            and m.valid_from <= moment and m.valid_to > moment and m.expires_at > ending and m.buried_at is null
            and m.importance >= min_importance and (types is null or m.type = any(types)) and m.metadata @> containing
            and (since is null or coalesce(m.said_at, m.created_at) >= since)
            and (until is null or coalesce(m.said_at, m.created_at) < until)
            and (of_agent is null or m.agent_id = of_agent));
      end if;
      with hits as materialized (
        select t.term, t.memory_id from public.memory_term t
        where t.tenant_id = tenant and t.scope = of_scope and t.owner = of_owner and t.term = any(asked_terms)
      ), idf as materialized (
        select hits.term, ln(1 + (total - count(*) + 0.5::float8) / (count(*) + 0.5::float8)) as idf from hits group by hits.term
      ), ranked as materialized ( -- more than needed: some of them are hidden
        select hits.memory_id, sum(idf.idf) as worth from hits join idf on idf.term = hits.term
        where not filtered or hits.memory_id in (select a.id from unnest(allowed) as a (id))
        group by hits.memory_id order by worth desc limit 10 * pool_size
      ), best as (
        select r.memory_id from ranked r join public.memory m on m.id = r.memory_id
        where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = any(array(select x.memory_id from ranked x))
          and m.valid_from <= moment and m.valid_to > moment and m.expires_at > ending and m.buried_at is null
          and m.importance >= min_importance
        order by r.worth desc limit pool_size
      )
      select array(select best.memory_id from best), coalesce(array_agg(idf.term), '{}'), coalesce(array_agg(idf.idf), '{}')
      into worded, known_terms, known_idf from idf;
      pool := worded;
      foremost := worded[1:10];
      for n in 1 .. cardinality(models) loop
        continue when vector_parts[n] > 0;
        if filtered then
          near := array(
            select v.memory_id from public.memory_vector v
            where v.tenant_id = tenant and v.scope = of_scope and v.owner = of_owner and v.model = models[n]
              and v.dimensions = vector_dims(vectors[n]) and v.memory_id = any(allowed)
            order by (v.embedding <#> vectors[n]) + 0 limit pool_size);
        elsif of_scope = 'organization' and exists (
          select from public.memory_index i where i.tenant_id = tenant and i.indexed = 'memory' and i.model = models[n]
        ) then
          near := holdfast.nearest_indexed(tenant, models[n], vectors[n], moment, min_importance, pool_size);
        else
          near := array(
            select v.memory_id from public.memory_vector v
            where v.tenant_id = tenant and v.scope = of_scope and v.owner = of_owner and v.model = models[n]
              and v.dimensions = vector_dims(vectors[n]) and v.live_until > moment and v.importance >= min_importance::float4
            order by (v.embedding <#> vectors[n]) + 0 limit pool_size);
        end if;
        pool := pool || near;
        foremost := foremost || near[1:10];
      end loop;
      -- The score of a turn depends on its conversation, so the whole conversations of the best candidates are scored.
      pool := pool || array(
        select m.id from public.memory m
        where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.conversation = any(array(
          select l.conversation from public.memory l
          where l.tenant_id = tenant and l.scope = of_scope and l.owner = of_owner and l.id = any(foremost)))
        order by m.conversation, m.seq limit 1000);
      if cardinality(pool) = 0 then -- no vector and no word of the query matches: take the newest memories
        pool := array(
          select m.id from public.memory m where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner
          order by m.id desc limit pool_size);
      end if;
      pool := pool || holdfast.memory_neighbours(tenant, of_scope, of_owner, pool);
    end if;

    return query
    with memories as materialized (
      select m.id, m.conversation as talk, m.seq, m.said_at,
        case when m.conversation is null then (m.said_at at time zone 'UTC')::date end as day,
        m.importance as weight, m.trust as trusted, m.pinned, m.tells_when,
        w_words * 2.2 / (1 + 1.2 * sqrt(greatest(1, m.length / case m.language when 'en' then english_length else chinese_length end)))
          as per_word,
        (m.author_terms && names or first_person and m.by_owner) as named,
        case when fades then power(2, -least(1000, holdfast.half_lives( -- a larger exponent would underflow
          greatest(0, date_part('epoch', moment - m.last_accessed)), half_life, m.importance, m.access_count))) else 1 end as retention,
        m.importance >= min_importance and (not filtered
          or (types is null or m.type = any(types)) and m.metadata @> containing
          and (since is null or coalesce(m.said_at, m.created_at) >= since)
          and (until is null or coalesce(m.said_at, m.created_at) < until)) as wanted
      from public.memory m
      where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = any(pool)
        and m.valid_from <= moment and m.valid_to > moment and m.expires_at > ending and m.buried_at is null
        and (of_agent is null or m.agent_id = of_agent)
    ), question as materialized (
      select q.part, q.model, q.vector, q.floor from unnest(vector_parts, models, vectors, unrelated) as q (part, model, vector, floor)
    ), cosines as materialized (
      select v.memory_id, q.part, -(v.embedding <#> q.vector) - q.floor as cosine
      from public.memory_vector v join question q on q.model = v.model and vector_dims(q.vector) = v.dimensions
      where v.tenant_id = tenant and v.scope = of_scope and v.owner = of_owner and v.model = any(models) and v.memory_id = any(pool)
    ), asked as materialized (
      select t.part, t.term from unnest(term_parts, asked_terms) as t (part, term)
    ), hits as materialized (
      select t.term, t.memory_id from public.memory_term t
      where t.tenant_id = tenant and t.scope = of_scope and t.owner = of_owner and t.term = any(asked_terms) and t.memory_id = any(pool)
    ), idf as (
      select hits.term, ln(1 + (total - count(*) + 0.5::float8) / (count(*) + 0.5::float8)) as idf
      from hits where total <= pool_from group by hits.term
      union all
      select k.term, k.idf from unnest(known_terms, known_idf) as k (term, idf)
    ), weighted as (
      select asked.part, asked.term, idf.idf / sqrt(greatest(sum(idf.idf) over (partition by asked.part), 1e-6)) as worth
      from asked join idf on idf.term = asked.term
    ), matches as materialized (
      select hits.memory_id, weighted.part, sum(weighted.worth) as matched
      from hits join weighted on weighted.term = hits.term group by hits.memory_id, weighted.part
    ), spoken as ( -- for a query of several sentences: the sentence that the memory matches best, as [sum, vector, words]
      select p.id, max(array[p.cosine + p.worded, p.cosine, p.worded]) as best
      from (
        select m.id, coalesce(c.cosine, 0) as cosine, m.per_word * coalesce(x.matched, 0) as worded
        from memories m
        cross join (select a.part from asked a where a.part > 0 union select q.part from question q where q.part > 0) s
        left join cosines c on c.memory_id = m.id and c.part = s.part
        left join matches x on x.memory_id = m.id and x.part = s.part
      ) p group by p.id
    ), summed as (
      select b.*,
        case when b.best is null then b.cosine else (b.cosine + b.best[2]) / 2 end as vector,
        case when b.best is null then b.worded else (b.worded + b.best[3]) / 2 end as words,
        case when b.best is null then b.cosine + b.worded else (b.cosine + b.worded + b.best[1]) / 2 end as s
      from (
        select m.*, coalesce(c.cosine, 0) as cosine, m.per_word * coalesce(x.matched, 0) as worded, spoken.best
        from memories m
        left join cosines c on c.memory_id = m.id and c.part = 0
        left join matches x on x.memory_id = m.id and x.part = 0
        left join spoken on spoken.id = m.id
        offset 0
      ) b
    ), placed as (
      select c.*, c.talk is not null and c.seq is not null as said,
        lag(c.turn_s) over turns as before, lead(c.turn_s) over turns as after,
        greatest(c.s, lag(c.turn_s) over turns, lead(c.turn_s) over turns, lag(c.turn_s, 2) over turns, lead(c.turn_s, 2) over turns)
          as around,
        max(c.s) over turns as best_s, count(*) over turns as n
      from (select summed.*, case when summed.seq is not null then summed.s end as turn_s from summed) c
      window turns as ( -- one window for all functions: lag and lead ignore the frame
        partition by c.talk, c.day order by c.seq, c.id rows between unbounded preceding and unbounded following)
    ), parted as (
      select p.id, p.vector, p.words,
        case when p.said then w_neighbours * (greatest(coalesce(p.before, p.s), coalesce(p.after, p.s)) - p.s)
          + w_around * (p.around - p.s) else 0 end as neighbours,
        case when p.talk is not null or p.day is not null then w_conversation * (p.n - 1) / (p.n + 1) * (p.best_s - p.s) else 0 end
          as conversation,
        case when p.named then w_author else 0 end as author,
        case when asks_when and p.tells_when then w_when else 0 end + case when cardinality(date_first) = 0 or p.said_at is null then 0
          else w_date * holdfast.date_value((p.said_at at time zone 'UTC')::date, date_first, date_last, date_yearly, date_fade) end as date,
        w_recency * p.retention as recency, w_importance * p.weight as importance,
        w_trust * case p.trusted when 'system' then 1 when 'user' then 1 when 'agent' then 0.8 when 'tool' then 0.6 else 0.2 end as trust
      from placed p
      where p.wanted and (not fades or p.pinned or p.retention >= faded_below)
      offset 0
    ), best as materialized (
      select p.*, p.vector + p.words + p.neighbours + p.conversation + p.author + p.date + p.recency + p.importance + p.trust as total
      from parted p order by total desc, p.id desc limit wanted_count
    )
    select m.id, m.scope, m.owner, m.agent_id, m.user_id, m.content, m.type, m.importance, m.trust, m.metadata, m.source, m.key,
      m.conversation, m.seq, m.author, m.said_at, m.created_at, m.valid_from, m.valid_to, m.expires_at, m.superseded_by, m.pinned,
      m.buried_at, m.embedded, m.access_count, m.last_accessed, m.version,
      array[b.vector, b.words, b.neighbours, b.conversation, b.author, b.date, b.recency, b.importance, b.trust], b.total
    from best b
    join public.memory m on m.id = b.id
    where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = any(array(select x.id from best x))
    order by b.total desc, b.id desc;
  end loop;
end $$;
revoke execute on function holdfast.search_memories from public;
grant execute on function holdfast.search_memories to holdfast_app;
