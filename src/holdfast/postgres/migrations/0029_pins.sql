-- The definitions of imported tools are pinned: a hash of what models see of a tool and of where its calls go. A changed definition is held as a
-- proposal until somebody approves it.

-- Whether a tool is held: its source has another definition than the pinned one. It is neither shown nor called until somebody approves that.
alter table tool_t add column held boolean not null default false;
-- The hash of where the calls of a source go, as an administrator set it.
alter table tool_source add column pin text collate "C";

-- How many definitions an import held.
alter table source_import add column held int not null default 0;

-- These functions are here and not in a file of functions: whoever changes them has to pin all tools anew, in a migration.

-- Returns the tags of an operation, sorted, from how its document describes it. There they are names, or objects with a name. At most 100 are read.
create function holdfast.tool_tags(operation jsonb) returns jsonb language plpgsql immutable as $$
begin
  return (
    select coalesce(jsonb_agg(distinct n.name) filter (where jsonb_typeof(n.name) = 'string'), '[]') from (
      select case when jsonb_typeof(t.tag) = 'object' then t.tag -> 'name' else t.tag end as name
      from jsonb_array_elements(case when jsonb_typeof(operation -> 'tags') = 'array' then operation -> 'tags' else '[]' end)
        with ordinality t (tag, place)
      where t.place <= 100
    ) n);
end $$;
revoke execute on function holdfast.tool_tags from public;
grant execute on function holdfast.tool_tags to holdfast_app;

-- Returns the definition that is pinned: what models see of a tool, the request that a call becomes, and the tags that access rules can name. `tool` has
-- the columns of a tool as JSON, and `parameters`. The order of parameters, and what only people see (icons, `_meta`), are left out.
create function holdfast.tool_definition(tool jsonb, name text, operation text) returns jsonb language plpgsql immutable as $$
begin
  return jsonb_build_object(
    'name', name, 'operation', operation, 'title', tool -> 'display_name', 'description', tool -> 'description',
    'kind', tool -> 'implementation_type', 'access', tool -> 'access', 'idempotent', tool -> 'idempotent',
    'request', case when jsonb_typeof(tool -> 'request') = 'object'
      then case when (tool #> '{request,mcp,definition}') - '{_meta,icons}'::text[] = '{}' then tool -> 'request' #- '{mcp,definition}'
        else tool -> 'request' #- '{mcp,definition,_meta}' #- '{mcp,definition,icons}' end end, 'rest', tool -> 'schema_rest',
    'tags', holdfast.tool_tags(tool -> 'openapi_schema'), 'parameters', (
      select coalesce(jsonb_object_agg(p ->> 'name', p - '{name,order_index}'::text[]), '{}') from jsonb_array_elements(tool -> 'parameters') p));
end $$;
revoke execute on function holdfast.tool_definition from public;
grant execute on function holdfast.tool_definition to holdfast_app;

-- Returns the definition of a stored tool.
create function holdfast.stored_definition(tenant uuid, tool uuid) returns jsonb language plpgsql stable as $$
begin
  return (
    select holdfast.tool_definition(jsonb_build_object(
      'display_name', t.display_name, 'description', t.description, 'implementation_type', t.implementation_type, 'access', t.access,
      'idempotent', t.idempotent, 'request', t.request, 'schema_rest', t.schema_rest,
      'openapi_schema', jsonb_build_object('tags', t.openapi_schema -> 'tags'), 'parameters', (
        select coalesce(jsonb_agg(jsonb_build_object(
          'name', p.name, 'param_type', p.param_type, 'required', p.required, 'default_value', p.default_value, 'description', p.description,
          'validation_schema', p.validation_schema)), '[]')
        from public.tool_param_t p where p.host_id = tenant and p.tool_id = tool and p.active)), t.name, t.operation)
    from public.tool_t t where t.host_id = tenant and t.tool_id = tool);
end $$;
revoke execute on function holdfast.stored_definition from public;
grant execute on function holdfast.stored_definition to holdfast_app;

-- Returns the hash of a tool's definition, which is that of one source.
create function holdfast.definition_hash(source uuid, definition jsonb) returns text language plpgsql immutable as $$
begin
  return encode(sha256(convert_to(source || ' ' || definition, 'UTF8')), 'hex');
end $$;
revoke execute on function holdfast.definition_hash from public;
grant execute on function holdfast.definition_hash to holdfast_app;

-- Returns the hash of where the calls of a source go: its base URL, and the address or the command of an MCP server.
create function holdfast.destination_hash(settings jsonb) returns text language plpgsql immutable as $$
begin
  return encode(sha256(convert_to(jsonb_build_array(
    settings #> '{backend,base_url}', settings #> '{backend,mcp,url}', settings #> '{backend,mcp,command}', settings #> '{backend,mcp,env}',
    settings #> '{backend,mcp,prefix}')::text, 'UTF8')), 'hex');
end $$;
revoke execute on function holdfast.destination_hash from public;
grant execute on function holdfast.destination_hash to holdfast_app;

-- The pinned definition of each imported tool: its hash, who approved it, and what is suspicious in it (null: not scanned yet).
create table tool_pin (
  host_id uuid not null,
  tool_id uuid not null,
  hash text collate "C" not null,
  warnings jsonb check (jsonb_typeof(warnings) = 'array'),
  approved_by varchar(126) not null,
  approved_at timestamptz not null default holdfast.now(),
  primary key (host_id, tool_id),
  foreign key (host_id, tool_id) references tool_t (host_id, tool_id) on delete cascade
);
call holdfast.hold_to_tenant('tool_pin', 'host_id');

-- Definitions of tools that a source has and that nobody has approved. An operation of a source has at most one that is `open` or `rejected`, which
-- holds the tool. `old` is the pinned definition (null: a new tool), `new` the proposed one. `item` has the columns to store, `hash` is that of `new`.
create table tool_proposal (
  host_id uuid not null,
  proposal_id uuid not null default holdfast.uuid7(),
  source_id uuid not null,
  operation text collate "C" not null,
  name text collate "C" not null,
  pinned text collate "C",
  hash text collate "C" not null,
  old jsonb,
  new jsonb not null,
  item jsonb not null,
  warnings jsonb not null default '[]' check (jsonb_typeof(warnings) = 'array'),
  state text not null default 'open' check (state in ('open', 'rejected', 'approved', 'withdrawn')),
  found_at timestamptz not null default holdfast.now(),
  found_by varchar(126) not null,
  decided_at timestamptz,
  decided_by varchar(126),
  primary key (host_id, proposal_id),
  foreign key (host_id, source_id) references tool_source (host_id, source_id) on delete cascade
);
create unique index holding_proposal_of_operation on tool_proposal (host_id, source_id, operation) where state in ('open', 'rejected');
create index proposal_by_source on tool_proposal (host_id, source_id, found_at);
call holdfast.hold_to_tenant('tool_proposal', 'host_id');

drop function if exists holdfast.store_tools(uuid, uuid, text[], text[], jsonb[], text); -- its successor has more parameters

-- What is stored counts as approved.
insert into tool_pin (host_id, tool_id, hash, approved_by, approved_at)
select t.host_id, t.tool_id, holdfast.definition_hash(t.source_id, holdfast.stored_definition(t.host_id, t.tool_id)), t.update_user, t.update_ts
from tool_t t where t.source_id is not null;
update tool_source set pin = holdfast.destination_hash(settings);
