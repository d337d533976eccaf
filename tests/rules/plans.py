"""Rules for the plans of statements, seen as the role that runs them, with the policies on: else they prove nothing."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.access.tenants import Tenants
from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import Database, Postgres, Statements
from tests.rules import (
    audit_plans,
    consent_plans,
    gateway_plans,
    graph_plans,
    knowledge_plans,
    quota_plans,
    research_plans,
    tool_plans,
)
from tests.rules.plan import ID, LAST, MINUTE, NOON, NOTHING, Cold, Plan
from tests.rules.syntax import statements, tables_read
from tests.rules.tree import ROOT

PACKAGE = "src/holdfast/"
OF_A_TENANT: dict[str, Plan | Cold] = {
    "access/sql/identity_name.sql": Plan("identity_tenant_id_kind_id_key", ("user", ID)),
    "access/sql/identity_names.sql": Plan("identity_tenant_id_kind_id_key", ("user", [ID])),
    "agents/sql/adopt_agent.sql": Plan("conversation_pkey", (ID, "support")),
    "agents/sql/agent.sql": Plan("agent_definition_t_host_id_name_key", ("support 7",)),
    "agents/sql/agents.sql": Plan("agent_definition_t_"),
    "agents/sql/end_served.sql": Plan("worker_presence_pkey", ([ID],)),
    "agents/sql/is_left.sql": Plan("runs_pkey", (ID,)),
    "agents/sql/processes_on.sql": Plan("worker_presence_pkey", ("here",)),
    "agents/sql/questions.sql": Plan("runs_pkey", ([ID],)),
    "agents/sql/served_agents.sql": Plan("worker_presence_pkey"),
    "agents/sql/tell_served.sql": Plan("worker_presence_pkey", (ID, "process 7 on here", ["support"])),
    "server/routes/sql/approval_ids.sql": Plan("approval_pkey", (ID, ID, 11)),
    "server/routes/sql/dead_letter_ids.sql": Plan("dead_letter_pkey", (ID, ID, 11)),
    "server/routes/sql/execution_ids.sql": Plan("tool_executions_pkey", (ID, ID, 11)),
    "server/routes/sql/memory_ids.sql": Plan("tenant_id_id_idx", (ID, ID, 11)),
    "server/routes/sql/run_ids.sql": Plan("runs_pkey", (ID, ID, 11)),
    "agents/sql/approval.sql": Plan("approval_pkey", (ID,)),
    "agents/sql/asked.sql": Plan("approval_of_call", (ID, 0, 9)),
    "agents/sql/changes.sql": Plan("node_pkey", (ID, 7, 100)),
    "agents/sql/count_usage.sql": Plan("runs_pkey", (ID, 1, 1, 1, 0.1)),
    "agents/sql/deltas.sql": Plan("turn_delta_pkey", ([ID], [0])),
    "agents/sql/executions.sql": Plan("execution_of_call", (ID, 0, 9)),
    "agents/sql/former_executions.sql": Plan("runs_tenant_id_trigger_agent_attempt_key", (ID, "support", 2)),
    "agents/sql/forget_runs.sql": Plan("run_finished", (timedelta(days=30), 100)),
    "agents/sql/give_back_runs.sql": Plan("run_due", ("me", None)),
    "agents/sql/list_runs.sql": Plan("Index Scan Backward using runs_pkey", (LAST, 50)),
    "agents/sql/list_runs_in_state.sql": Plan("Index Scan Backward using run_by_state", (LAST, 50, "failed", None)),
    "agents/sql/list_runs_of_conversation.sql": Plan("Index Scan Backward using run_by_number", (LAST, 50, ID, None)),
    "agents/sql/list_runs_of_user.sql": Plan("Index Scan Backward using run_by_user", (LAST, 5, "user 7", None)),
    "agents/sql/nodes.sql": Plan("node_tenant_id_id_key", ([ID],)),
    "agents/sql/now.sql": Plan("conversation_pkey", (ID,)),
    "agents/sql/pending_approvals.sql": Plan("approval_pending", (None, 100)),
    "agents/sql/renew_runs.sql": Plan("runs_pkey", ([ID], [1], MINUTE)),
    "agents/sql/run.sql": Plan("runs_pkey", (ID,)),
    "agents/sql/steps.sql": Plan("run_step_pkey", (ID, 0, 9)),
    "agents/sql/stops.sql": Plan("runs_pkey", ([ID], [1])),
    "agents/sql/stored_agents.sql": Plan("agent_definition_t_"),
    "agents/sql/store_deltas.sql": Plan("runs_pkey", (ID, ID, 1, [1], ["token"], [{"text": ""}])),
    "agents/sql/triggers.sql": Plan("node_pkey", (ID, [7, 8])),
    "agents/sql/view.sql": Plan("Index Scan Backward using node_pkey", (ID, 100)),
    "conversations/sql/all_state_changes.sql": Plan("state_change_pkey", (ID, 0, 100)),
    "conversations/sql/exported_nodes.sql": Plan("node_pkey", (ID, 0)),
    "conversations/sql/active_session.sql": Plan("user_agent_active_sessions_pkey", (ID, "support")),
    "conversations/sql/adopt_conversation.sql": Plan("conversation_pkey", (ID, "shop", ID, "ann")),
    "conversations/sql/conversation.sql": Plan("conversation_pkey", (ID,)),
    "conversations/sql/last.sql": Plan("Index Scan Backward using node_pkey", (ID, 20, None, "adk")),
    "conversations/sql/list_conversations.sql": Plan(
        "Index Scan Backward using conversation_pkey", (None, None, "conversation", LAST, 5, True)
    ),
    "conversations/sql/list_conversations_of_user.sql": Plan(
        "Index Scan Backward using conversation_by_user", (None, None, "conversation", LAST, 5, True, ID)
    ),
    "conversations/sql/lock_notes.sql": Plan("agent_long_term_memory_by_user", (ID, "support")),
    "conversations/sql/node.sql": Plan("node_tenant_id_id_key", (ID,)),
    "conversations/sql/nodes_of_tree.sql": Plan("node_tenant_id_id_key", ([ID],)),
    "conversations/sql/node_revisions.sql": Plan("node_revision_pkey", (ID, 0, None)),
    "conversations/sql/notes_by_key.sql": Plan("notes_revision_by_key", (ID, "support", "run:1")),
    "conversations/sql/notes_revision.sql": Plan("agent_long_term_memory_revision_pkey", (ID, "support", 1)),
    "conversations/sql/notes_revisions.sql": Plan("agent_long_term_memory_revision_pkey", (ID, "support", None, 50)),
    "conversations/sql/openings.sql": Plan("node_pkey", ([ID], 100, 1000)),
    "conversations/sql/read_notes.sql": Plan("agent_long_term_memory_by_user", (ID, "support")),
    "conversations/sql/read_state.sql": Plan("state_pkey", (ID,)),
    "conversations/sql/release_turn.sql": Plan("turn_claim_pkey", (ID, 1)),
    "conversations/sql/turn_interrupted.sql": Plan("turn_claim_pkey", (ID, 1)),
    "conversations/sql/search_nodes.sql": Plan("node_pkey", ([ID], "parcel", LAST, 0, 50)),
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
    "memory/sql/supersession_chain.sql": Plan(
        "memory_user_tenant_id_scope_owner_superseded_by_idx", ("user", ID, ID, 100)
    ),
    "memory/sql/matches_chunk.sql": Plan("chunk_tenant_id_id_key", (ID, {}, None)),
    "memory/sql/matches_metadata.sql": Plan("memory_user_tenant_id_id_idx", (ID, {})),
    "memory/sql/count_expired.sql": Plan("memory_session_"),
    "memory/sql/count_fading.sql": Plan("memory_user_", (90.0, 5.6, timedelta(days=200))),
    "memory/sql/count_unembedded.sql": Plan("memory_user_tenant_id_language_embedded_idx", (["en"], ["m"])),
    "memory/sql/count_uses.sql": Plan("memory_user_tenant_id_id_idx", ([ID], [1])),
    "memory/sql/expired.sql": Plan("memory_session_", (100,)),
    "memory/sql/export.sql": Plan("memory_user_pkey", ("user", ID, LAST, ID, ID, 100)),
    "memory/sql/fading.sql": Plan("memory_user_", (90.0, 5.6, timedelta(days=200), 100)),
    "memory/sql/forget.sql": Plan("memory_user_tenant_id_id_idx", (ID,)),
    "memory/sql/session_names.sql": Plan("conversation_pkey", ([ID],)),
    "memory/sql/get.sql": Plan("memory_user_tenant_id_id_idx", (ID,)),
    "memory/sql/history.sql": Plan("memory_revision_pkey", (ID, 9, 9)),
    "memory/sql/lock_memories.sql": Plan("memory_user_tenant_id_id_idx", ([ID],)),
    "memory/sql/count_by_owner.sql": Plan("Index Scan Backward using memory_user_pkey", ("user", [ID], 1000)),
    "memory/sql/insert_revisions.sql": Plan("memory_user_tenant_id_id_idx", ("user", ID, [ID], "[]")),
    "memory/sql/insert_vectors.sql": Plan("memory_user_tenant_id_id_idx", ("user", ID, [ID], ["m"], NOTHING)),
    "memory/sql/existing_keys.sql": Plan("memory_user_tenant_id_scope_owner_key_idx", ("user", ID, ["k"], [b"hash"])),
    "memory/sql/list.sql": Plan("Index Scan Backward using memory_user_pkey", ("user", ID, LAST, None, False, 50)),
    "memory/sql/newest_sessions.sql": Plan("Index Scan Backward using memory_session_tenant_id_id_idx", (LAST, 5)),
    "memory/sql/owners.sql": Plan("Index Only Scan using memory_user_pkey", ("user", ID, 50)),
    "memory/sql/existing_ids.sql": Plan("memory_user_tenant_id_id_idx", ("user", ID, [ID])),
    "memory/sql/models.sql": Plan("memory_user_tenant_id_language_embedded_idx"),
    "memory/sql/previous_turns.sql": Plan(
        "Index Scan Backward using memory_user_tenant_id_scope_owner_conversation_seq_idx",
        ("user", ID, [1], ["talk 1"], [7]),
    ),
    "memory/sql/release_indexing.sql": Plan("memory_indexing_pkey", (ID,)),
    "memory/sql/memory_versions.sql": Plan("memory_user_tenant_id_id_idx", ([ID],)),
    "memory/sql/successors.sql": Plan("memory_user_", ("user", ID, [ID])),
    "memory/sql/sweep.sql": Plan("memory_user_", ("user", ID, [ID], "expired", 90.0, 5.6)),
    "memory/sql/tombstone.sql": Plan("memory_tombstone_pkey", (ID,)),
    "memory/sql/trim_session.sql": Plan("memory_session_pkey", (ID, 100)),
    "memory/sql/unembedded.sql": Plan("memory_user_tenant_id_language_embedded_idx", ("en", "m", NOTHING, 32)),
    "memory/sql/unanalyzed.sql": Plan("memory_user_tenant_id_idx", (32,)),
    "bus/sql/answers.sql": Plan("completion_applied_once", (["c 1", "c 2"],)),
    "bus/sql/command.sql": Plan("command_pkey", ("c 1",)),
    "bus/sql/commands.sql": Plan("Index Scan Backward using command_by_time", (None, None, "c 1", 50)),
    "bus/sql/commit_position.sql": Plan("consumer_offset_pkey", ("group-1", "topic-1", 0, ID, 1, 7, None, False)),
    "bus/sql/commit_positions.sql": Plan(
        "consumer_offset_pkey", ("group-1", ID, ["topic-1"], [0], [1], [7], [None], [False])
    ),
    "bus/sql/completions.sql": Plan("command_completion_pkey", ("c 1",)),
    "bus/sql/dead_letter.sql": Plan("dead_letter_pkey", (ID,)),
    "bus/sql/dead_letter_ids.sql": Plan("dead_letter_once", ("group-1", None)),
    "bus/sql/dead_letters.sql": Plan("Index Scan Backward using dead_letter_pkey", (None, None, LAST, 50)),
    "bus/sql/drop_dead_letter.sql": Plan("dead_letter_pkey", (ID,)),
    "bus/sql/ends.sql": Plan("topic_partition_pkey", (["topic-1"],)),
    "bus/sql/fail_dead_letter.sql": Plan("dead_letter_pkey", (ID, "no")),
    "bus/sql/fail_record.sql": Plan("consumer_offset_pkey", ("group-1", "topic-1", 0, ID, 1, 7, None, "no", MINUTE)),
    "bus/sql/fetch.sql": Plan("record_other_pkey", (["topic-1"], [0], [7], 100, 1000)),
    "bus/sql/fetch_one.sql": Plan("record_other_pkey", ("topic-1", 0, 7, 100, 1000)),
    "bus/sql/group_partitions.sql": Plan("consumer_offset_pkey", ("group-1", ["topic-1"], [], [])),
    "bus/sql/lag.sql": Plan("record_other_pkey", ("group-1",)),
    "bus/sql/lapsed_commands.sql": Plan("command_running"),
    "bus/sql/newest.sql": Plan("Index Scan Backward using record_other_pkey", ("topic-1", [0], [100], 5, 1000)),
    "bus/sql/offsets_at.sql": Plan("record_other_pkey", ("topic-1", [0], NOON)),
    "bus/sql/redriven.sql": Plan("dead_letter_redriven", ("group-1", ["topic-1"], [0])),
    "bus/sql/release_commands.sql": Plan("command_pkey", (["c 1"], [1])),
    "bus/sql/pass_on_kafka.sql": Plan("consumer_offset_pkey", ("group-1", ID, ["topic-1"], [0], [1], [7], [9])),
    "bus/sql/release_partitions.sql": Plan("consumer_offset_pkey", ("group-1", ID, ["topic-1"], [0], [1])),
    "bus/sql/try_record.sql": Plan("consumer_offset_pkey", ("group-1", "topic-1", 0, ID, 1)),
    "bus/sql/renew_commands.sql": Plan("command_pkey", (["c 1"], [1], MINUTE)),
    "bus/sql/settle_dead_letter.sql": Plan("dead_letter_pkey", (ID,)),
    "bus/sql/take_redriven.sql": Plan("dead_letter_pkey", ([ID],)),
    "bus/sql/topic_partitions.sql": Plan("topic_pkey", ("topic-1",)),
    "bus/sql/topics.sql": Plan("record_other_pkey"),
    "bus/kafka/sql/is_ours.sql": Plan("record_other_pkey", ("topic-1", 0, 7, ID)),
    "bus/kafka/sql/relayed.sql": Plan("consumer_offset_pkey", (["topic-1"], [0], [7])),
    "bus/kafka/sql/time_at.sql": Plan("record_other_pkey", ("topic-1", 0, 7)),
    "bus/kafka/sql/topic_ids.sql": Plan("topic_pkey", (["topic-1"],)),
}
OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "access/sql/any_key.sql": Plan("api_key_by_secret"),
    "access/sql/end_session.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/forget_expired.sql": Plan("api_key_by_expiry"),
    "access/sql/keys_of_other_secrets.sql": Plan("api_key_by_secret", ("s",)),
    "access/sql/keys_of_tenant.sql": Plan("api_key_by_tenant", (ID,)),
    "access/sql/revoke_key.sql": Plan("Index Scan using api_key_", (ID, UUID(int=2))),
    "access/sql/tenant_by_id.sql": Plan("tenant_pkey", (ID,)),
    "access/sql/tenant_by_name.sql": Plan("tenant_name_key", ("tenant-7",)),
    "access/sql/tenants.sql": Cold("lists every tenant, for who runs the installation"),
    "access/sql/use_link.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/valid_key.sql": Plan("api_key_pkey", (b"hash",)),
    "access/sql/valid_keys.sql": Plan("api_key_pkey", ([b"hash"],)),
    "agents/sql/tenants_with_old_runs.sql": Plan("run_finished", (timedelta(days=30),), whole=("tenant",)),
    # Across tenants nothing leads to a row: what has one for each topic or group is read whole, records by their key.
    "bus/sql/command_gauges.sql": Plan("command_ready", (None, 1000), whole=("tenant",)),
    "bus/sql/dead_letter_gauges.sql": Cold("counts those of all tenants, for who watches; people keep them few"),
    "bus/sql/group_gauges.sql": Plan(
        "record_other_pkey", (None, 1000), whole=("tenant", "topic_partition", "consumer_offset")
    ),
    "bus/sql/topic_gauges.sql": Plan("record_other_pkey", (None, 1000), whole=("tenant", "topic")),
    "bus/kafka/sql/group_progress.sql": Plan(
        "", (None, 1000, ".relay"), whole=("tenant", "topic_partition", "consumer_offset")
    ),
    "bus/kafka/sql/hold_relay.sql": Plan("", (ID, MINUTE), whole=("relay_lease",)),
    "bus/kafka/sql/move_relay.sql": Plan(
        "topic_pkey", (".relay", [ID], ["topic-1"], [ID], [0], [0], [7], ID, [0], [1]), whole=("relay_lease",)
    ),
    "bus/kafka/sql/release_relay.sql": Plan("", (ID,), whole=("relay_lease",)),
    "bus/kafka/sql/unsent.sql": Plan(
        "record_other_pkey",
        (".relay", [0, 1], 100, 1000, [ID], ["topic-1"], [0], [7]),
        whole=("tenant", "topic", "topic_partition"),
    ),
    "memory/sql/forget_tombstones.sql": Plan("memory_tombstone_", (timedelta(days=30), 100)),
    "memory/sql/scope_gauges.sql": Cold("counts the memories of all tenants, for who watches"),
    "memory/sql/tenants_to_sweep.sql": Plan("memory_session_", (timedelta(days=200),), whole=("tenant",)),
    "memory/sql/unindexed_tenants.sql": Plan("memory_user_", (["en"], ["m"]), whole=("tenant",)),
    "memory/sql/wanted_models.sql": Plan("", whole=("memory_model",)),
}
OF_THE_OWNER: dict[str, Plan | Cold] = {
    "memory/sql/listed_indexes.sql": Cold("a row for each tenant with very many memories, read once in many minutes"),
    "memory/sql/vectors_to_index.sql": Cold("counts memories and chunks of all tenants, once in many minutes"),
    "memory/sql/unlist_index.sql": Plan("memory_index_pkey", (ID, "memory", "m")),
    "memory/sql/vector_indexes.sql": Cold("reads the catalogue"),
}
# Which role runs a statement: a tenant's, unless it is listed for another.
TENANT, SYSTEM, OWNER = "holdfast_app", "holdfast_system", "the owner"
RUN_BY: dict[str, Mapping[str, Plan | Cold]] = {
    TENANT: OF_A_TENANT
    | tool_plans.OF_A_TENANT
    | gateway_plans.OF_A_TENANT
    | quota_plans.OF_A_TENANT
    | research_plans.OF_A_TENANT
    | audit_plans.OF_A_TENANT
    | consent_plans.OF_A_TENANT
    | graph_plans.OF_A_TENANT
    | knowledge_plans.OF_A_TENANT,
    SYSTEM: OF_THE_SYSTEM
    | tool_plans.OF_THE_SYSTEM
    | gateway_plans.OF_THE_SYSTEM
    | quota_plans.OF_THE_SYSTEM
    | research_plans.OF_THE_SYSTEM
    | audit_plans.OF_THE_SYSTEM
    | graph_plans.OF_THE_SYSTEM
    | knowledge_plans.OF_THE_SYSTEM,
    OWNER: OF_THE_OWNER,
}
# Statements of other roles than a tenant's that look nothing up: they have no plan to keep.
WITHOUT_LOOKUP = {
    SYSTEM: (
        "access/sql/create_key.sql",
        "access/sql/create_tenant.sql",
        "bus/sql/wake.sql",
        "execution/identity/sql/add_identity_key.sql",
        "memory/sql/store_setting.sql",
        "memory/sql/store_wanted_models.sql",
        "skills/sql/notify_updated.sql",
    ),
    OWNER: (
        *audit_plans.WITHOUT_LOOKUP_OF_THE_OWNER,
        "bus/sql/tend_log.sql",
        "memory/sql/lock_index_maintenance.sql",
        "memory/sql/list_index.sql",
        "memory/sql/vector_index.sql",
    ),
}
# Folders whose statements ask for the server and the schema: the owner runs them, or the system.
OWNERS_FOLDERS = ("postgres", "cli")

# Enough rows that a missing index shows: many tenants, of whom some are busy, few keys beside many sessions, a few long
# conversations beside many short ones, records in each day of the log, few commands to do beside many that are done.
ROWS = """
insert into tenant (name) select 'tenant-' || n from generate_series(1, 3000) n;
create temp table busy as select id from tenant limit 50;
insert into identity select id, 'user', 'user ' || n, gen_random_uuid() from busy, generate_series(1, 400) n;
insert into principal (tenant_id, name) select id, 'user ' || n from busy, generate_series(1, 400) n;
insert into api_key (hash, kind, tenant_id, principal, scopes, secret_id, expires_at)
  select sha256(convert_to(id::text || n, 'UTF8')), case when n > 398 then 'key' else 'session' end, id, 'user',
    '{read}', 's', holdfast.now() + n * interval '1 minute'
  from busy, generate_series(1, 400) n;
