"""The rows of the HTTP API, in the order of its operations."""

from typing import Any

from tests.access.matrix import objects as of
from tests.access.matrix.objects import AGENT, Kind
from tests.access.matrix.rows import Row
from tests.access.matrix.rules import (
    ADMIN,
    ADMIN_LIST,
    ADMIN_ONCE,
    ADMIN_PUT,
    ADOPTION,
    ANY_SESSION,
    ANY_SESSION_WRITE,
    HIDDEN,
    HIDDEN_LIST,
    LINK,
    MINE_LIST,
    MINE_PERSON,
    NOWHERE,
    OPERATOR,
    OWN,
    OWN_DECISION,
    OWN_LIST,
    OWN_PRIVILEGE,
    OWN_WRITE,
    PUBLIC,
    READ,
    SAME_TREE,
    SAME_TREE_MOVE,
    SAME_TREE_WRITE,
    SESSION,
    SESSION_ADOPTION,
    SESSION_NAME,
    SHARED,
    SHARED_LIST,
    SHARED_PERSON,
    SHARED_PRIVILEGE,
    STATE,
    STATE_ANSWER,
    USER_NAME,
    USER_NAME_PUT,
    USER_NAME_WRITE,
    WRITE,
    Rule,
)

HEADER = '{"format":"holdfast.memories","version":1}\n'


def once(name: str, rule: Rule, **more: Any) -> Row:
    """An operation that names no object."""
    return Row(name=name, rule=rule, **more)


def on(name: str, kind: Kind, rule: Rule, **more: Any) -> Row:
    """An operation on an object."""
    return Row(name=name, kind=kind, rule=rule, **more)


def lists(name: str, kind: Kind, rule: Rule, **more: Any) -> Row:
    """An operation that shows objects."""
    return Row(name=name, kind=kind, rule=rule, lists=True, shows=True, **more)


ABOUT = [
    once("healthz", PUBLIC),
    once("readyz", PUBLIC),
    once("login_page", PUBLIC),
    on("login", of.link, LINK, body={"link": "{link}"}, uses_up=True, crosses="a link says which tenant it leads to"),
    once("logout", PUBLIC),
    once("protected_resource", NOWHERE),
    once("public_keys", PUBLIC),
    once("protected_resource_at", NOWHERE, path="/.well-known/oauth-protected-resource/mcp"),
    once("GET /api/openapi.json", PUBLIC),
    once("me", READ),
    lists("metrics", of.tenant, ADMIN_LIST.but("admin, and for an operator every tenant", operator="ok ok")),
]  # fmt: skip

TENANTS = [
    lists("list_tenants", of.tenant, ADMIN_LIST.but("operator: every tenant", admin="403", operator="ok ok")),
    once("create_tenant", OPERATOR, body={"name": "{unique}"}),
    lists("list_keys", of.key, ADMIN_LIST),
    once("create_key", ADMIN_ONCE, body={"principal": "dora"}),
    once("create_key", OPERATOR, case="of an operator", body={"principal": "dora", "scopes": ["operator"]}),
    once("create_link", ADMIN_ONCE, body={}),
    once("create_link", OPERATOR, case="of an operator", body={"scopes": ["operator"]}),
    on("revoke_key", of.key, ADMIN, uses_up=True),
]

OPERATORS_LIMIT = {"rule": "user {unique}: 1 requests per day", "as_operator": True}

LIMITS = [
    lists("list_limits", of.limit, ADMIN_LIST),
    once("set_limit", ADMIN_ONCE, body={"rule": "user {unique}: 1 requests per day"}),
    once("set_limit", OPERATOR, case="of the operator", body=OPERATORS_LIMIT),
    on("remove_limit", of.limit, ADMIN, query={"name": "{name}"}, uses_up=True),
    once("remove_limit", OPERATOR.but("operator: of a limit that is not there", operator="404"),
         case="of the operator", query={"name": "user zoe: requests per day", "as_operator": True}),
    once("limit_usage", ADMIN_ONCE),
    once("model_usage", ADMIN_ONCE),
]  # fmt: skip
AUDIT = [
    once("list_audit", ADMIN_ONCE),
    once("follow_audit", ADMIN_ONCE),
    once("verify_audit", ADMIN_ONCE, body={}),
    once("export_audit", ADMIN_ONCE),
    once("erase_audit", ADMIN_ONCE, body={"user": "{unique}"}),
]

