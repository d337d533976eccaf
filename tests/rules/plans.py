"""Rules for the plans of statements, seen as the role that runs them, with the policies on: else they prove nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.engine import Engine
from tests.rules.schema import OWNERS_FOLDERS, folder_of
from tests.rules.tree import ROOT

PACKAGE = "src/holdfast/"
ID = UUID(int=1)
LAST = UUID(int=2**128 - 1)
NO_NODES = (list[object](),) * 9


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands in the plan of a hot statement ("" where nothing is looked up), and arguments to ask for it."""

    has: str
    args: tuple[object, ...] = ()


OF_A_TENANT = {
    "access/sql/identity_name.sql": Plan("identity_tenant_id_kind_id_key", ("user", ID)),
    "access/sql/store_identity.sql": Plan("", ("user", "ann", ID)),
    "access/sql/ensure_principal.sql": Plan("principal_pkey", ("user 7", "owner")),
    # What a function does is seen in its own test: here it is one call.
    "conversations/sql/append.sql": Plan("", (ID, ID, None, "text", "user", "ann", "", {}, None, None, "k", 0, 1, {})),
    "conversations/sql/append_all.sql": Plan("", (ID, *NO_NODES, 0, 1, {})),
    "conversations/sql/claim_turn.sql": Plan("", (ID, "me", timedelta(seconds=30), "enqueue")),
    "conversations/sql/create_conversation.sql": Plan("", (ID, "s", None, "shop", ID, "ann", "support", {})),
    "conversations/sql/delete_node.sql": Plan("", (ID, 1)),
    "conversations/sql/edit_node.sql": Plan("", (ID, 1, "", None, True)),
    "conversations/sql/end_active_session.sql": Plan("", (ID, "web")),
    "conversations/sql/exported_nodes.sql": Plan("node_pkey", (ID, 0)),
    "conversations/sql/fork_conversation.sql": Plan("", (ID, 7, ID, "s")),
    "conversations/sql/move_node.sql": Plan("", (ID, 1, ID, None)),
    "conversations/sql/remove_conversation.sql": Plan("", (ID,)),
    "conversations/sql/set_state.sql": Plan("", (ID, {}, {})),
    "conversations/sql/wake_turns.sql": Plan(""),
    "conversations/sql/active_session.sql": Plan("user_agent_active_sessions_pkey", (ID, "support")),
    "conversations/sql/adopt_conversation.sql": Plan("conversation_pkey", (ID, "shop", ID, "ann")),
    "conversations/sql/clear_messages.sql": Plan("", (ID,)),
    "conversations/sql/conversation.sql": Plan("conversation_pkey", (ID,)),
    "conversations/sql/conversation_by_session.sql": Plan("conversation_tenant_id_session_id_key", ("web",)),
    "conversations/sql/last.sql": Plan("Index Scan Backward using node_pkey", (ID, 20, None, "adk")),
    "conversations/sql/list_conversations.sql": Plan(
        "Index Scan Backward using conversation_pkey", (None, None, "conversation", LAST, 5)
    ),
    "conversations/sql/list_conversations_of_user.sql": Plan(
        "Index Scan Backward using conversation_by_user", (None, None, "conversation", LAST, 5, ID)
    ),
    "conversations/sql/lock_notes.sql": Plan("agent_long_term_memory_by_user", (ID, "support")),
    "conversations/sql/node.sql": Plan("node_tenant_id_id_key", (ID,)),
    "conversations/sql/node_revisions.sql": Plan("node_revision_pkey", (ID,)),
    "conversations/sql/notes_revision.sql": Plan("agent_long_term_memory_revision_pkey", (ID, "support", 1)),
    "conversations/sql/notes_revisions.sql": Plan("agent_long_term_memory_revision_pkey", (ID, "support", None, 50)),
    "conversations/sql/read_notes.sql": Plan("agent_long_term_memory_by_user", (ID, "support")),
    "conversations/sql/read_state.sql": Plan("state_pkey", (ID,)),
    "conversations/sql/release_turn.sql": Plan("turn_claim_pkey", (ID, 1)),
    "conversations/sql/renew_turn.sql": Plan("", (ID, 1, timedelta(seconds=30))),
    "conversations/sql/turn_interrupted.sql": Plan("turn_claim_pkey", (ID, 1)),
    "conversations/sql/search_nodes.sql": Plan("node_pkey", ([ID], "parcel", LAST, 0, 50)),
    "conversations/sql/set_active_session.sql": Plan(
        "user_agent_active_sessions_pkey", (ID, "support", "web", False, None)
    ),
    "conversations/sql/since.sql": Plan("Index Scan using node_pkey", (ID, 0, 100, None)),
    "conversations/sql/snapshot.sql": Plan(
        "conversation_tenant_id_session_id_key", ("web", "app 7/ann/web", "app 7", ID, 100, "adk", None)
    ),
    "conversations/sql/snapshots.sql": Plan("conversation_by_app", ("app 7", "adk")),
    "conversations/sql/snapshots_of_user.sql": Plan("conversation_by_app", ("app 7", "adk", ID)),
    "conversations/sql/state_changes.sql": Plan("state_change_pkey", (ID,)),
    "conversations/sql/subtree.sql": Plan("node_by_parent", (ID, 100)),
    "conversations/sql/tree.sql": Plan("node_pkey", (ID, 100)),
    "conversations/sql/user_state.sql": Plan("state_pkey", ("shop", ID)),
    "conversations/sql/write_notes.sql": Plan("agent_long_term_memory_by_user", (ID, "support", "", 2, "append")),
}
OF_THE_SYSTEM = {
    "access/sql/any_key.sql": Plan("api_key_by_secret"),
    "access/sql/create_key.sql": Plan("", (b"hash", "key", ID, "ann", "", ["read"], "s", timedelta(days=1))),
    "access/sql/create_tenant.sql": Plan("", ("tenant-0",)),
    "access/sql/end_session.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/forget_expired.sql": Plan("api_key_by_expiry"),
    "access/sql/keys_of_other_secrets.sql": Plan("api_key_by_secret", ("s",)),
    "access/sql/keys_of_tenant.sql": Plan("api_key_by_tenant", (ID,)),
    "access/sql/revoke_key.sql": Plan("Index Scan using api_key_", (ID, UUID(int=2))),
    "access/sql/tenant_by_id.sql": Plan("tenant_pkey", (ID,)),
    "access/sql/tenant_by_name.sql": Plan("tenant_name_key", ("tenant-7",)),
    "access/sql/use_link.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/valid_key.sql": Plan("api_key_pkey", (b"hash",)),
}
# Statements that may read a whole table, and why.
COLD = {"access/sql/tenants.sql": "lists every tenant, for who runs the installation"}