insert into conversation (tenant_id, id, session_id, app_name, user_id, user_name, agent_name, last_seq)
  select id, gen_random_uuid(), 'session ' || n, 'app ' || n % 8, md5(id::text || n % 20)::uuid, 'user', 'support', 10
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
insert into agent_definition_t (host_id, agent_def_id, name)
  select id, gen_random_uuid(), 'support ' || n from busy, generate_series(1, 50) n;
insert into runs (tenant_id, id, agent, root, number, trigger, trigger_seq, user_name, state, finished_at)
  select tenant_id, gen_random_uuid(), 'support', id, n, gen_random_uuid(), n, 'user ' || n,
    case when n > 5 then 'running' else 'done' end, case when n <= 5 then holdfast.now() end
  from conversation, generate_series(1, 10) n;
insert into run_step (tenant_id, run_id, number, sent) select tenant_id, id, n, '{}' from runs, generate_series(1, 2) n;
insert into turn_delta (tenant_id, root, n, run_id, kind, data)
  select tenant_id, root, number, id, 'done', '{}' from runs;
insert into tool_executions (tenant_id, id, run_id, step, call_id, tool, status, token)
  select tenant_id, gen_random_uuid(), id, 1, 'call', 'track', 'done', 1 from runs;
insert into approval (tenant_id, id, run_id, root, step, call_id, tool, reason, state)
  select tenant_id, gen_random_uuid(), id, root, 1, 'call', 'track', 'listed',
    case when number = 1 then 'pending' else 'approved' end
  from runs;