CONVERSATIONS = [
    once("create_conversation", WRITE, body={}),
    on("create_conversation", of.conversation, SESSION_NAME, case="of a session", body={"session_id": "{session}"},
       shows=True, uses_up=True),
    on("create_conversation", of.conversation, USER_NAME_PUT, case="of a user", body={"user": "{named}"}),
    lists("list_conversations", of.conversation, OWN_LIST, query={"limit": 1000}),
    on("list_conversations", of.conversation, USER_NAME, case="of a user", query={"user": "{named}", "limit": 1000},
       shows=True),
    lists("search_conversations", of.conversation, OWN_LIST, query={"text": "mark-of", "limit": 1000}),
    on("search_conversations", of.conversation, USER_NAME, case="of a user", shows=True,
       query={"text": "mark-of", "user": "{named}", "limit": 1000}),
    on("find_conversation", of.conversation, OWN, query={"session_id": "{session}"}, shows=True),
    on("find_conversation", of.nobodys_conversation, ADOPTION, case="of nobody", query={"session_id": "{session}"},
       shows=True),
    on("get_conversation", of.conversation, OWN, shows=True),
    on("get_conversation", of.nobodys_conversation, HIDDEN, case="of nobody", shows=True),
    on("remove_conversation", of.conversation, OWN_WRITE, uses_up=True),
    on("fork_conversation", of.conversation, OWN_WRITE, body={}),
    on("export_conversation", of.conversation, OWN, shows=True),
    on("read_messages", of.conversation, OWN),
    on("list_nodes", of.conversation, OWN),
    on("append_node", of.conversation, OWN_WRITE, body={"content": "Hello"}),
    on("append_node", of.conversation, OWN_PRIVILEGE, case="as the system",
       body={"content": "Hello", "context": "text:system:holdfast"}),
    on("append_node", of.node, SAME_TREE_WRITE, case="below a node", path="/api/conversations/{own.document}/nodes",
       body={"content": "Hello", "parent": "{id}"}),
    on("append_nodes", of.conversation, OWN_WRITE, body={"nodes": [{"content": "Hello"}]}),
    on("read_node", of.node, OWN, shows=True),
    on("edit_node", of.node, OWN_WRITE, body={"content": "New", "version": 1}, uses_up=True),
    on("edit_node", of.system_node, OWN_PRIVILEGE, case="of the system", body={"content": "New", "version": 1},
       uses_up=True),
    on("delete_node", of.node, OWN_WRITE, query={"version": 1}, uses_up=True),
    on("delete_node", of.system_node, OWN_PRIVILEGE, case="of the system", query={"version": 1}, uses_up=True),
    on("move_node", of.node, OWN_WRITE, body={"version": 1, "parent": "{document}"}, uses_up=True),
    on("move_node", of.node, SAME_TREE_MOVE, case="below another", path="/api/nodes/{own.id}/move",
       body={"version": 1, "parent": "{document}"}, uses_up=True),
    on("read_subtree", of.node, OWN, shows=True),
    on("read_subtree", of.node, SAME_TREE, case="after a node", path="/api/nodes/{own.document}/subtree",
       query={"after": "{id}"}),
    on("list_node_revisions", of.node, OWN),
    on("read_state", of.conversation, OWN),
    on("list_state_changes", of.conversation, OWN),
    on("change_state", of.conversation, OWN_WRITE, body={"state": {"step": 1}}),
    on("change_state", of.conversation, OWN_PRIVILEGE, case="of the app", body={"state": {"app:step": 1}}),
    on("delete_state", of.conversation, OWN_WRITE, query={"key": "step"}),
    on("claim_turn", of.conversation, OWN_WRITE, body={"busy": "enqueue"}),
    on("renew_turn", of.turn, OWN_WRITE, body={}),
    on("release_turn", of.turn, OWN_WRITE, uses_up=True),
    lists("active_session", of.active_session, MINE_LIST, query={"agent_id": AGENT}),
    on("activate_session", of.conversation, SESSION.but("session: one's own, or a new one", ann="ok", bob="ok",
       admin="ok", agent="ok", backend="ok", operator="ok", stranger="ok"),
       query={"agent_id": AGENT}, body={"session_id": "{session}"}, uses_up=True),
    on("end_session", of.active_session, OWN_WRITE, body={"session_id": "{session}"}, uses_up=True),
    on("chat", of.conversation, SESSION, shows=True, uses_up=True,
       body={"message": "Hello", "agent_id": AGENT, "session_id": "{session}"}),
    on("chat", of.nobodys_conversation, SESSION_ADOPTION, case="of nobody", shows=True, uses_up=True,
       body={"message": "Hello", "agent_id": AGENT, "session_id": "{session}"}),
    on("read_events", of.conversation, OWN),
]  # fmt: skip

