"""The customer that every back end of these benchmarks has, and the MCP tool that gets it. Needs no packages."""

import json
from typing import Any

ANSWER = '{"id": 42, "name": "Ann", "city": "Cologne", "orders": [{"id": 7, "total": 19.5}, {"id": 8, "total": 7.25}]}'
TOOL: dict[str, Any] = {
    "name": "get_customers_by_id",
    "description": "Get one of the customers by its number, with the orders that were made.",
    "inputSchema": {
        "type": "object",
        "properties": {"id": {"type": "integer", "minimum": 1}, "fields": {"type": "string", "maxLength": 200}},
        "required": ["id"],
    },
    "annotations": {"readOnlyHint": True},
}
RESULT: dict[str, Any] = {"content": [{"type": "text", "text": ANSWER}], "structuredContent": json.loads(ANSWER)}
