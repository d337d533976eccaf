"""Plans of the statements of the gateway, and enough rows that a missing index shows."""

from tests.rules.plan import ID, MINUTE, NOON, Cold, Plan

OF_A_TENANT: dict[str, Plan | Cold] = {
    "gateway/mcp/legacy/sql/answer.sql": Plan("mcp_question_pkey", ("key 7", "q", "{}")),
    "gateway/mcp/legacy/sql/answers.sql": Plan("mcp_question_pkey", ("key 7", ["q"])),
    "gateway/mcp/legacy/sql/ask.sql": Plan("mcp_session_pkey", ("key 7", "q")),
    "gateway/mcp/legacy/sql/end_session.sql": Plan("mcp_session_pkey", ("key 7",)),
    "gateway/mcp/legacy/sql/end_sessions.sql": Plan("mcp_session_by_end", (500,)),
    "gateway/mcp/legacy/sql/end_stream.sql": Plan("mcp_stream_pkey", ("key 7", "s", 1, "{}")),
    "gateway/mcp/legacy/sql/events.sql": Plan("mcp_event_pkey", ("key 7", "s", 0, 100)),
    "gateway/mcp/legacy/sql/forget_questions.sql": Plan("mcp_question_pkey", ("key 7", ["q"])),
    "gateway/mcp/legacy/sql/introduce_session.sql": Plan("mcp_session_pkey", ("key 7", "2025-11-25", {})),
    "gateway/mcp/legacy/sql/renew_stream.sql": Plan("mcp_stream_pkey", ("key 7", "s", MINUTE)),
    "gateway/mcp/legacy/sql/session.sql": Plan("mcp_session_pkey", ("key 7",)),
    "gateway/mcp/legacy/sql/set_log_level.sql": Plan("mcp_session_pkey", ("key 7", "info")),
    "gateway/mcp/legacy/sql/cancel_request.sql": Plan("mcp_session_pkey", ("key 7", "1")),
    "gateway/mcp/legacy/sql/forget_cancellations.sql": Plan("mcp_cancellation_pkey", ("key 7", MINUTE, 999)),
    "gateway/mcp/legacy/sql/call_states.sql": Plan("mcp_session_pkey", ("key 7", ["1"], MINUTE, "s")),
    "gateway/mcp/legacy/sql/listen.sql": Plan("mcp_session_pkey", ("key 7", "token")),
    "gateway/mcp/legacy/sql/take_up_stream.sql": Plan("mcp_stream_pkey", ("key 7", "s", "token")),
    "gateway/sql/source_offers.sql": Cold("once per change of the registry, a row per source"),
    "gateway/mcp/sql/resource_versions.sql": Plan("resource_update_pkey", ([b"digest"],)),
    "skills/sql/forget_updates.sql": Plan("resource_update_by_age", (MINUTE,)),
    "gateway/mcp/legacy/sql/store_event.sql": Plan("mcp_session_pkey", ("key 7", "s", 1, "{}")),
    "gateway/mcp/legacy/sql/stream.sql": Plan("mcp_stream_pkey", ("key 7", "s")),
    "gateway/mcp/legacy/sql/subscribe.sql": Plan("mcp_session_pkey", ("key 7", "a:b", 1000)),
    "gateway/mcp/legacy/sql/take_events.sql": Plan("mcp_event_pkey", ("key 7", 20)),
    "gateway/mcp/legacy/sql/touch_session.sql": Plan("mcp_session_pkey", ("key 7", MINUTE)),
    "gateway/mcp/legacy/sql/unsubscribe.sql": Plan("mcp_session_pkey", ("key 7", "a:b")),
    "gateway/mcp/sql/use_state.sql": Plan("used_state_by_end", (ID, NOON)),
    "gateway/sql/changed_tools.sql": Plan("registry_change_", (7,)),
    "gateway/sql/entries_by_name.sql": Plan("tool_t_host_id_name_key", (["tool-7"],)),
    "gateway/sql/registry_revision.sql": Plan("registry_pkey"),
}

OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "gateway/mcp/legacy/sql/tenants_with_ended_sessions.sql": Plan("mcp_session_by_end", whole=("tenant",)),
}

ROWS = """
insert into mcp_session (tenant_id, key, user_name, transport, protocol_version, ends_at)
  select id, 'key ' || n, 'user ' || n % 7, 'http', '2025-11-25', holdfast.now() + n * interval '1 minute'
  from busy, generate_series(1, 60) n;
insert into mcp_stream (tenant_id, session_key, id, requests, leased_until)
  select tenant_id, key, 'stream ' || n, '1', holdfast.now() from mcp_session, generate_series(1, 3) n;
insert into mcp_event (tenant_id, session_key, stream, number, message)
  select tenant_id, session_key, id, n, '{}' from mcp_stream, generate_series(1, 3) n;
insert into used_state (tenant_id, nonce, expires_at)
  select id, holdfast.uuid7(), holdfast.now() + n * interval '1 minute' from busy, generate_series(1, 60) n;
insert into mcp_question (tenant_id, session_key, id) select tenant_id, session_key, id from mcp_stream;
insert into mcp_cancellation (tenant_id, session_key, request) select tenant_id, session_key, id from mcp_stream;
insert into resource_update (tenant_id, uri_digest, at)
  select id, sha256(n::text::bytea), holdfast.now() + n * interval '1 minute' from busy, generate_series(1, 100) n;
"""
