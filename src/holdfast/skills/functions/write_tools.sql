-- Returns a tool for the history: without data derived from its text, and with its parameters.
create or replace function holdfast.tool_told(tool public.tool_t) returns jsonb language plpgsql stable as $$
begin
  return to_jsonb(tool) - '{description_embedding,terms,embedded}'::text[] || jsonb_build_object('parameters', (
    select coalesce(jsonb_agg(jsonb_build_object(
      'name', p.name, 'param_type', p.param_type, 'required', p.required, 'default_value', p.default_value, 'description', p.description,
      'validation_schema', p.validation_schema, 'order_index', p.order_index) order by p.order_index, p.name), '[]')
    from public.tool_param_t p where p.host_id = tool.host_id and p.tool_id = tool.tool_id and p.active));
end $$;
revoke execute on function holdfast.tool_told from public;
grant execute on function holdfast.tool_told to holdfast_app;

-- Stores tools. Each item has the given columns, and `parameters` if these are given; the others are unchanged. Unchanged tools are not written
-- again. Returns the `change` of each tool: added, changed or same.
create or replace function holdfast.write_tools(tenant uuid, ids uuid[], items jsonb[], person text)
returns table (id uuid, version bigint, change text) language plpgsql as $$
#variable_conflict use_column
declare
  aside constant text[] := '{description_embedding,terms,embedded,aggregate_version,update_ts,update_user}';
  bare constant public.tool_t := jsonb_populate_record(null::public.tool_t, jsonb_build_object(
    'host_id', tenant, 'version', '1.0.0', 'app_name', '', 'display_name', '', 'permissions', '{}'::jsonb, 'schema_rest', '{}'::jsonb,
    'access', 'execute', 'idempotent', false, 'approve', false, 'origin', 'db', 'gone', false, 'held', false, 'aggregate_version', 0, 'active', true,
    'created_at', holdfast.now()));
  changed uuid[];
  changes jsonb[];
  befores jsonb[];
  wanted public.tool_t[];
  said_anew uuid[];
begin
  select array_agg(g.id order by g.place), array_agg(g.item order by g.place), array_agg(c.before order by g.place),
    array_agg(c.item order by g.place),
    array_agg(g.id) filter (where (c.before ->> 'name', c.before ->> 'description') is distinct from ((c.item).name::text, (c.item).description))
  into changed, changes, befores, wanted, said_anew
  from unnest(ids, items) with ordinality g (id, item, place)
    left join public.tool_t t on t.host_id = tenant and t.tool_id = g.id
    cross join lateral (
      select case when t.tool_id is not null then holdfast.tool_told(t) end as before,
        jsonb_populate_record(case when t.tool_id is null then bare else t end, g.item || jsonb_build_object('tool_id', g.id)) as item
      offset 0 -- so that each is computed once
    ) c
  where c.before - aside is distinct from (to_jsonb(c.item) - aside)
    || jsonb_build_object('parameters', coalesce(g.item -> 'parameters', c.before -> 'parameters', '[]'));
  if changed is not null then
    perform holdfast.unindex(tenant, 'tool', said_anew);
    insert into public.tool_t
    select stored.* from unnest(wanted) w cross join lateral jsonb_populate_record(w, jsonb_build_object(
      'aggregate_version', w.aggregate_version + 1, 'update_ts', holdfast.now(), 'update_user', person)
      || case when w.tool_id = any(said_anew) then '{"embedded": null, "description_embedding": null}'::jsonb else '{}' end) stored
    on conflict (host_id, tool_id) do update set
      name = excluded.name, description = excluded.description, implementation_type = excluded.implementation_type,
      implementation_class = excluded.implementation_class, mcp_server_name = excluded.mcp_server_name,
      api_endpoint = excluded.api_endpoint, api_method = excluded.api_method, script_content = excluded.script_content,
      description_embedding = excluded.description_embedding, version = excluded.version, app_name = excluded.app_name,
      display_name = excluded.display_name, openapi_schema = excluded.openapi_schema, permissions = excluded.permissions,
      request = excluded.request, schema_rest = excluded.schema_rest, access = excluded.access, mode = excluded.mode,
      idempotent = excluded.idempotent, approve = excluded.approve, timeout = excluded.timeout, service = excluded.service,
      operation = excluded.operation, gone = excluded.gone, held = excluded.held, aggregate_version = excluded.aggregate_version, active = excluded.active,
      terms = excluded.terms, embedded = excluded.embedded, update_ts = excluded.update_ts, update_user = excluded.update_user;
    insert into public.registry_term (host_id, kind, term, id)
    select tenant, 'tool', t.term, w.tool_id from unnest(wanted) w cross join lateral unnest(w.terms) t (term)
    on conflict do nothing;
    delete from public.tool_param_t p where p.host_id = tenant and p.tool_id = any(array(
      select g.id from unnest(changed, changes) g (id, item) where g.item ? 'parameters'));
    insert into public.tool_param_t (
      host_id, tool_id, name, param_type, required, default_value, description, validation_schema, order_index, update_user)
    select tenant, g.id, p.name, p.param_type, p.required, p.default_value, p.description, p.validation_schema, p.order_index, person
    from unnest(changed, changes) g (id, item)
      cross join lateral jsonb_populate_recordset(null::public.tool_param_t, g.item -> 'parameters') p
    on conflict do nothing;
    perform holdfast.note_changes(
      tenant, array_agg('tool'::text order by g.place), array_agg(t.name::text order by g.place), array_agg(g.before order by g.place),
      array_agg(holdfast.tool_told(t) order by g.place), person)
    from unnest(changed, befores) with ordinality g (id, before, place) join public.tool_t t on t.host_id = tenant and t.tool_id = g.id;
  end if;
  return query
    select g.id, t.aggregate_version, case
      when c.id is null then 'same' when t.aggregate_version = 1 then 'added' else 'changed' end
    from unnest(ids) with ordinality g (id, place) join public.tool_t t on t.host_id = tenant and t.tool_id = g.id
      left join unnest(changed) c (id) on c.id = g.id
    order by g.place;
end $$;
revoke execute on function holdfast.write_tools from public;
grant execute on function holdfast.write_tools to holdfast_app;
