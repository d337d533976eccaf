"""An MCP server of the versions with a handshake, over stdio, whose tools misbehave as their names say."""

import json
import os
import sys
import time
from typing import Any

TOOLS = (
    "answer",
    "environment",
    "die",
    "hang",
    "flood",
    "noise",
    "write",
    "blank",
    "questions",
    "garbage",
    "wrong_id",
    "huge",
    "twice",
    "no_result",
    "cancelled",
)

LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 99}}
PING = {"jsonrpc": "2.0", "id": "q", "method": "ping"}
ENDLESS = {  # what tools write for ever
    "flood": json.dumps(LOG) + "\n",
    "noise": "starting...\n",
    "blank": "\n",
    "questions": json.dumps(PING) + "\n",
}


def write(message: object) -> None:
    """Write a message as a line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def result(id: Any, text: str) -> dict[str, Any]:
    """The response with a text."""
    return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}


def written(folder: str) -> str:
    """Say whether a folder can be written."""
    try:
        with open(os.path.join(folder, "written.py"), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123 - quick
            file.write("print()")
    except OSError as error:
        return type(error).__name__
    return "written"


def call(id: Any, name: str, seen: list[str]) -> None:
    """Do what a tool is there for."""
    match name:
        case "die":
            sys.stderr.write("out of cheese\n")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            pass
        case _ if name in ENDLESS:
            while True:
                sys.stdout.write(ENDLESS[name])
        case "write":
            write(result(id, written(os.environ["FOLDER"])))
        case "garbage":
            sys.stdout.write("{this is not JSON\n")
            write(result(id, "after garbage"))
        case "wrong_id":
            write(result("somebody else's", "for nobody"))
        case "huge":
            for _ in range(2**14):
                sys.stdout.write("x" * 2**16)
        case "twice":
            write(result(id, "first"))
            write(result(id, "second"))
        case "no_result":
            write({"jsonrpc": "2.0", "id": id})
        case _:
            said = {"environment": json.dumps(dict(os.environ)), "cancelled": ", ".join(seen)}
            write(result(id, said.get(name, f"pid {os.getpid()}")))


def main() -> None:
    """Serve until the input ends."""
    if "slow" in sys.argv:
        time.sleep(1)
    if "broken" in sys.argv:
        sys.stderr.write("no configuration\n")
        sys.exit(2)
    seen: list[str] = []
    for line in sys.stdin:
        message = json.loads(line)
        id, method = message.get("id"), message["method"]
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "faulty", "version": "1"}
            write(
                {
                    "jsonrpc": "2.0",
                    "id": id,
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about},
                }
            )
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            write({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}})
        elif method == "tools/call":
            call(id, message["params"]["name"], seen)
        elif method == "notifications/cancelled":
            seen.append("cancelled")
        elif id is not None:
            write({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}})


if __name__ == "__main__":
    main()
