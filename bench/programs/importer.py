"""One import of one document, in a process of its own.

    importer.py WAY FILE

WAY is `holdfast` (JSON, YAML or GraphQL SDL) or `fastmcp` (JSON). Says as JSON what came of it, and what it
took; to load the program is not counted. Ours also has to get every schema back from the rows that it is stored as.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Found = tuple[list[Any], int]  # the schemas of the tools, and how many operations were skipped


def ours() -> Callable[[bytes], Found]:
    """Our importer, all operations chosen."""
    from holdfast.skills.sources.graphql import import_graphql, is_sdl
    from holdfast.skills.sources.openapi import import_document, read_document
    from holdfast.skills.sources.source import Choice

    def run(data: bytes) -> Found:
        text = data.decode(errors="replace")
        if is_sdl(text):
            found = import_graphql(text, Choice(everything=True), "http://127.0.0.1:9")
        else:
            found = import_document(read_document(data), Choice(everything=True))
        return [tool.tool.parameters for tool in found.tools], len(found.skipped)

    return run


def fastmcp() -> Callable[[bytes], Found]:
    """FastMCP's importer, and the list of tools that it makes of a document when it is asked for it."""
    logging.disable(logging.ERROR)
    server = import_module("fastmcp").FastMCP
    client = import_module("httpx2").AsyncClient(base_url="http://127.0.0.1:9")

    def run(data: bytes) -> Found:
        made = server.from_openapi(openapi_spec=json.loads(data), client=client)
        tools = asyncio.run(made.list_tools())
        return [tool.parameters for tool in tools], 0

    return run


def unlike(schemas: list[Any]) -> int:
    """How many schemas do not come back from the rows that they are stored as; whoever measures wants none."""
    from holdfast.skills.parameters import normalize, parameters_of, schema_of, storable

    def comes_back(schema: Any) -> bool:
        return schema_of(*parameters_of(schema)) == normalize(storable(schema))

    return sum(not comes_back(schema) for schema in schemas)


def main() -> None:
    """Import, and tell."""
    way, path = sys.argv[1:]
    data = Path(path).read_bytes()
    run = {"holdfast": ours, "fastmcp": fastmcp}[way]()
    start, cpu = time.perf_counter(), time.process_time()
    try:
        schemas, skipped = run(data)
    except Exception as error:  # noqa: BLE001 - what keeps a peer from importing a document is a result
        print(json.dumps({"refused": f"{type(error).__name__}: {error}".partition("\n")[0][:200]}))
        return
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    sizes = [len(json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode()) for schema in schemas]
    status = Path("/proc/self/status").read_text()  # what getrusage tells is the parent's, where that had more
    memory = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    found = {"tools": len(schemas), "skipped": skipped, "seconds": seconds, "cpu": cpu, "memory": memory}
    if way == "holdfast" and (lost := unlike(schemas)):
        print(json.dumps({"refused": f"{lost} schemas are others when they were stored"}))
        return
    print(json.dumps({**found, "bytes": sum(sizes), "biggest": max(sizes, default=0)}))


if __name__ == "__main__":
    main()