select holdfast.tend_log(3, interval '30 days', interval '30 days');
insert into topic (tenant_id, name, partitions) select id, 'topic-' || n, 2 from busy, generate_series(1, 10) n;
insert into topic_partition (tenant_id, topic, partition, next_offset)
  select tenant_id, name, n, 60 from topic, generate_series(0, 1) n;
insert into record (tenant_id, topic, partition, "offset", at, id, headers, value, bytes)
  select tenant_id, topic, partition, n, holdfast.now() + (n / 12 - 1) * interval '1 day', gen_random_uuid(), '{}',
    '{}', 100
  from topic_partition, generate_series(0, 59) n;
insert into consumer_group (tenant_id, name) select id, 'group-' || n from busy, generate_series(1, 10) n;
insert into consumer_member (tenant_id, group_name, id, name, topics, leased_until)
  select tenant_id, name, gen_random_uuid(), 'me', '{topic-1}', holdfast.now()
  from consumer_group, generate_series(1, 4);
insert into consumer_offset (tenant_id, group_name, topic, partition, position)
  select g.tenant_id, g.name, p.topic, p.partition, 50
  from consumer_group g join topic_partition p on p.tenant_id = g.tenant_id
  union all select tenant_id, '.relay', topic, partition, 60 - partition from topic_partition;