RUNS = [
    lists("list_runs", of.run, OWN_LIST, query={"limit": 200}),
    on("list_runs", of.run, USER_NAME, case="of a user", query={"user": "{named}", "limit": 200}, shows=True),
    on("list_runs", of.conversation, OWN, case="of a conversation", query={"conversation": "{id}"}),
    on("get_run", of.run, OWN, shows=True),
    on("get_run", of.approval, OWN, case="that waits", path="/api/runs/{run}"),
    on("cancel_run", of.run, OWN_WRITE, uses_up=True),
    on("retry_run", of.cancelled_run, OWN_WRITE, uses_up=True),
    lists("list_approvals", of.approval, OWN_LIST, query={"limit": 200}),
    on("list_approvals", of.approval, USER_NAME, case="of a user", query={"user": "{named}", "limit": 200}, shows=True),
    on("get_approval", of.approval, OWN, shows=True),
    on("decide_approval", of.approval, OWN_DECISION, body={"decision": "deny"}, uses_up=True),
    lists("list_executions", of.execution, OWN_LIST, query={"limit": 200}),
    on("list_executions", of.execution, USER_NAME, case="of a user", query={"user": "{named}", "limit": 200},
       shows=True),
    on("get_execution", of.execution, OWN, shows=True),
    on("get_execution", of.execution_of_run, OWN, case="of a run", shows=True),
    on("get_output", of.execution, OWN),
    on("list_sandbox_executions", of.execution, OWN),
    on("cancel_execution", of.execution, OWN_WRITE),
    on("decide_execution", of.lost_execution, OWN_DECISION, body={"decision": "done"}, uses_up=True),
    on("decide_execution", of.lost_execution, OWN_PRIVILEGE.but("own, to call again: as a tool that is closed to users",
       agent="403"), case="again", body={"decision": "again"}, uses_up=True),
]  # fmt: skip

AGENTS = [
    lists("list_agents", of.stored_agent, SHARED_LIST),
    lists("list_agents", of.hidden_agent, HIDDEN_LIST, case="switched off"),
    on("get_agent", of.stored_agent, ADMIN),
    on("put_agent", of.stored_agent, ADMIN.but("admin, of a version", admin="ok 409 409", operator="ok 409 409"),
       body={"instructions": "So.", "version": 1}, uses_up=True),
    once("put_agent", ADMIN_ONCE, case="a new one", path="/api/agents/{unique}", body={"instructions": "So."}),
    on("remove_agent", of.stored_agent, ADMIN, uses_up=True),
    lists("list_skills", of.skill, SHARED_LIST, query={"limit": 200}),
    lists("list_skills", of.hidden_skill, HIDDEN_LIST, case="switched off", query={"limit": 200}),
    lists("list_skills", of.skill, SHARED_LIST, case="by a query", query={"query": "{subject}", "limit": 200}),
    once("import_skill", ADMIN_ONCE, body={"files": {"SKILL.md": {"content": "{page}"}}}),
    on("get_skill", of.skill, ADMIN),
    on("put_skill", of.skill, ADMIN, body={"instructions": "So.", "version": 1}, uses_up=True),
    on("remove_skill", of.skill, ADMIN, uses_up=True),
    on("activate_skill", of.skill, ADMIN, body={"active": True}),
    on("get_skill_file", of.skill, ADMIN, path="/api/skills/{name}/files/notes.txt"),
    on("export_skill", of.skill, ADMIN),
    on("link_tool", of.skill, ADMIN, body={}),
    on("unlink_tool", of.skill, ADMIN, uses_up=True),
    on("need_skill", of.skill, ADMIN, body={}),
    on("spare_skill", of.skill, ADMIN, uses_up=True),
    on("list_agent_skills", of.stored_agent, ADMIN),
    on("assign_skill", of.skill, ADMIN, body={}),
    on("unassign_skill", of.skill, ADMIN, uses_up=True),
    lists("registry_history", of.skill, ADMIN_LIST, query={"kind": "skill", "limit": 100}),
]  # fmt: skip

