"""Plans of the statements of skills and tools, and enough rows that a missing index shows."""

from datetime import timedelta

from tests.rules.plan import ID, LAST, MINUTE, NOON, NOTHING, Cold, Plan

ENDS = f'[{{"id": "{ID}", "leased_until": "2026-01-01T12:00:00Z", "status": "done", "ended": 1}}]'

OF_A_TENANT: dict[str, Plan | Cold] = {
    "agents/sql/unknown_tools.sql": Plan("tool_t_host_id_name_key", (["tool-7"],)),
    "bus/sql/end_presence.sql": Plan("worker_presence_pkey", (ID,)),
    "bus/sql/tell_presence.sql": Plan("worker_presence_pkey", (ID, "me", ["translate"])),
    "execution/sql/admission.sql": Plan("tool_t_pkey", (ID, ID, "support 7")),
    "execution/sql/answered_executions.sql": Plan("execution_alone", (200,)),
    "execution/sql/aside.sql": Plan("execution_by_correlation", ("c 7",)),
    "execution/sql/begin_anew.sql": Plan("execution_open", (ID, MINUTE, None)),
    "execution/sql/call_here.sql": Plan("execution_by_correlation", ("c 7",)),
    "execution/sql/cancel_execution.sql": Plan("execution_open", (ID, "cancelled")),
    "execution/sql/count_calls.sql": Plan("tool_t_pkey", ([ID], [1], [0], [1.5])),
    "execution/sql/decide_execution.sql": Plan("execution_open", (ID, "done", {}, None)),
    "execution/sql/end_calls.sql": Plan("tool_executions_pkey", (ENDS, 1.5)),
    "execution/sql/end_execution.sql": Plan("tool_executions_pkey", (ID, NOON, "done", {}, None, 1.5, None, None)),
    "execution/sql/event_tools.sql": Plan("tool_", (2000, ["rest"], ["shop"], ["tool-7%"])),
    "execution/sql/execution.sql": Plan("tool_executions_pkey", (ID,)),
    "execution/sql/forget_executions.sql": Plan("execution_finished_alone", (timedelta(days=30), 100)),
    "execution/sql/is_served.sql": Plan("worker_presence_pkey", ("translate",)),
    "execution/sql/list_executions.sql": Plan("Index Scan Backward using tool_executions_pkey", (LAST, 50, None)),
    "execution/sql/list_executions_of_run.sql": Plan("execution_of_call", (LAST, 50, None, ID, None)),
    "execution/sql/list_executions_of_user.sql": Plan(
        "Index Scan Backward using execution_by_user", (LAST, 50, None, "ann", None)
    ),
    "execution/sql/list_executions_of_tool.sql": Plan(
        "Index Scan Backward using execution_by_tool", (LAST, 50, None, ID)
    ),
    "execution/sql/list_open_executions.sql": Plan("Index Scan Backward using execution_open", (LAST, 50, "unknown")),
    "execution/sql/output.sql": Plan("tool_output_pkey", (ID,)),
    "execution/sql/put_aside.sql": Plan("execution_by_correlation", ("c 7", b"", "text/plain")),
    "execution/sql/forget_sandbox_executions.sql": Plan("sandbox_execution_by_age", (timedelta(days=30), 100)),
    "execution/sql/record_sandbox_execution.sql": Plan(
        "tool_executions_pkey", (ID, ID, None, "c", "python", "", {}, "", "", 0, None, 1.5, {})
    ),
    "execution/sql/sandbox_executions.sql": Plan("sandbox_execution_by_execution", (ID,)),
    "execution/sql/script.sql": Plan("tool_t_pkey", (ID,)),
    "execution/sql/revision.sql": Plan("registry_pkey"),
    "execution/sql/sealed_secrets.sql": Plan("secret_pkey", (["secret-7"],)),
    "execution/sql/secrets.sql": Plan("secret_pkey"),
    "execution/sql/still_wanted.sql": Plan("tool_executions_pkey", ([ID],)),
    "execution/sql/withdraw_call.sql": Plan("tool_executions_pkey", (ID, NOON)),
    "skills/rules/sql/access_rules.sql": Plan("access_rules_pkey", (7,)),
    "skills/rules/sql/former_calls.sql": Plan("Index Scan Backward using tool_executions_pkey", (100, None)),
    "skills/rules/sql/trials.sql": Plan("access_rule_trial_pkey"),
    "skills/rules/sql/unknown_names.sql": Cold("when a person changes the rules"),
    "skills/sources/sql/selectable_types.sql": Plan("tool_source_host_id_name_key", ("shop", b"")),
    "skills/sources/sql/ask_for_check.sql": Plan("source_check_pkey", ("source-7",)),
    "skills/sources/sql/altered_tools.sql": Plan("tool_by_operation", (ID,)),
    "skills/sources/sql/changed_tools.sql": Plan("registry_change_", (7, 9)),
    "skills/sources/sql/claim_check.sql": Plan("source_check_pkey", (MINUTE, ID)),
    "skills/sources/sql/claim_checks.sql": Plan("source_check_due", (MINUTE, True, 10)),
    "skills/sources/sql/end_check.sql": Plan("source_check_pkey", (ID, NOON, 30.0, 0.5, {}, None, 0)),
    "skills/sources/sql/empty_imports.sql": Plan("source_import_pkey", (ID, 100, 1)),
    "skills/sources/sql/forget_source_changes.sql": Plan(
        "registry_change_by_name", (ID, "source-7", "holdfast", MINUTE)
    ),
    "skills/sources/sql/forget_imports.sql": Plan("source_import_pkey", (ID, 100, MINUTE)),
    "skills/sources/sql/imported_tools.sql": Plan("registry_change_", (7, 9)),
    "skills/sources/sql/missing_secrets.sql": Plan("secret_pkey", (["key"],)),
    "skills/sources/sql/other_servers.sql": Plan("tool_source_", ("shop",)),
    "skills/sources/sql/proposals.sql": Plan("proposal", ("source-7", ["open"], 100)),
    "skills/sources/sql/record_import.sql": Plan("registry_pkey", (ID, 7, "1", 1, 1, 1, 1, 1, "ann")),
    "skills/sources/sql/source_import.sql": Plan("source_import_pkey", ("source-7", None)),
    "skills/sources/sql/source_imports.sql": Plan("source_import_pkey", ("source-7", 5)),
    "skills/sources/sql/source.sql": Plan("tool_source_host_id_name_key", ("shop",)),
    "skills/sources/sql/source_tools.sql": Plan("tool_by_operation", (ID,)),
    "skills/sources/sql/sources.sql": Plan("tool_source_"),
    "skills/sql/agents_of_skill.sql": Plan("skill_t_host_id_name_key", ("skill 7",)),
    "skills/sql/allowed_tools.sql": Plan("tool_t_host_id_name_key", (["tool-7"],)),
    "skills/sql/catalog.sql": Plan("agent_definition_t_host_id_name_key", ("support 1",)),
    "skills/sql/forget_removed.sql": Plan("registry_term_pkey"),
    "skills/sql/existing_agents.sql": Plan("agent_definition_t_host_id_name_key", (["support 7"],)),
    "skills/sql/list_skills.sql": Plan("skill_t_host_id_name_key", ("", 5, None)),
    "skills/sql/list_tools.sql": Plan("tool_t_host_id_name_key", ("", 5, None, None, None, None)),
    "skills/sql/needs_of_skill.sql": Plan("skill_dependency_t_pkey", ("skill 7",)),
    "skills/sql/open_skills.sql": Plan("skill_t_pkey", ([ID], [ID], ID, "support", [ID])),
    "skills/sql/other_names.sql": Plan("tool_t", (ID,), ("tool_t",)),
    "skills/sql/registry_changes.sql": Plan("Index Scan Backward using registry_change_pkey", (9, 9, 5, ["skill"])),
    "skills/sql/registry_changes_of_name.sql": Plan("registry_change_by_name", (9, 9, 5, ["skill"], "skill 7")),
    "skills/sql/registry_models.sql": Plan("tool_by_model"),
    "skills/sql/registry_state.sql": Plan("conversation_skill_pkey", (ID, "support")),
    "skills/sql/release_registry_indexing.sql": Plan("registry_indexing_pkey", (ID,)),
    "skills/sql/skill.sql": Plan("skill_t_host_id_name_key", ("skill 7",)),
    "skills/sql/skill_file.sql": Plan("skill_file_pkey", ("skill 7", "a.md")),
    "skills/sql/skill_file_sizes.sql": Plan("skill_file_pkey", ("skill 7",)),
    "skills/sql/skill_files.sql": Plan("skill_file_pkey", ("skill 7",)),
    "skills/sql/skills_of_agent.sql": Plan("agent_skill_t_pkey", ("support 7",)),
    "skills/sql/tool.sql": Plan("tool_t_host_id_name_key", ("tool-7",)),
    "skills/sql/current_tool.sql": Plan("tool_t_pkey", (ID,)),
    "skills/sql/tools_by_name.sql": Plan("tool_t_host_id_name_key", (["tool-7"],)),
    "skills/sql/tools_of_skill.sql": Plan("skill_tool_t_pkey", ("skill 7",)),
    "skills/sql/unembedded_entries.sql": Plan("tool_by_model", (["m"], NOTHING, 32)),
    "skills/sql/unanalyzed_entries.sql": Plan("tool_unread", (200,)),
}
OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "execution/sql/tenants_with_lapsed_executions.sql": Plan("execution_alone", (), ("tenant",)),
    "execution/sql/tenants_with_old_executions.sql": Plan(
        "execution_finished_alone", (timedelta(days=30),), ("tenant",)
    ),
    "execution/identity/sql/identity_keys.sql": Cold("reads the few keys that sign who calls"),
    "execution/mcp/sql/announced_sources.sql": Cold("lists the MCP servers of all tenants, for who listens to them"),
    "skills/sources/sql/due_checks.sql": Plan("source_check_due", (2.0, True)),
    "skills/sources/sql/resume_checks.sql": Cold("once when an engine starts"),
    "skills/sources/sql/watched_files.sql": Plan("source_check_of_file"),
    "execution/sql/tenants_with_old_sandbox_executions.sql": Plan(
        "sandbox_execution_by_age", (timedelta(days=30),), ("tenant",)
    ),
    "skills/sql/unindexed_registries.sql": Plan("tool_by_model", (True, ["m"]), whole=("tenant",)),
    "skills/sql/wanted_registry_models.sql": Plan("", whole=("memory_model",)),
}