insert into dead_letter (
    tenant_id, group_name, topic, partition, "offset", at, record_id, headers, value, correlation_id, error, attempts,
    state)
  select id, 'group-' || n % 10, 'topic-' || n % 7, 0, n, holdfast.now(), gen_random_uuid(), '{}', '{}',
    case when n % 5 = 0 then 'c ' || n end, 'no', 3, case when n % 10 = 1 then 'redriven' else 'dead' end
  from busy, generate_series(1, 200) n;
insert into command (
    tenant_id, correlation_id, skill, arguments, reply_to, hash, state, leased_until, created_at, finished_at)
  select id, 'c ' || n, 'skill-' || n % 10, '{}', 'topic-1', n,
    case when n > 380 then 'queued' when n > 360 then 'running' else 'done' end,
    case when n between 361 and 380 then holdfast.now() end, holdfast.now() + n * interval '1 second',
    case when n <= 360 then holdfast.now() + n * interval '1 second' end
  from busy, generate_series(1, 400) n;
insert into command_completion (tenant_id, correlation_id, applied, result)
  select tenant_id, correlation_id, n = 1, '{}' from command, generate_series(1, 2) n where state = 'done';
insert into skill_rate (tenant_id, skill, per_second, tokens)
  select id, 'skill-' || n, 5, 5 from busy, generate_series(0, 9) n;
