-- Adds to what rules on trial would have decided otherwise, in the order of their names, so that two writers cannot deadlock. `counted`: the calls and
-- the latest examples of each rule. Keeps `most` examples of a rule, the latest ones.
create or replace function holdfast.count_rule_trials(tenant uuid, counted jsonb, most int) returns void language plpgsql as $$
#variable_conflict use_column
declare
  moment constant timestamptz := holdfast.now();
  called text;
  given jsonb;
  former jsonb;
begin
  for called, given in select e.key, e.value from jsonb_each(counted) e order by e.key collate "C" loop
    insert into public.access_rule_trial (tenant_id, rule, calls, last_at, examples) values (tenant, called, 0, moment, '[]')
    on conflict (tenant_id, rule) do nothing;
    select t.examples into former from public.access_rule_trial t where t.tenant_id = tenant and t.rule = called for update;
    update public.access_rule_trial t
    set calls = t.calls + (given ->> 'calls')::bigint, last_at = moment, examples = (
      select jsonb_agg(e.example order by e.place)
      from jsonb_array_elements(given -> 'examples' || former) with ordinality e (example, place) where e.place <= most
    )
    where t.tenant_id = tenant and t.rule = called;
  end loop;
end $$;
revoke execute on function holdfast.count_rule_trials from public;
grant execute on function holdfast.count_rule_trials to holdfast_app;