TOOLS = [
    lists("list_tools", of.tool, SHARED_LIST, query={"limit": 200}),
    lists("list_tools", of.tool, SHARED_LIST, case="by a query", query={"query": "{subject}", "limit": 200}),
    lists("list_tools", of.hidden_tool, HIDDEN_LIST, case="switched off", query={"limit": 200}),
    on("get_tool", of.tool, SHARED, shows=True),
    on("get_tool", of.hidden_tool, HIDDEN, case="switched off"),
    on("put_tool", of.tool, ADMIN, body={"description": "So.", "parameters": {"type": "object"}, "kind": "function",
       "reference": of.REFERENCE, "version": 1}, uses_up=True),
    on("remove_tool", of.tool, ADMIN, uses_up=True),
    on("permit_tool", of.tool, ADMIN, body={"permissions": {}}, uses_up=True),
    on("activate_tool", of.tool, ADMIN, body={"active": True}),
    on("call_tool", of.tool, SHARED.but("shared, to call: not for an agent", reader="403", agent="403"),
       body={"arguments": {"text": "Hello"}}),
    on("call_tool", of.closed_tool, SHARED_PRIVILEGE.but("closed: not for an agent", agent="403"),
       case="closed to users", body={}),
    lists("list_services", of.tool, SHARED_LIST),
    lists("list_sources", of.source, ADMIN_LIST),
    once("add_source", ADMIN_ONCE, body={"name": "{unique}", "document": of.document("/{unique}")}),
    on("get_source", of.source, ADMIN),
    on("change_source", of.source, ADMIN, body={"version": 1, "timeout": 5}, uses_up=True),
    on("remove_source", of.source, ADMIN, uses_up=True),
    on("list_source_imports", of.source, ADMIN),
    on("get_source_import", of.source_import, ADMIN),
    on("reload_source", of.source, ADMIN, body={"document": of.document("/{name}"), "dry_run": True}),
    lists("list_proposals", of.proposal, ADMIN_LIST),
    on("decide_proposals", of.proposal, ADMIN, body={"decision": "reject", "tools": {"{tool}": "{hash}"}}),
    on("try_identity", of.source, ADMIN),
    once("list_identity_keys", OPERATOR),
    once("rotate_identity_keys", OPERATOR, body={}),
    lists("list_connections", of.connection, MINE_LIST),
    on("begin_connection", of.consent_source, SHARED_PERSON),
    on("remove_connection", of.connection, MINE_PERSON, uses_up=True),
    on("consent_page", of.begun_connection, STATE, query={"state": "{state}"}),
    on("complete_connection", of.begun_connection, STATE_ANSWER, body={"state": "{state}", "error": "access_denied"},
       uses_up=True, crosses="a state says which tenant it leads to"),
    once("client_document", PUBLIC),
    lists("list_secrets", of.secret, ADMIN_LIST),
    on("set_secret", of.secret, ADMIN_PUT, body={"value": "another"}, uses_up=True),
    on("remove_secret", of.secret, ADMIN, uses_up=True),
    on("find_ids", of.run, ADMIN_LIST, query={"kind": "run", "prefix": "{id}"}, shows=True),
]  # fmt: skip

ABOUT_USER = {"agent_id": "{agent}", "user": "{named}"}
RULES_TEXT = 'a: dry-run deny tool "{unique}"'
RULES = [
    lists("get_rules", of.access_rule, ADMIN_LIST),
    on("get_rule", of.access_rule, ADMIN, shows=True),
    on("remove_rule", of.access_rule, ADMIN, uses_up=True),
    once("add_rules", ADMIN_ONCE, body={"rules": '{unique}: dry-run deny tool "{unique}"'}),
    once("put_rules", ADMIN_ONCE, body={"text": RULES_TEXT}),
    once("try_rules", ADMIN_ONCE, body={"text": RULES_TEXT}),
    once("explain", READ, body={"tool": "recall"}),
    once("explain", ADMIN_ONCE, case="of a user", body={"tool": "recall", "user": "bob"}),
    once("explain", ADMIN_ONCE, case="of an agent", body={"tool": "recall", "agent": AGENT}),
]  # fmt: skip
NOTES = [
    on("read_notes", of.notes_of_user, USER_NAME, query=ABOUT_USER, shows=True),
    lists("read_notes", of.notes, MINE_LIST, case="one's own", query={"agent_id": AGENT}),
    on("edit_notes", of.notes_of_user, USER_NAME_PUT, query={**ABOUT_USER, "agent_id": "{unique}"},
       body={"operation": "append", "content": "So."}),
    on("list_note_revisions", of.notes_of_user, USER_NAME, query=ABOUT_USER, shows=True),
    on("restore_notes", of.notes_of_user, USER_NAME_WRITE.but("user name, of what was noted", admin="ok ok 404 404",
       operator="ok ok 404 404", stranger="404 403 403 403"), query=ABOUT_USER, body={"revision": 1}, shows=True),
]  # fmt: skip