# Enough rows that a missing index shows: many tenants, of whom some are busy, few keys beside many sessions, a few long
# conversations beside many short ones.
ROWS = """
insert into tenant (name) select 'tenant-' || n from generate_series(1, 3000) n;
create temp table busy as select id from tenant limit 50;
insert into identity select id, 'user', 'user ' || n, gen_random_uuid() from busy, generate_series(1, 400) n;
insert into principal (tenant_id, name) select id, 'user ' || n from busy, generate_series(1, 400) n;
insert into api_key (hash, kind, tenant_id, principal, scopes, secret_id, expires_at)
  select sha256(convert_to(id::text || n, 'UTF8')), case when n > 398 then 'key' else 'session' end, id, 'user',
    '{read}', 's', holdfast.now() + n * interval '1 minute'
  from busy, generate_series(1, 400) n;
insert into conversation (tenant_id, id, session_id, app_name, user_id, user_name, agent_name)
  select id, gen_random_uuid(), 'session ' || n, 'app ' || n % 8, md5(id::text || n % 20)::uuid, 'user', 'support'
  from busy, generate_series(1, 40) n;
insert into node (
    tenant_id, root, seq, id, parent, place, context_type, context_name, context_value, content, revision, key)
  select tenant_id, c.id, n, case when n = 0 then c.id else gen_random_uuid() end, case when n > 0 then c.id end, n,
    'text', 'user', 'ann', 'where is my parcel?', n, case when n % 2 = 1 then 'key ' || n end
  from (select *, row_number() over (partition by tenant_id) as number from conversation) c,
    generate_series(0, case when number <= 2 then 300 else 10 end) n;
update node set parent = first.id from node first
  where first.tenant_id = node.tenant_id and first.root = node.root and first.seq = 1 and node.seq between 2 and 5;
insert into node_revision
  select tenant_id, id, 1, parent, place, context_type, context_name, context_value, content, payload, form, native,
    deleted, revision, updated_at
  from node where seq % 2 = 1;
insert into state (tenant_id, scope, owner, app_name, key, value)
  select tenant_id, 'session', id, '', 'key ' || n, '1'::jsonb from conversation, generate_series(1, 20) n
  union all select id, 'app', id, 'app ' || n, 'key ' || n, '1' from busy, generate_series(1, 100) n;
insert into state_change (tenant_id, root, revision, seq, state)
  select tenant_id, id, n, 0, '{}' from conversation, generate_series(1, 10) n;
insert into turn_claim (tenant_id, root, number, holder, leased_until)
  select tenant_id, id, n, 'me', holdfast.now() from conversation, generate_series(1, 3) n;
insert into user_agent_active_sessions (tenant_id, user_id, agent_name, active_session_id)
  select id, gen_random_uuid(), 'support', 'session ' || n from busy, generate_series(1, 400) n;
insert into agent_long_term_memory (tenant_id, user_id, agent_name)
  select id, gen_random_uuid(), 'support' from busy, generate_series(1, 100) n;
insert into agent_long_term_memory_revision (tenant_id, memory_id, version, operation, notes)
  select tenant_id, id, n, 'append', '' from agent_long_term_memory, generate_series(1, 10) n;
analyze;
"""


async def unindexed(engine: Engine) -> list[str]:
    """Hot statements that lost their index."""
    tenant, system = engine.tenant("tenant-7").database, engine.postgres.system
    found: list[str] = []
    for statements, database in ((OF_A_TENANT, tenant), (OF_THE_SYSTEM, system)):
        for name, wanted in statements.items():
            text = (ROOT / PACKAGE / name).read_text("utf-8")
            rows: list[Any] = await database.all(f"explain (verbose) {text}", *wanted.args)
            plan = "\n".join(row[0] for row in rows)
            if wanted.has not in plan or "Seq Scan" in plan:
                found.append(f"{PACKAGE}{name}: its plan should have `{wanted.has}`, and no Seq Scan:\n{plan}")
    return found


def unplanned(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Statements of a domain of which nobody said whether they are hot; the owner's read the catalogue."""
    known: tuple[Mapping[str, object], ...] = (OF_A_TENANT, OF_THE_SYSTEM, COLD)
    return [
        f"{name}: nobody said how it finds its rows; list it in tests/rules/plans.py, with its index or as cold"
        for name, _ in sources
        if folder_of(name) not in (None, *OWNERS_FOLDERS)
        and not any(name.removeprefix(PACKAGE) in statements for statements in known)
    ]