ROWS = """
insert into registry (host_id, revision) select id, 7 from tenant;
insert into access_rules (tenant_id, version, text, updated_by) select id, 7, 'a: deny', '' from tenant;
insert into access_rule_trial (tenant_id, rule, calls, last_at, examples)
  select id, 'rule-' || n, 1, holdfast.now(), '[]' from busy, generate_series(1, 50) n;
insert into tool_source (host_id, name, kind) select id, 'source-' || n, 'openapi' from busy, generate_series(1, 50) n;
insert into selectable_types (host_id, source_id, hash, types) select host_id, source_id, 'h', '{}' from tool_source;
insert into source_check (host_id, source_id, due_at, file)
  select host_id, source_id, holdfast.now() + interval '1 h', case when right(name, 2) = '-7' then 'shop.yaml' end
  from tool_source;
insert into source_import
  (host_id, source_id, revision, since, label, added, changed, removed, deactivated, bytes, update_user)
  select host_id, source_id, n, n - 1, '1', 1, 0, 0, 0, 100, '' from tool_source, generate_series(1, 20) n;
insert into tool_proposal (host_id, source_id, operation, name, hash, new, item, found_by, state)
  select host_id, source_id, 'o' || n, 'tool-' || n, 'h', '{}', '{}', '',
    case when n > 1 then 'withdrawn' else 'open' end
  from tool_source, generate_series(1, 20) n;
insert into skill_t (host_id, name, description, content_markdown, terms, embedded, active)
  select id, 'skill ' || n, 'about it', 'do it', case when n > 1 then '{1,2}'::bigint[] end,
    case when n > 3 then 'm' end, n % 10 > 0
  from busy, generate_series(1, 200) n;
update skill_t s set parent_skill_id = p.skill_id from skill_t p
  where p.host_id = s.host_id and p.name = 'skill 1' and s.name in ('skill 2', 'skill 3');
insert into tool_t (host_id, name, description, implementation_type, terms, embedded, active)
  select id, 'tool-' || n, 'does it', 'function', case when n > 1 then '{1,2}'::bigint[] end,
    case when n > 3 then 'm' end, n % 10 > 0
  from busy, generate_series(1, 400) n;
insert into tool_pin (host_id, tool_id, hash, approved_by) select host_id, tool_id, 'h', '' from tool_t;
insert into tool_param_t (host_id, tool_id, name, param_type) select host_id, tool_id, 'a' || n, 'string'
    from tool_t, generate_series(1, 3) n;
insert into tool_usage (host_id, tool_id, calls) select host_id, tool_id, 1 from tool_t;
insert into skill_file (host_id, skill_id, path, content) select host_id, skill_id, 'a', '' from skill_t;
insert into skill_tool_t (host_id, skill_id, tool_id)
  select s.host_id, s.skill_id, t.tool_id from skill_t s join tool_t t on t.host_id = s.host_id
    and t.name like 'tool-' || substr(s.name, 7) || '%'
  where s.name < 'skill 3';
insert into skill_dependency_t (host_id, skill_id, depends_on_skill_id)
  select s.host_id, s.skill_id, n.skill_id from skill_t s join skill_t n on n.host_id = s.host_id
    and s.skill_id < n.skill_id
  where right(s.name, 1) = right(n.name, 1);
insert into agent_skill_t (host_id, agent_def_id, skill_id)
  select a.host_id, a.agent_def_id, s.skill_id from agent_definition_t a join skill_t s on s.host_id = a.host_id
    and s.name like 'skill 1%'
  where right(s.name, 1) = right(a.name, 1);
insert into registry_vector (host_id, kind, id, model, embedding)
  select host_id, 'tool', tool_id, 'm', array_fill(0.1, array[384])::halfvec from tool_t where embedded is not null;
insert into registry_term (host_id, kind, term, id)
  select host_id, 'skill', unnest(terms), skill_id from skill_t union all
    select host_id, 'tool', unnest(terms), tool_id from tool_t;
insert into registry_indexing (host_id, holder, leased_until) select id, id, holdfast.now() from tenant;
insert into registry_change (host_id, revision, number, kind, name, operation, update_user)
  select id, n, 1, 'skill', 'skill ' || n % 50, 'changed', '' from busy, generate_series(1, 500) n;
insert into conversation_skill (tenant_id, root, agent, skill_id)
  select c.tenant_id, c.id, 'support', s.skill_id from conversation c join skill_t s on s.host_id = c.tenant_id
    and s.name like 'skill 4%';
insert into secret (host_id, name, sealed, key_id) select id, 'secret-' || n, '', 'k'
    from busy, generate_series(1, 50) n;
insert into tool_executions (
    tenant_id, id, tool_id, tool, status, leased_until, finished_at, key, correlation_id, user_name)
  select t.host_id, gen_random_uuid(), t.tool_id, t.name, case when n = 1 then 'running' else 'done' end,
    holdfast.now(),
    case when n > 1 then holdfast.now() end, t.name || n, t.name || ' ' || n, 'user ' || n
  from tool_t t, generate_series(1, 3) n;
insert into tool_output (tenant_id, execution_id, content_type, content)
  select tenant_id, id, 'text/plain', '' from tool_executions where run_id is null;
insert into sandbox_executions (
    tenant_id, id, execution_id, sandbox_type, code, exit_code, execution_time_ms, created_at)
  select tenant_id, gen_random_uuid(), id, 'python', '', 0, 1.5, holdfast.now() - interval '1 minute' * n
  from tool_executions, generate_series(1, 2) n where run_id is null;
insert into worker_presence (tenant_id, worker, name, skills) select id, gen_random_uuid(), 'me', '{tool-1}'
    from busy, generate_series(1, 20);
"""
