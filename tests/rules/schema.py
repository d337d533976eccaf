"""Rules for the schema, read off the catalogue of a migrated database.

Each rule is a query for what breaks it, told in a sentence. They hold tenants apart, and keep the schema
distributable by tenant.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import OwnerConnection
from tests.rules.plans import OWNER, SYSTEM, roles_of
from tests.rules.tree import beyond

# Tables without a tenant of their own to be held to, and why.
GLOBAL_TABLES = {
    "public.tenant": "a tenant is looked up by name before there is one to ask for",
    "public.api_key": "a key is looked up by its hash before anybody knows whose it is",
    "public.relay_lease": "a process carries records of all tenants to Kafka, and its lease is no tenant's",
    "public.memory_model": "processes serve all tenants, and which models they want is no tenant's",
    "holdfast.tenant_login": "whose a login is, is looked up before there is a tenant to ask for",
    "public.identity_key": "an installation is one issuer, and its keys are no tenant's",
    "public.memory_setting": "a view has no settings, and which ones processes have is no tenant's",
    "holdfast.migration": "belongs to the schema",
    "holdfast.function_file": "belongs to the schema",
}
# What the role across tenants reaches, and why.
SYSTEM_TABLES = {
    "public.tenant": "makes and finds tenants",
    "public.api_key": "makes and recognises keys",
    "public.topic": "relays to Kafka; counts topics for metrics",
    "public.topic_partition": "relays to Kafka what its counters say is new; counts records for metrics",
    "public.audit_open": "finds the tenants who have entries of the audit to seal",
    "public.audit_chain": "publishes the ends of all chains of the audit",
    "public.record": "relays to Kafka; tells for metrics how old the oldest is that nobody has read",
    "public.consumer_offset": "moves the relay's positions; tells for metrics how far groups are behind",
    "public.dead_letter": "counts them for metrics",
    "public.command": "counts those that wait or are being done for metrics",
    "public.runs": "finds the tenants who have old runs to delete",
    "public.tool_executions": "finds the tenants who have calls of tools to settle or to delete",
    "public.sandbox_executions": "finds the tenants who have old records of the sandbox",
    "public.mcp_session": "finds the tenants who have sessions of MCP clients to end",
    "public.skill_t": "finds the tenants who have skills to index",
    "public.source_check": "finds the tenants who have sources to check, and the files that are watched",
    "public.usage_limit": "finds the tenants who have removed limits to forget",
    "public.limit_bucket": "finds the tenants who have full buckets to forget",
    "public.limit_slots": "finds the tenants who have slots of dead processes to forget",
    "public.budget": "finds the tenants who have old budgets to forget",
    "public.research": "finds the tenants who have research to carry out or to forget",
    "public.budget_reservation": "finds the tenants who have reservations of dead processes to settle",
    "public.model_usage": "finds the tenants who have old usage to forget",
    "public.tool_t": "finds the tenants who have tools to index",
    "public.tool_source": "finds the MCP servers that announce changes",
    "public.relay_lease": "shares the relay to Kafka among processes",
    "public.identity_key": "signs who calls, for the back ends of all tenants",
    "public.memory": "finds the tenants who have memories to delete or to embed; counts them for metrics",
    "public.chunk": "finds the tenants who have chunks of documents to embed",
    "public.ingest_job": "finds the tenants who have documents to ingest, or uploads to delete",
    "public.memory_model": "says which model processes want for a language",
    "public.memory_setting": "tells plain SQL how long memories of sessions live",
    "public.memory_tombstone": "forgets in time that there were memories",
}
# What everybody may call: it reads and changes nothing.
PUBLIC_FUNCTIONS = {"holdfast.now", "holdfast.uuid7"}

_OURS = """
with ours as (
  select n.nspname || '.' || c.relname as name, c.*
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('public', 'holdfast')
    and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
), held as (
  select o.oid, o.name, o.relispartition, o.relrowsecurity, o.relforcerowsecurity, t.attname as tenant, t.attnum
  from ours o left join pg_attribute t on t.attrelid = o.oid and t.attname in ('tenant_id', 'host_id')
    and t.atttypid = 'uuid'::regtype and t.attnotnull
  where o.relkind in ('r', 'p') and not o.name = any($1)
), granted as (
  select name, relkind, relispartition, coalesce(rolname, 'PUBLIC') as role, privilege_type as privilege
  from ours o cross join aclexplode(o.relacl) a left join pg_roles r on r.oid = a.grantee
  where a.grantee <> o.relowner
), functions as (
  select n.nspname || '.' || p.proname as name, p.* from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname in ('public', 'holdfast')
    and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype = 'e')
)
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold, and the query for what breaks it; $1: global tables, $2: the system's tables, $3: functions."""

    name: str
    broken_by: str