# Whose memories are meant: a user by name, a session by its id, an agent, the organization.
OF_USER = {"scope": "user", "name": "{named}"}
OF_SESSION = {"scope": "session", "name": "{session}"}
OF_AGENT = {"scope": "agent", "name": AGENT}
OF_ALL = {"scope": "organization"}
# Who acts for an agent with a list of collections does not see the graph, which is of all collections.
GRAPH_OWN = OWN.but("own, and not of a graph for an agent with collections", agent="403 404 404 404")
GRAPH_SHARED = SHARED.but("shared, and not of a graph for an agent with collections", agent="403 404 404")
GRAPH = [
    on("get_entity", of.entity, GRAPH_OWN, shows=True),
    on("get_entity", of.shared_entity, GRAPH_SHARED, case="of the organization", shows=True),
    on("entity_neighbours", of.entity, GRAPH_OWN),
    on("entity_neighbours", of.shared_entity, GRAPH_SHARED, case="of the organization"),
    on("merge_entities", of.entity, OWN_WRITE.but("own, to change, and not of a graph for an agent with collections",
       agent="403 404 404 404"), body={"keep": "{id}", "other": "{other}"}, uses_up=True),
    on("merge_entities", of.shared_entity, SHARED_PRIVILEGE, case="of the organization",
       body={"keep": "{id}", "other": "{other}"}, uses_up=True),
    on("unmerge_entities", of.entity, OWN_WRITE, path="/api/graph/merges/{merge}", uses_up=True),
    on("unmerge_entities", of.shared_entity, SHARED_PRIVILEGE, case="of the organization",
       path="/api/graph/merges/{merge}", uses_up=True),
    lists("search_entities", of.entity,
          MINE_LIST.but("one's own, no graph for an agent with collections", agent="403"), query={"query": "{sign}"}),
    lists("search_entities", of.shared_entity, SHARED_LIST.but("shared, and no graph for an agent with collections",
          agent="403"), case="of the organization", query={"query": "{sign}"}),
    once("search_entities", ADMIN_ONCE, case="of another user", query={"query": "tea", "scope": "user", "name": "zoe"}),
    on("find_paths", of.shared_entity,
       GRAPH_SHARED.but("shared, and no graph for an agent with collections", agent="403"),
       case="of the organization", shows=True, query={"source": "{sign}", "target": "{partner}"}),
    once("find_paths", ADMIN_ONCE.but("admin, of no name", admin="404", operator="404"), case="of another user",
         query={"source": "tea", "target": "milk", "scope": "user", "name": "zoe"}),
    once("list_duplicates", READ.but("read, and no graph for an agent with collections", agent="403")),
    once("list_duplicates", ADMIN_ONCE, case="of another user", query={"scope": "user", "name": "zoe"}),
]  # fmt: skip

TEXTS = [{"content": "Tea {unique}"}]

RECALL = [
    on("search_memories", of.memory, USER_NAME, body={"owner": OF_USER, "query": "{subject}", "limit": 50}, shows=True),
    on("search_memories", of.session_memory, ANY_SESSION, case="of a session", shows=True,
       body={"owner": OF_SESSION, "query": "{subject}"}),
    lists("search_memories", of.agent_memory, SHARED_LIST, case="of an agent",
          body={"owner": OF_AGENT, "query": "{subject}"}),
    lists("search_memories", of.organization_memory, SHARED_LIST, case="of the organization",
          body={"owner": OF_ALL, "query": "{subject}"}),
    lists("search_memories", of.memory, MINE_LIST, case="one's own", body={"query": "{subject}", "limit": 50}),
    on("memory_context", of.memory, USER_NAME, case="of a user", shows=True,
       body={"user": "{named}", "query": "{subject}", "limits": {"user": 50}}),
    on("memory_context", of.session_memory, ANY_SESSION, case="of a session", shows=True,
       body={"session": "{session}", "query": "{subject}"}),
    lists("memory_context", of.organization_memory, SHARED_LIST, body={"query": "{subject}"}),
    on("why_not", of.memory, OWN, body={"query": "{subject}", "id": "{id}"}),
    on("why_not", of.memory, USER_NAME, case="of a user",
       body={"owner": OF_USER, "query": "{subject}", "id": "{own.id}"}),
    on("export_memories", of.memory, USER_NAME, query=OF_USER, shows=True),
    on("export_memories", of.session_memory, ANY_SESSION, case="of a session", query=OF_SESSION, shows=True),
    lists("export_memories", of.memory, OWN_LIST.but("for admins, every user's", ann="403", bob="403", reader="403",
          agent="403", backend="403", stranger="403"), case="of everybody", query={"scope": "user", "all": "true"}),
    on("import_memories", of.memory, USER_NAME_PUT, query=OF_USER, body=HEADER),
    on("import_memories", of.session_memory, ANY_SESSION_WRITE, case="of a session", query=OF_SESSION, body=HEADER),
    once("import_memories", ADMIN_ONCE, case="of the organization", query=OF_ALL, body=HEADER),
    once("import_memories", WRITE, case="one's own", body=HEADER),
    once("sweep_memories", ADMIN_ONCE, body={"dry_run": False}),
]  # fmt: skip

