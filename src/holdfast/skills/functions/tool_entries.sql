-- Tools for reading. A tool of a source is only active with its pinned definition, and only where its calls go to the pinned destination.
-- `held`: nobody has approved its definition: the source has another one (proposal), or plain SQL has changed it (altered). `told` is everything that
-- a call needs, as one value. Other tables are read, and hashes are computed, only if a query uses their columns.
create or replace view holdfast.tool_entries with (security_invoker = true) as
select t.host_id, t.tool_id, t.name, t.aggregate_version, t.version, t.app_name, t.display_name, t.implementation_type, t.origin, t.source_id,
  o.name as source, t.operation, t.permissions,
  t.active and not t.held and o.active is not false and c.is_pinned as active, t.created_at, t.update_ts, t.update_user,
  coalesce(u.calls, 0) as calls, coalesce(u.failures, 0) as failures, u.total_ms / nullif(u.calls, 0) as latency_ms,
  jsonb_build_object(
    'tool_id', t.tool_id, 'name', t.name, 'description', t.description, 'implementation_type', t.implementation_type,
    'implementation_class', t.implementation_class, 'mcp_server_name', t.mcp_server_name, 'api_endpoint', t.api_endpoint,
    'api_method', t.api_method, 'request', t.request, 'schema_rest', t.schema_rest, 'access', t.access, 'mode', t.mode,
    'idempotent', t.idempotent, 'approve', t.approve, 'timeout', t.timeout, 'service', t.service, 'aggregate_version', t.aggregate_version,
    'source', o.name, 'backend', o.settings -> 'backend', 'tags', holdfast.tool_tags(t.openapi_schema), 'parameters', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'name', p.name, 'param_type', p.param_type, 'required', p.required, 'default_value', p.default_value,
        'description', p.description, 'validation_schema', p.validation_schema, 'order_index', p.order_index
      )), '[]')
      from public.tool_param_t p where p.host_id = t.host_id and p.tool_id = t.tool_id and p.active
    )
  ) as told,
  case when t.held then 'proposal' when not c.is_pinned then 'altered' end as held, n.hash, n.warnings
from public.tool_t t
  left join public.tool_source o on o.host_id = t.host_id and o.source_id = t.source_id
  left join public.tool_pin n on n.host_id = t.host_id and n.tool_id = t.tool_id
  left join public.tool_usage u on u.host_id = t.host_id and u.tool_id = t.tool_id
  cross join lateral (
    select t.source_id is null or coalesce(
      o.pin = holdfast.destination_hash(o.settings) and n.hash = holdfast.definition_hash(t.source_id, holdfast.stored_definition(t.host_id, t.tool_id)), false
    ) as is_pinned offset 0 -- computed once
  ) c;
revoke all on holdfast.tool_entries from public;
grant select on holdfast.tool_entries to holdfast_app;