RULES = (
    Rule("every table has a tenant", "select name from held where tenant is null"),
    Rule(
        "row-level security is on and forced",
        "select name from held where not relispartition and not (relrowsecurity and relforcerowsecurity)",
    ),
    Rule(
        "the application sees the tenant it asked for, and fails if it asked for none",
        """
        select name from held where not relispartition and not exists (
          select from pg_policy p where polrelid = held.oid and polcmd = '*' and polpermissive
            and polroles = array['holdfast_app'::regrole::oid]
            and pg_get_expr(polqual, polrelid)
              = format('(%I = (current_setting(''holdfast.tenant''::text))::uuid)', tenant)
            and pg_get_expr(polwithcheck, polrelid) = pg_get_expr(polqual, polrelid))
        """,
    ),
    Rule(
        "no other policy opens a table to the application, a tenant's login or everybody",
        """
        select name || ' ' || polname from held join pg_policy on polrelid = held.oid
        where polname not in ('of_the_tenant_asked_for', 'of_the_login')
          and polroles && array[0::oid, 'holdfast_app'::regrole, 'holdfast_tenant'::regrole]
        """,
    ),
    Rule(
        "a tenant's login is held to the tenant whose it is",
        """
        select name from held where not relispartition and not exists (
          select from pg_policy where polrelid = held.oid and polroles = array['holdfast_tenant'::regrole::oid]
            and pg_get_expr(polqual, polrelid) = format('(%I = holdfast.tenant_of_login())', tenant)
            and pg_get_expr(polwithcheck, polrelid) = pg_get_expr(polqual, polrelid))
        """,
    ),
    Rule(
        "no policy has a subquery",
        """
        select name || ' ' || polname from ours join pg_policy on polrelid = ours.oid
        where concat(pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) ~ 'SELECT'
        """,
    ),
    Rule(
        "every table has a primary key",
        """
        select name from ours where relkind in ('r', 'p')
          and not exists (select from pg_index where indrelid = ours.oid and indisprimary)
        """,
    ),
    Rule(
        "primary and unique keys lead with the tenant",
        """
        select name || ' ' || indexrelid::regclass from held join pg_index on indrelid = held.oid
        where indisunique and indkey[0] is distinct from attnum
        """,
    ),
    Rule(
        "foreign keys lead with the tenant",
        """
        select name || ' ' || conname from held join pg_constraint c on conrelid = held.oid and contype = 'f'
        where conkey[1] is distinct from attnum or not (
          (confrelid = 'public.tenant'::regclass and cardinality(conkey) = 1)
          or exists (select from held t where t.oid = confrelid and t.attnum = confkey[1]))
        """,
    ),
    Rule(
        "no table has a trigger",
        """
        select name || ' ' || tgname from ours join pg_trigger on tgrelid = ours.oid
        where relkind in ('r', 'p') and not tgisinternal
        """,
    ),
    Rule(
        "no counter has 32 bits",
        """
        select name || ' ' || attname from ours join pg_attribute a on attrelid = ours.oid
          left join pg_attrdef on adrelid = ours.oid and adnum = attnum
        where relkind in ('r', 'p') and atttypid in ('int2'::regtype, 'int4'::regtype)
          and (attidentity <> '' or pg_get_expr(adbin, adrelid) like 'nextval%')
        """,
    ),
    Rule(
        "a view runs with the rights of who asks",
        """
        select name from ours where relkind = 'm' or relkind = 'v'
          and not coalesce(reloptions && array['security_invoker=true', 'security_invoker=on'], false)
        """,
    ),
    Rule(
        "a view is written through its own triggers or not at all",
        # The server tells events by other bits than a trigger does: update, insert, delete.
        """
        select name from ours where relkind = 'v' and exists (
          select from (values (4, 16), (8, 4), (16, 8)) event (automatic, fires)
          where pg_relation_is_updatable(ours.oid, false) & automatic <> 0 and not exists (
            select from pg_trigger where tgrelid = ours.oid and tgtype & 64 <> 0 and tgtype & fires <> 0))
        """,
    ),
    Rule(
        "a function with its owner's rights has its own search_path",
        """
        select name from functions
        where prosecdef and not coalesce(array_to_string(proconfig, ',') ~ 'search_path=', false)
        """,
    ),
    Rule(
        "a function with its owner's rights belongs to no superuser",
        """
        select name from functions where prosecdef and proowner <> 'holdfast_owner'::regrole
        union all
        select rolname from pg_roles where rolname = 'holdfast_owner' and (rolsuper or rolcreaterole or rolcanlogin)
        """,
    ),
    Rule(
        "no function takes the row of a table",
        """
        select name from functions f where exists (
          select from unnest(f.proargtypes::oid[]) argument join pg_type t on t.oid = argument or t.typarray = argument
            join ours on ours.oid = t.typrelid and ours.relkind <> 'c')
        """,
    ),
    Rule(
        "no function forces a generic plan",
        "select name from functions where proconfig && array['plan_cache_mode=force_generic_plan']",
    ),
    Rule(
        "no global table has a foreign key",
        """
        select name || '.' || conname from ours join pg_constraint on conrelid = ours.oid
        where contype = 'f' and name = any($1)
        """,
    ),
    Rule(
        "not everybody may call a function",
        """
        select name from functions f where not name = any($3) and exists (
          select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)
        """,
    ),
    Rule("a partition has no grant of its own", "select name || ' ' || role from granted where relispartition"),
    Rule(
        "a tenant's login only reads",
        """
        select name || ' ' || privilege from granted
        where role = 'holdfast_tenant' and relkind in ('r', 'p') and privilege <> 'SELECT'
        """,
    ),
    Rule(
        "the system reaches listed tables only",
        """
        select distinct name from granted
        where role = 'holdfast_system' and relkind in ('r', 'p') and not name = any($2)
        """,
    ),
    Rule(
        "tenants reach no global table, and everybody no table at all",
        """
        select name || ' ' || role || ' ' || privilege from granted
        where role = 'PUBLIC' or (role in ('holdfast_app', 'holdfast_tenant') and name = any($1))
        """,
    ),
    Rule(
        "the roles that run statements own nothing",
        """
        select name from (select name, relowner from ours union all select name, proowner from functions) as owned
        where relowner = any(array['holdfast_app', 'holdfast_system', 'holdfast_tenant']::regrole[])
        """,
    ),
)
# What breaks a rule today, by rule; a cluster of Citus refuses it. What is mended is removed here.
KNOWN = {
    "no function takes the row of a table": """
        holdfast.embed_next_anew holdfast.fold_memory holdfast.follow_memory holdfast.invocation_of
        holdfast.mark_unanswered holdfast.observe_rest holdfast.skill_told holdfast.tool_schema holdfast.tool_told
        holdfast.write_agent
    """,
    "no function forces a generic plan": """
        holdfast.change_memory holdfast.delete_memories holdfast.delete_session_memories holdfast.embed_next_anew
        holdfast.fold_memory holdfast.follow_memory holdfast.index_memories holdfast.index_registry
        holdfast.memory_neighbours holdfast.remember holdfast.search_memories holdfast.search_registry holdfast.unindex
    """,
    "no global table has a foreign key": """
        holdfast.tenant_login.tenant_login_tenant_id_fkey public.api_key.api_key_tenant_id_fkey
    """,
}


