"""What each error code is on each wire: one table per wire, every code in every table."""

# On JSON-RPC and MCP, -32000 to -32099 belong to the protocols; an error of our own is -31000 minus its HTTP status.

HTTP_STATUS: dict[str, int] = {
    "failed": 500,
    "invalid_input": 400,
    "bad_setting": 400,
    "not_found": 404,
    "unauthenticated": 401,
    "forbidden": 403,
    "conflict": 409,
    "already_exists": 409,
    "busy": 409,
    "too_large": 413,
    "overloaded": 429,
    "command_failed": 502,
    "unavailable": 503,
    "database_away": 503,
    "timed_out": 504,
    "shutting_down": 503,
    "port_taken": 503,
    "data_folder_unusable": 503,
    "broken": 500,
    "schema_mismatch": 500,
}

JSONRPC_CODE: dict[str, int] = {
    "failed": -32603,
    "invalid_input": -32602,
    "bad_setting": -32602,
    "not_found": -31404,
    "unauthenticated": -31401,
    "forbidden": -31403,
    "conflict": -31409,
    "already_exists": -31409,
    "busy": -31409,
    "too_large": -31413,
    "overloaded": -31429,
    "command_failed": -31502,
    "unavailable": -31503,
    "database_away": -31503,
    "timed_out": -31504,
    "shutting_down": -31503,
    "port_taken": -31503,
    "data_folder_unusable": -31503,
    "broken": -32603,
    "schema_mismatch": -32603,
}

# MCP calls an unknown tool, prompt or resource invalid parameters.
MCP_CODE: dict[str, int] = JSONRPC_CODE | {"not_found": -32602}

EXIT_CODE: dict[str, int] = {
    "failed": 1,
    "invalid_input": 2,
    "bad_setting": 2,
    "not_found": 3,
    "unauthenticated": 4,
    "forbidden": 4,
    "conflict": 5,
    "already_exists": 5,
    "busy": 5,
    "too_large": 2,
    "overloaded": 6,
    "command_failed": 1,
    "unavailable": 6,
    "database_away": 6,
    "timed_out": 6,
    "shutting_down": 6,
    "port_taken": 6,
    "data_folder_unusable": 6,
    "broken": 1,
    "schema_mismatch": 1,
}