insert into memory (tenant_id, scope, owner, digest, content, length, terms, key, conversation, seq)
  select b.id, s.scope, md5(b.id::text || n % 5)::uuid, gen_random_uuid(), 'prefers tea', 2, '{1,2}',
    case when n % 2 = 1 then 'key ' || n end, case when n % 2 = 1 then 'talk ' || n % 3 end, n
  from busy b, (values ('session'), ('user'), ('agent'), ('organization')) as s (scope), generate_series(1, 60) n;
insert into memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
  select tenant_id, scope, owner, id, length, 1, 'infinity', 'm', array_fill(0.1, array[length])::halfvec
  from (
    select *, case scope when 'session' then 3 when 'agent' then 512 else 384 end as length
    from (select tenant_id, scope, owner, id from memory)
  );
insert into memory_term (tenant_id, scope, owner, term, memory_id)
  select tenant_id, scope, owner, unnest(terms), id from memory;
insert into memory_revision (tenant_id, memory_id, version, operation, content, type, importance, trust, metadata)
  select tenant_id, id, 1, 'remember', content, type, importance, trust, metadata from memory;
insert into memory_tombstone (tenant_id, memory_id, scope, owner, reason)
  select tenant_id, gen_random_uuid(), scope, owner, 'expired' from memory;