async def violations(owner: OwnerConnection) -> list[str]:
    """What breaks a rule in this database and is not known, a sentence each."""
    lists = [list(GLOBAL_TABLES), list(SYSTEM_TABLES), list(PUBLIC_FUNCTIONS)]
    # Each parameter is named once more, for the server must know the type of those that a rule does not use.
    typed = "select * from broken where $1::text[] is not null and $2::text[] is not null and $3::text[] is not null"
    found = [
        f"{rule.name}: {row[0]}"
        for rule in RULES
        for row in await owner.all(f"{_OURS}, broken as ({rule.broken_by}) {typed}", *lists)
    ]
    return beyond(KNOWN, found)


async def unprepared(owner: OwnerConnection, sources: Iterable[tuple[str, str]]) -> list[str]:
    """Statements that the role that runs them cannot run against the migrated schema."""
    found: list[str] = []
    for name, text in sources:
        said = [await _said(owner, role, text) for role in roles_of(name)]
        if said and all(said):
            found.append(f"{name}: {'; '.join(said)}")
    return found


async def _said(owner: OwnerConnection, role: str, text: str) -> str:
    """What the server says against a statement of this role: to explain it checks names, types and rights."""
    become = "reset role" if role == OWNER else f"set local role {role}"
    try:
        async with owner.transaction():
            await owner.script(f"{become}; set local holdfast.tenant = '00000000-0000-0000-0000-000000000000'")
            await owner.script(f"explain (generic_plan) {text}")
    except HoldfastError as error:
        return error.why
    return ""


async def tenant_tables(owner: OwnerConnection) -> dict[str, str]:
    """The tables that are held to tenants, each with its tenant's column."""
    rows = await owner.all(
        f"{_OURS} select split_part(name, '.', 2) as name, tenant from held where tenant is not null",
        list(GLOBAL_TABLES),
    )
    return {row["name"]: row["tenant"] for row in rows}


def unrouted(tables: dict[str, str], sources: Iterable[tuple[str, str]]) -> list[str]:
    """Statements of a tenant that do not name it as `$1` for every table in them: they would go to every shard."""
    return [
        f"{name}: a table without its tenant; write `{column} = $1` for each, also where a join implies it"
        for name, text in sources
        if roles_of(name) not in ((), (SYSTEM,), (OWNER,))
        for column in sorted(set(tables.values()))
        if not _is_routed(
            re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", text), [t for t in tables if tables[t] == column], column
        )
    ]


def _is_routed(statement: str, tables: list[str], column: str) -> bool:
    table = rf"(?:public\.)?(?:{'|'.join(tables)})\b"
    read = re.findall(rf"\b(?:from|join|update|using)\s+(?:only\s+)?{table}", statement)
    written = re.findall(rf"\binto\s+{table}", statement)
    to_tenant = rf"\binto\s+{table}\s*\(\s*{column}\b[^)]*\)\s*(?:values\s*\(|select)\s*\$1\b"
    return len(re.findall(rf"\b{column}\s*=\s*\$1\b", statement)) >= len(read) and len(
        re.findall(to_tenant, statement)
    ) == len(written)
