-- The view `tools`, for plain SQL: tools with their call counts. Read only.

-- Returns the JSON Schema of a tool's arguments, built as in skills/parameters.py.
create or replace function holdfast.tool_schema(tool public.tool_t) returns jsonb language plpgsql stable as $$
declare
  rest constant jsonb := tool.schema_rest;
  properties jsonb;
  required jsonb;
begin
  select coalesce(jsonb_object_agg(p.name, case
      when jsonb_typeof(p.validation_schema) = 'boolean' and (p.validation_schema = 'false'
        or p.param_type = 'any' and p.default_value is null and p.description is null) then p.validation_schema
      else case when p.param_type = 'any' then '{}' else jsonb_build_object('type', p.param_type) end
        || case when p.description is null then '{}' else jsonb_build_object('description', p.description) end
        || case when p.default_value is null then '{}' else jsonb_build_object('default', p.default_value) end
        || case when jsonb_typeof(p.validation_schema) = 'object' then p.validation_schema else '{}' end
      end), '{}'),
    coalesce(jsonb_agg(p.name order by p.order_index, p.name) filter (where p.required), '[]')
  into properties, required
  from public.tool_param_t p where p.host_id = tool.host_id and p.tool_id = tool.tool_id and p.active;
  properties := properties || coalesce(rest -> 'properties', '{}');
  required := required || coalesce(rest -> 'required', '[]');
  return jsonb_build_object('type', 'object', 'properties', properties)
    || case when required = '[]' then '{}' else jsonb_build_object('required', required) end
    || (rest - '{type,properties,required}'::text[]);
end $$;
revoke execute on function holdfast.tool_schema from public;
grant execute on function holdfast.tool_schema to holdfast_app, holdfast_tenant;

-- `openapi_schema` is the operation of a tool from an OpenAPI document; for other tools, the specification that a model sees.
create or replace view public.tools (
  host_id, id, app_name, name, display_name, description, openapi_schema, permissions, is_active, call_count, avg_latency_ms, created_at,
  updated_at
) with (security_invoker = true) as
select t.host_id, t.tool_id, t.app_name, t.name, t.display_name, replace(t.description, U&'\+10FFFEfffe', U&'\+10FFFE'),
  coalesce(t.openapi_schema, jsonb_build_object('name', t.name, 'description', t.description, 'parameters', holdfast.tool_schema(t))),
  t.permissions, t.active and not t.held, coalesce(u.calls, 0), u.total_ms / nullif(u.calls, 0), t.created_at, t.update_ts
from public.tool_t t left join public.tool_usage u on u.host_id = t.host_id and u.tool_id = t.tool_id;
grant select on public.tools to holdfast_app, holdfast_tenant;