insert into memory_index (tenant_id, model, dimensions) select id, 'm', 384 from tenant;
insert into memory_indexing (tenant_id, holder, leased_until) select id, id, holdfast.now() from tenant;
"""
# Autovacuum would change plans while they are looked at.
UNCHANGED = """
do $$ declare name regclass; begin
  for name in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
    execute format('alter table %s set (autovacuum_enabled = off)', name);
  end loop;
end $$;
"""
# No foreign key is checked: that would take a third of the time.
MORE_ROWS = "".join(
    each.ROWS
    for each in (
        tool_plans,
        gateway_plans,
        quota_plans,
        audit_plans,
        consent_plans,
        graph_plans,
        knowledge_plans,
        research_plans,
    )
)
ENOUGH = f"set session_replication_role = replica;{ROWS}{MORE_ROWS}{UNCHANGED}analyze;"


async def unindexed(postgres: Postgres) -> list[str]:
    """Hot statements that lost their index."""
    async with postgres.owner() as owner:
        asked = ((tenant_7(postgres), RUN_BY[TENANT]), (postgres.system, RUN_BY[SYSTEM]))
        return [
            f"{PACKAGE}{name}: {missed}"
            for database, listed in (*asked, (owner, OF_THE_OWNER))
            for name, wanted in listed.items()
            if isinstance(wanted, Plan) and (missed := await _missed(database, name, wanted))
        ]


def tenant_7(postgres: Postgres) -> Database:
    """The statements of one of the busy tenants."""
    return postgres.tenant(lambda: Tenants(postgres.system).id_of("tenant-7"))


async def _missed(database: Statements, name: str, wanted: Plan) -> str:
    text = (ROOT / PACKAGE / name).read_text("utf-8")
    try:
        rows: list[Any] = await database.all(f"explain (verbose) {text}", *wanted.args)
    except HoldfastError as error:
        return f"it cannot be asked for its plan with the arguments that are listed: {error}"
    plan = "\n".join(row[0] for row in rows)
    whole = set(re.findall(r"Seq Scan on (?:\w+\.)?(\w+)", plan)) - set(wanted.whole)
    return (
        f"its plan should have `{wanted.has}`, and read no table whole:\n{plan}"
        if whole or wanted.has not in plan
        else ""
    )


def unplanned(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Statements that read a table and of which nobody said how, and entries for those that read none.

    What a function reads is seen in its own test; the owner's statements read the catalogue.
    """
    return [
        f"{name}: nobody said how it finds its rows; list it in tests/rules/plans.py, with its index or as cold"
        if reads
        else f"{name}: it reads no table, so there is no plan to keep; drop its entry"
        for name, text in sources
        if folder_of(name) not in (None, *OWNERS_FOLDERS)
        for reads in [any(tables_read(statement) for statement in statements(text))]
        if reads != any(name.removeprefix(PACKAGE) in listed for listed in RUN_BY.values())
    ]


def roles_of(name: str) -> tuple[str, ...]:
    """The roles of which one runs a statement; none if the file is no statement."""
    match folder_of(name):
        case None:
            return ()
        case folder if folder in OWNERS_FOLDERS:
            return OWNER, SYSTEM
        case _:
            return _listed(name) or (TENANT,)


def folder_of(name: str) -> str | None:
    """The folder of the package to which a statement belongs, however deep; nothing if the file is no statement."""
    found = re.search(r"holdfast/(\w+)/(?:.+/)?sql/", name)
    return found and found[1]


def _listed(name: str) -> tuple[str, ...]:
    return tuple(
        role for role in RUN_BY if name.removeprefix(PACKAGE) in (*RUN_BY[role], *WITHOUT_LOOKUP.get(role, ()))
    )