MEMORIES = [
    on("remember", of.memory, USER_NAME_PUT, body={"owner": OF_USER, "memories": TEXTS}),
    on("remember", of.session_memory, ANY_SESSION_WRITE, case="of a session", uses_up=True,
       body={"owner": OF_SESSION, "memories": TEXTS}),
    once("remember", ADMIN_ONCE, case="of an agent", body={"owner": OF_AGENT, "memories": TEXTS}),
    once("remember", ADMIN_ONCE, case="of the organization", body={"owner": OF_ALL, "memories": TEXTS}),
    once("remember", ADMIN_ONCE, case="as the system", body={"memories": [{**TEXTS[0], "trust": "system"}]}),
    once("remember", WRITE, case="one's own", body={"memories": TEXTS}),
    on("list_memories", of.memory, USER_NAME, query={**OF_USER, "limit": 200}, shows=True),
    on("list_memories", of.session_memory, ANY_SESSION, case="of a session", query=OF_SESSION, shows=True),
    lists("list_memories", of.agent_memory, SHARED_LIST, case="of an agent", query={**OF_AGENT, "limit": 200}),
    lists("list_memories", of.organization_memory, SHARED_LIST, case="of the organization",
          query={**OF_ALL, "limit": 200}),
    lists("list_memories", of.memory, MINE_LIST, case="one's own", query={"limit": 200}),
    lists("list_owners", of.session_memory, OWN_LIST, query={"scope": "session", "limit": 200}),
    on("get_memory", of.memory, OWN, shows=True),
    on("get_memory", of.session_memory, OWN, case="of a session", shows=True),
    on("get_memory", of.agent_memory, SHARED, case="of an agent", shows=True),
    on("get_memory", of.organization_memory, SHARED, case="of the organization", shows=True),
    on("edit_memory", of.memory, OWN_WRITE, body={"importance": 0.5}),
    on("edit_memory", of.session_memory, OWN_WRITE, case="of a session", body={"importance": 0.5}),
    on("edit_memory", of.organization_memory, SHARED_PRIVILEGE, case="of the organization",
       body={"importance": 0.5}),
    on("edit_memory", of.system_memory, OWN_PRIVILEGE, case="of the system", body={"content": "So {unique}"}),
    on("forget_memory", of.memory, OWN_WRITE, uses_up=True),
    on("forget_memory", of.session_memory, OWN_WRITE, case="of a session", uses_up=True),
    on("forget_memory", of.agent_memory, SHARED_PRIVILEGE, case="of an agent", uses_up=True),
    on("supersede_memory", of.memory, OWN_WRITE, body={"content": "Tea {unique}"}, uses_up=True),
    on("supersede_memory", of.agent_memory, SHARED_PRIVILEGE, case="of an agent",
       body={"content": "Tea {unique}"}, uses_up=True),
    on("supersede_memory", of.system_memory, OWN_PRIVILEGE, case="of the system",
       body={"content": "Tea {unique}"}, uses_up=True),
    on("pin_memory", of.memory, OWN_WRITE, body={}),
    on("pin_memory", of.organization_memory, SHARED_PRIVILEGE, case="of the organization", body={}),
    on("bury_memory", of.memory, OWN_WRITE, body={}, uses_up=True),
    on("bury_memory", of.organization_memory, SHARED_PRIVILEGE, case="of the organization", body={}, uses_up=True),
    on("memory_history", of.memory, OWN),
    on("memory_chain", of.memory, OWN),
]  # fmt: skip

TEXT = "Text."
OF_USERS_OWN = {"scope": "user"}
USERS = {"scope": "user", "owner": "{named}"}
AGENTS_DOCUMENTS = {"scope": "agent", "owner": AGENT}
# An agent has its collections alone, so it has nobody's documents as a whole.
ALL_OF_USER = USER_NAME.but("user name, all of it: not for an agent", agent="403")
NOT_FOR_AGENT = SHARED.but("shared, not in the agent's collections", agent="404")
NOT_LISTED = NOT_FOR_AGENT.as_list("shared, not in the agent's collections, as a list")
FOLLOWED = OWN.but(
    "own, of those that are named", ann="ok absent absent absent", bob="absent ok absent absent",
    reader="ok absent absent absent", admin="ok ok absent absent", agent="ok absent absent absent",
    backend="ok absent absent absent", operator="ok ok absent absent", stranger="absent absent ok absent",
)  # fmt: skip

