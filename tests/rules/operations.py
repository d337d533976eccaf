"""The rule that every operation of the HTTP API is a command, or has a reason not to be one."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.rules.tree import source

# The argument that names the operation, by the function that is called.
PLACES = {"call": 0, "_call": 0, "upload": 0, "send_file": 0, "download": 0, "derive": 2}

# Operations that no command uses, and why.
NOT_COMMANDS = {
    "Programs and adapters write conversations; people write them with `holdfast chat`.": [
        "append_node", "append_nodes", "chat", "claim_turn", "create_conversation", "end_session", "move_node",
        "read_events", "read_messages", "release_turn", "renew_turn",
    ],
    "Programs send texts and read chunks and jobs one by one; people use `knowledge add`, `read` and `jobs`.": [
        "add_text", "get_ingest_job", "list_chunks",
    ],
    "State is for programs: its keys and values mean something only to them.": [
        "change_state", "delete_state", "list_state_changes", "read_state",
    ],
    "The console has it as a screen, with the whole content and its versions beside it.": [
        "edit_memory", "get_approval", "get_execution", "get_memory", "get_skill_file", "list_memories",
        "list_node_revisions", "list_note_revisions", "list_owners", "memory_chain", "memory_context", "put_agent",
        "put_skill", "put_tool", "read_subtree", "remove_agent", "remove_conversation", "restore_notes",
    ],
    "Browsers sign in and out; `holdfast keys link` creates the link for it.": ["login", "login_page", "logout"],
    "Authorization servers send browsers there, and read who we are.": [
        "client_document", "complete_connection", "consent_page",
    ],
    "Monitoring and clients of other protocols read it by its address.": [
        "healthz", "list_services", "metrics", "protected_resource", "protected_resource_at", "public_keys",
        "readyz",
    ],
}  # fmt: skip


def named_operations(root: Path) -> Iterator[tuple[str, str]]:
    """Where commands name an operation, and which one."""
    for name, text in source(root, ".py"):
        if not name.startswith("src/holdfast/cli/"):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
                continue
            place = PLACES.get(node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
            if place is not None and len(node.args) > place:
                argument = node.args[place]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield f"{name}:{node.lineno}", argument.value