KNOWLEDGE = [
    once("add_document", ADMIN_ONCE, query={"name": "{unique}"}, body=TEXT),
    once("add_document", ADMIN_ONCE, case="of an agent", query={"name": "{unique}", **AGENTS_DOCUMENTS}, body=TEXT),
    on("add_document", of.user_document, USER_NAME_PUT, case="of a user", query={"name": "{unique}", **USERS},
       body=TEXT),
    once("add_document", WRITE, case="one's own", query={"name": "{unique}", **OF_USERS_OWN}, body=TEXT),
    once("add_document", WRITE.but("write: not in a collection that the agent does not have", agent="403"),
         case="in a collection", query={"name": "{unique}", "collection": "closed", **OF_USERS_OWN}, body=TEXT),
    once("add_text", ADMIN_ONCE, body={"name": "{unique}", "text": TEXT}),
    on("add_text", of.user_document, USER_NAME_PUT, case="of a user",
       body={"name": "{unique}", "text": TEXT, "owner": {"scope": "user", "name": "{named}"}}),
    once("add_text", WRITE, case="one's own", body={"name": "{unique}", "text": TEXT, "owner": {"scope": "user"}}),
    lists("list_documents", of.organization_document, SHARED_LIST, query={"limit": 200}),
    lists("list_documents", of.closed_document, NOT_LISTED, case="of a collection", query={"limit": 200}),
    lists("list_documents", of.user_document, MINE_LIST, case="one's own", query={"limit": 200}),
    lists("list_documents", of.agent_document, SHARED_LIST, case="of an agent",
          query={**AGENTS_DOCUMENTS, "limit": 200}),
    on("list_documents", of.user_document, USER_NAME, case="of a user", query={**USERS, "limit": 200}, shows=True),
    lists("list_collections", of.collection, NOT_LISTED),
    on("list_collections", of.user_document, USER_NAME, case="of a user", query=USERS),
    lists("list_ingest_jobs", of.organization_job, SHARED_LIST, query={"limit": 200}),
    lists("list_ingest_jobs", of.user_job, OWN_LIST, case="one's own", query={"limit": 200}),
    on("follow_ingest_jobs", of.user_job, FOLLOWED, body={"ids": ["{id}"]}, shows=True),
    on("get_ingest_job", of.user_job, OWN, shows=True),
    on("get_ingest_job", of.organization_job, SHARED, case="of the organization", shows=True),
    on("retry_ingest_job", of.user_job, OWN_WRITE, uses_up=True),
    on("retry_ingest_job", of.organization_job, SHARED_PRIVILEGE, case="of the organization", uses_up=True),
    on("get_document", of.user_document, OWN, shows=True),
    on("get_document", of.agent_document, SHARED, case="of an agent", shows=True),
    on("get_document", of.organization_document, SHARED, case="of the organization", shows=True),
    on("get_document", of.closed_document, NOT_FOR_AGENT, case="of a collection", shows=True),
    on("change_document", of.user_document, OWN_WRITE, body={"title": "So"}),
    on("change_document", of.user_document, OWN_WRITE.but("own, to move where the agent has nothing",
       agent="403 404 404 404"), case="of a collection", body={"collection": "closed"}, uses_up=True),
    on("change_document", of.organization_document, SHARED_PRIVILEGE, case="of the organization", body={"title": "So"}),
    on("remove_document", of.user_document, OWN_WRITE, uses_up=True),
    on("remove_document", of.agent_document, SHARED_PRIVILEGE, case="of an agent", uses_up=True),
    on("remove_document", of.organization_document, SHARED_PRIVILEGE, case="of the organization", uses_up=True),
    on("read_document", of.user_document, OWN),
    on("read_document", of.organization_document, SHARED, case="of the organization"),
    on("read_document", of.closed_document, NOT_FOR_AGENT, case="of a collection"),
    on("document_outline", of.user_document, OWN),
    on("list_chunks", of.user_document, OWN, shows=False),
    on("export_knowledge", of.user_document, ALL_OF_USER, query=USERS, shows=True),
    lists("export_knowledge", of.organization_document, SHARED_LIST.but("shared, as a whole: not for an agent",
          agent="403")),
    # Of somebody new: other rows need the documents of the others.
    once("erase_knowledge", ADMIN_ONCE, case="of a user", body={"owner": {"scope": "user", "name": "{unique}"}}),
    once("erase_knowledge", ADMIN_ONCE, case="of an agent", body={"owner": {"scope": "agent", "name": "{unique}"}}),
    lists("search_memories", of.closed_document, NOT_LISTED, case="in documents",
          body={"owner": OF_ALL, "query": "{subject}"}),
    lists("memory_context", of.closed_document, NOT_LISTED, case="in documents", body={"query": "{subject}"}),
    on("get_memory", of.organization_document, SHARED, case="of a document", path="/api/memories/{chunk}"),
    on("get_memory", of.closed_document, NOT_FOR_AGENT, case="of a collection", path="/api/memories/{chunk}"),
    on("get_memory", of.user_document, OWN, case="of a user's document", path="/api/memories/{chunk}"),
    on("forget_memory", of.user_document, OWN_WRITE.but("own, which cannot be changed here", ann="400 404 404 404",
       bob="404 400 404 404", admin="400 400 404 404", agent="400 404 404 404", backend="400 404 404 404",
       operator="400 400 404 404", stranger="404 404 400 404"), case="of a user's document",
       path="/api/memories/{chunk}"),
]  # fmt: skip
# Who acts for an agent has only the research that this agent asked for.
OWN_RESEARCH = OWN.but("own, and of the agent that asked", agent="404")
CHANGED_RESEARCH = OWN_WRITE.but("own, to change, and of the agent that asked", agent="404")
RESEARCH = [
    once("start_research", WRITE, body={"question": "{unique}", "wait": True}),
    on("start_research", of.user_document, OWN_WRITE, case="of a document",
       body={"question": "Why?", "documents": ["{id}"], "wait": True}),
    on("start_research", of.closed_document, NOT_FOR_AGENT.but("shared, not in the agent's collections, to change",
       reader="403"), case="of a document in a collection",
       body={"question": "Why?", "documents": ["{id}"], "wait": True}),
    lists("list_research", of.research, OWN_RESEARCH.as_list("own, of the agent that asked, as a list"),
          query={"limit": 200}),
    on("list_research", of.research, USER_NAME.but("user name, of the agent that asked", agent="absent 403 403 403"),
       case="of a user", query={"user": "{named}", "limit": 200}, shows=True),
    on("get_research", of.research, OWN_RESEARCH, shows=True),
    on("read_research_events", of.research, OWN_RESEARCH),
    on("cancel_research", of.research, CHANGED_RESEARCH),
    on("resume_research", of.research, CHANGED_RESEARCH, body={"wait": True}, uses_up=True),
    on("remove_research", of.research, CHANGED_RESEARCH, uses_up=True),
]  # fmt: skip
SEARCH = [
    lists("search_knowledge", of.organization_document, SHARED_LIST, body={"query": "{subject}", "limit": 50}),
    lists("search_knowledge", of.closed_document, NOT_LISTED, case="of a collection",
          body={"query": "{subject}", "limit": 50}),
    lists("search_knowledge", of.user_document, MINE_LIST, case="one's own", body={"query": "{subject}", "limit": 50}),
    on("search_knowledge", of.user_document, USER_NAME, case="of a user", shows=True,
       body={"query": "{subject}", "limit": 50, "owners": [{"scope": "user", "name": "{named}"}]}),
]  # fmt: skip

BUS = [
    lists("list_topics", of.topic, ADMIN_LIST),
    once("create_topic", ADMIN_ONCE, body={"name": "{unique}"}),
    on("remove_topic", of.topic, ADMIN, uses_up=True),
    on("read_records", of.topic, ADMIN),
    on("publish_record", of.topic, ADMIN, body={"value": 1}),
    lists("list_lag", of.topic, ADMIN_LIST),
    on("reset_group", of.topic, ADMIN, body={"topic": "{name}"}),
    lists("list_dead_letters", of.dead_letter, ADMIN_LIST, query={"limit": 100}),
    on("redrive_dead_letters", of.dead_letter, ADMIN_PUT, body={"group": "{group}"}, uses_up=True),
    on("get_dead_letter", of.dead_letter, ADMIN),
    on("redrive_dead_letter", of.dead_letter, ADMIN, uses_up=True),
    on("drop_dead_letter", of.dead_letter, ADMIN, uses_up=True),
    lists("list_commands", of.command, ADMIN_LIST, query={"limit": 100}),
    once("submit_command", ADMIN_ONCE, body={"skill": "{unique}"}),
    on("get_command", of.command, ADMIN),
    on("list_completions", of.command, ADMIN),
    on("cancel_command", of.command, ADMIN, uses_up=True),
]

HTTP = [
    *ABOUT, *TENANTS, *LIMITS, *AUDIT, *CONVERSATIONS, *RUNS, *AGENTS, *TOOLS, *RULES, *NOTES, *GRAPH, *RECALL,
    *MEMORIES, *RESEARCH, *SEARCH, *KNOWLEDGE, *BUS,
]  # fmt: skip
