"""`holdfast sources`: import tools from documents of back ends, and from MCP servers."""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.durations import lifetime
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, table
from holdfast.cli.output import Progress, printable, write
from holdfast.cli.source_identity import NO_IDENTITY, GivenIdentity, describe_identity, takes_identity
from holdfast.core.errors import InvalidInput, NotFound, TooLarge, Unavailable


def show_claims(invocation: Invocation, given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Show what a back end gets."""
    invocation.output.record(found)
    if not invocation.json:
        claims = found.get("claims", {})
        write(sys.stdout, printable("\n".join(f"{name:<10}  {value}" for name, value in claims.items())) + "\n")
    invocation.output.say(f"The back end of {given['name']} gets: {found['kind'].replace('_', '-')}.")


app = group("Import tools from OpenAPI, OpenRPC and GraphQL documents, and from MCP servers.")

MAX_BYTES = 50_000_000  # a copy from holdfast.skills.sources, which takes too long to load
FETCH_SECONDS = 60.0  # without a response of the server

FILE = "file:"  # begins the location of a document in a folder of the server

COLUMNS = ["name", "title", "tools", "skipped", "imported_at", "checked_at", "error"]
IMPORTS = ["revision", "at", "by", "label", "added", "changed", "removed", "deactivated"]
CHANGES = {"change": "CHANGE", "name": "TOOL", "what": "WHAT"}
TOOLS = {"name": "TOOL", "operation": "OPERATION", "access": "ACCESS", "active": "ACTIVE", "notes": "NOTES"}
SKIPPED = {"operation": "LEFT OUT", "path": "WHERE", "reason": "WHY"}

LOCATIONS = "File, - for stdin, http(s) URL, or file:NAME on the server."

derive(app, "ls", "list_sources", table(COLUMNS))
derive(app, "history", "list_source_imports", table(IMPORTS))
derive(app, "identity", "try_identity", show_claims)

Name = Annotated[str, typer.Argument(metavar="NAME")]
Location = Annotated[str, typer.Argument(metavar="LOCATION", help=LOCATIONS)]
NewLocation = Annotated[str | None, typer.Argument(metavar="[LOCATION]", help=LOCATIONS)]
Elsewhere = Annotated[
    str | None,
    typer.Argument(
        metavar="[LOCATION]", help="File, - for stdin, http(s) URL, or file:NAME on the server. [default: as before]"
    ),
]
All = Annotated[bool, typer.Option("--all", help="Select every operation.")]
Operation = Annotated[
    list[str] | None,
    typer.Option(metavar="X", help="Select an operation by its id, or as 'GET /items'. Can be repeated."),
]
Tag = Annotated[list[str] | None, typer.Option(metavar="TAG", help="Select operations with this tag. Can be repeated.")]
Below = Annotated[
    list[str] | None,
    typer.Option(
        "--path", metavar="PATH", help="Select operations below a path, or by a path pattern. Can be repeated."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Base URL of the service. [default: from the document]")
]
Auth = Annotated[
    list[str] | None,
    typer.Option(metavar="SCHEME=SECRET", help="Secret for a security scheme of the document. Can be repeated."),
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'NAME: VALUE'", help="Header of each call. {{secret:NAME}} is replaced by the secret. Can be repeated."
    ),
]
Accept = Annotated[
    bool,
    typer.Option("--accept-address", help="Accept another address of the service, to which secrets are then sent."),
]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="Timeout of a call.", min=0.1)]
Every = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Check the document for changes this often, like 30s. [default: as the server]"),
]
NoReload = Annotated[bool, typer.Option("--no-reload", help="Never reload the document automatically.")]
Graphql = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Address of a GraphQL service. Without LOCATION, it is asked for its schema."),
]
Selection = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'OPERATION={ FIELDS }'", help="What a GraphQL operation asks for. Can be repeated. [default: by rules]"
    ),
]
Depth = Annotated[
    int | None, typer.Option(metavar="N", help="Levels of objects that GraphQL tools ask for. [default: 2]", min=1)
]
Rpc = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Address of a JSON-RPC service. Without LOCATION, it is asked for its methods."),
]
Mcp = Annotated[str | None, typer.Option(metavar="URL", help="Address of an MCP server.")]
McpCommand = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Program that is an MCP server. The server's operator has to allow it."),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Variable for --mcp-command. {{secret:NAME}} is replaced by the secret. Can be repeated.",
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Prefix of the names of an MCP server's tools. [default: the source's name]"),
]
Sampling = Annotated[bool | None, typer.Option(help="Let an MCP server ask the models of its clients.")]
Shared = Annotated[bool | None, typer.Option(help="Let users share a session with an MCP server.")]


@command(app)
@takes_identity
async def add(
    invocation: Invocation,
    name: Name,
    location: NewLocation = None,
    rpc: Rpc = None,
    mcp: Mcp = None,
    mcp_command: McpCommand = None,
    env: Env = None,
    prefix: Prefix = None,
    sampling: Sampling = None,
    shared: Shared = None,
    graphql: Graphql = None,
    all: All = False,
    operation: Operation = None,
    tag: Tag = None,
    path: Below = None,
    base_url: BaseUrl = None,
    auth: Auth = None,
    header: Header = None,
    timeout: Timeout = None,
    every: Every = None,
    no_reload: NoReload = False,
    selection: Selection = None,
    depth: Depth = None,
    identity: GivenIdentity = NO_IDENTITY,
) -> None:
    """Import operations of a document as tools.

    These are the operations that the document marks `x-ai-enabled`, and those that you select. A document describes a
    REST service (OpenAPI, Swagger), a JSON-RPC service (OpenRPC) or a GraphQL service (SDL, or the answer to an
    introspection query). Of an MCP server, you get all tools, prompts and resources, or the tools that you select. The
    server reloads a document with a URL when it changes. file:NAME is a file in the server's folder of documents
    (sources.folder).

    \b
    holdfast sources add shop shop.yaml --tag orders --auth key=shop-key
    holdfast sources add shop https://shop.example.com/openapi.json --all --every 10s
    holdfast sources add market --rpc https://market.example.com/rpc --all
    holdfast sources add github --mcp https://mcp.example.com/mcp --header 'Authorization: Bearer {{secret:github}}'
    holdfast sources add files --mcp-command 'node /srv/mcp/files/index.js /srv/shared'
    holdfast sources add github schema.graphql --graphql https://api.github.com/graphql --tag query
    holdfast sources add shop shop.yaml --all --identity signed
    """
    services = {"jsonrpc": rpc, "graphql": graphql, "mcp": mcp if mcp_command is None else mcp_command}
    kinds = [kind for kind, given in services.items() if given is not None]
    if len(kinds) + (mcp is not None and mcp_command is not None) > 1:
        raise InvalidInput("a source is one service", next="Use one of --graphql, --rpc, --mcp and --mcp-command.")
    kind = kinds[0] if kinds else None
    if location is None and kind is None:
        next = "Pass a file or URL, or a service with --graphql, --rpc, --mcp or --mcp-command."
        raise InvalidInput("there is no document", next=next)
    service = rpc or graphql or mcp
    wanted: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "mcp": _mcp_settings(mcp_command, env, prefix, sampling, shared) if kind == "mcp" else None,
        "choice": choice_of(all=all, operations=operation, tags=tag, paths=path) or {},
        "base_url": base_url or (service if location is not None else rpc),
        "auth": pairs("--auth", auth, "=", "SCHEME=SECRET"),
        "headers": pairs("--header", header, ":", "NAME: VALUE"),
        "timeout": timeout,
        "reload_seconds": interval(every, no_reload=no_reload),
    }
    caller = identity.changed(None)
    if caller is not None:
        wanted["identity"] = caller
    if (rules := _selection({}, selection, depth)) is not None:
        wanted["selection"] = rules
    document = None
    # A file of this machine has no URL: the server cannot read it again.
    url = _url(location) if location is not None and kind != "mcp" else service
    if location is not None and not location.startswith(FILE):
        with invocation.output.progress() as progress:
            document = read_document(location, progress)
    async with reach(invocation) as api:
        with invocation.output.progress() as progress:
            progress("asking the service" if document is None else f"importing {len(document):,} characters")
            report = await api.call("add_source", **wanted, document=document, url=url)
    _report_import(invocation, report)


@command(app)
async def show(invocation: Invocation, name: Name) -> None:
    """Show a source: its tools, and skipped operations with reasons."""
    async with reach(invocation) as api:
        found = await api.call("get_source", name=name)
    invocation.output.record(found)
    if not invocation.json:
        write(sys.stdout, format_source(found["source"]) + "\n")
        notes = [{**tool, "notes": "; ".join(tool["notes"])} for tool in found["tools"]]
        invocation.output.rows(notes, TOOLS)
        if found["skipped"]:
            write(sys.stdout, "")
            invocation.output.rows(found["skipped"], SKIPPED)
    _say_missing(invocation, found)


@command(app)
@takes_identity
async def change(
    invocation: Invocation,
    name: Name,
    location: Elsewhere = None,
    all: All = False,
    operation: Operation = None,
    tag: Tag = None,
    path: Below = None,
    base_url: BaseUrl = None,
    auth: Auth = None,
    header: Header = None,
    timeout: Timeout = None,
    mcp: Mcp = None,
    mcp_command: McpCommand = None,
    env: Env = None,
    prefix: Prefix = None,
    sampling: Sampling = None,
    shared: Shared = None,
    every: Every = None,
    no_reload: NoReload = False,
    selection: Selection = None,
    depth: Depth = None,
    identity: GivenIdentity = NO_IDENTITY,
    accept_address: Accept = False,
) -> None:
    """Change the selected operations, or how the back end is called. Omitted options are unchanged.

    A scheme or a header without a value is removed. A new selection replaces the old one.

    \b
    holdfast sources change shop --auth key=new-key --header 'X-Team:'
    """
    choice = choice_of(all=all, operations=operation, tags=tag, paths=path)
    auths, headers = pairs("--auth", auth, "=", "SCHEME=SECRET"), pairs("--header", header, ":", "NAME: VALUE")
    async with reach(invocation) as api:
        old = (await api.call("get_source", name=name))["source"]
        backend = old["backend"]
        wanted: dict[str, Any] = {
            "version": old["version"],
            "choice": choice,
            "base_url": base_url,
            "auth": _merge(backend.get("auth", {}), auths) if auths else None,
            "headers": _merge(backend.get("headers", {}), headers) if headers else None,
            "timeout": timeout,
            "reload_seconds": interval(every, no_reload=no_reload),
            "selection": _selection(old["selection"], selection, depth),
            "url": _url(location) or mcp,
            "accept_address": accept_address,
        }
        known_identity = backend.get("identity")
        caller = identity.changed(known_identity)
        if caller != known_identity:
            wanted["identity"] = caller
        if server := _mcp_settings(mcp_command, env, prefix, sampling, shared):
            known: dict[str, Any] = {**(backend.get("mcp") or {})}
            known.pop("url", None)
            wanted["mcp"] = {**known, **server, "env": _merge(known.get("env", {}), server.get("env", {}))}
        if (location is not None and not location.startswith(FILE)) or (
            location is None and old["location"] and (choice or base_url or selection or depth) and not _is_asked(old)
        ):
            with invocation.output.progress() as progress:
                wanted["document"] = read_document(location or old["location"], progress)
        report = await api.call("change_source", name=name, **wanted)
    _report_import(invocation, report)


@command(app)
async def reload(
    invocation: Invocation,
    name: Name,
    location: Elsewhere = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report changes without applying them.")] = False,
    accept_address: Accept = False,
) -> None:
    """Import the document of a source again and report the changes."""
    async with reach(invocation) as api:
        with invocation.output.progress() as progress:
            document = await _document_to_reload(api, name, location, progress)
            progress("asking the server" if document is None else f"importing {len(document):,} characters")
            body = {"document": document, "url": _url(location), "dry_run": dry_run, "accept_address": accept_address}
            report = await api.call("reload_source", name=name, **body)
    _report_import(invocation, report)


@command(app)
async def diff(
    invocation: Invocation,
    name: Name,
    revision: Annotated[
        int | None, typer.Argument(metavar="[REVISION]", help="Import, as in `history`. [default: the last one]")
    ] = None,
) -> None:
    """Show what an import changed: the former and the new definition of each tool."""
    async with reach(invocation) as api:
        if revision is None:
            imports = (await api.call("list_source_imports", name=name, limit=1))["imports"]
            if not imports:
                raise NotFound(f"the source {name} has no imports that changed its tools")
            revision = imports[0]["revision"]
        found = await api.call("get_source_import", name=name, revision=revision)
    invocation.output.record(found)
    if not invocation.json:
        write(sys.stdout, printable("\n".join(format_differences(found))))


@command(app)
async def rm(
    invocation: Invocation,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Remove it even if skills use its tools.")] = False,
) -> None:
    """Remove a source and its tools."""
    async with reach(invocation) as api:
        removed = await api.call("remove_source", name=name, force=force)
    invocation.output.record({"name": name, **removed})
    invocation.output.say(f"Removed {name} and its {len(removed['tools'])} tools.")


def interval(every: str | None, *, no_reload: bool) -> float | None:
    """Return the seconds between two checks for the API: 0 for none, None for the default."""
    if no_reload:
        if every is not None:
            raise InvalidInput("--every and --no-reload exclude each other", next="Use one of them.")
        return 0.0
    return None if every is None else lifetime(every).total_seconds()


def choice_of(
    *, all: bool, operations: list[str] | None, tags: list[str] | None, paths: list[str] | None
) -> dict[str, Any] | None:
    """Return the selected operations for the API, or None if nothing is selected."""
    choice = {"everything": all, "operations": operations, "tags": tags, "paths": paths}
    return {name: value for name, value in choice.items() if value} or None


def _mcp_settings(
    command: str | None, env: list[str] | None, prefix: str | None, sampling: bool | None, shared: bool | None
) -> dict[str, Any]:
    """Return what the options say of an MCP server, without those that were not given."""
    try:
        words = shlex.split(command) if command is not None else None
    except ValueError as error:
        raise InvalidInput("--mcp-command cannot be read", why=str(error), next="Quote it as in a shell.") from None
    variables = pairs("--env", env, "=", "NAME=VALUE") or None
    given = {"command": words, "env": variables, "prefix": prefix, "sampling": sampling, "shared": shared}
    return {name: value for name, value in given.items() if value is not None}


def pairs(option: str, texts: Iterable[str] | None, sign: str, form: str) -> dict[str, str]:
    """Parse the values of an option into names and values."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, sep, value = text.partition(sign)
        if not sep or not name.strip():
            raise InvalidInput(f"{option} cannot be read", next=f"Write it as {form}.")  # the value may be a secret
        found[name.strip()] = value.strip()
    return found


def read_document(location: str, progress: Progress) -> str:
    """Read a document from a file, stdin or a URL, on this machine."""
    progress(f"reading {location}")
    if location.lower().startswith(("http://", "https://")):
        data = _fetch(location)
    elif location == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        try:
            with Path(location).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            next = "Give a file, - for stdin, or an http(s) address."
            raise InvalidInput(f"{location[:200]} cannot be read", why=why, next=next) from None
    if len(data) > MAX_BYTES:
        raise TooLarge("the document is too large", why=f"it has more than {MAX_BYTES:,} bytes", limit=MAX_BYTES)
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            "the document is not text", why=f"line {line} is not UTF-8", next="Save it as UTF-8."
        ) from None


def format_source(source: Mapping[str, Any]) -> str:
    """Format a source for the terminal."""
    backend, choice = source["backend"], source["choice"]
    server, is_asked = backend.get("mcp"), source["kind"] == "mcp"
    chosen = ["everything"] if choice["everything"] else []
    chosen += [*choice["operations"], *(f"tag {tag}" for tag in choice["tags"]), *choice["paths"]]
    about = {
        "document": " ".join(filter(None, [source["title"], source["label"]])),
        "location": "" if is_asked else source["location"] or "given by hand",
        "chosen": ", ".join(chosen) or ("everything" if is_asked else "what the document marks"),
        "server": _describe_server(server),
        "base URL": backend.get("base_url") or "",
        "auth": ", ".join(f"{scheme} by {secret}" for scheme, secret in backend.get("auth", {}).items()),
        "headers": ", ".join(f"{name}: {value}" for name, value in backend.get("headers", {}).items()),
        "identity": describe_identity(backend.get("identity")),
        "selections": ", ".join(source.get("selection", {}).get("operations", {})),
        "time-out": f"{backend['timeout']:g} s" if backend.get("timeout") else "",
        "reload": reload_of(source),
        "checked": source["checked_at"] or "",
        "error": source["error"],
        "active": "" if source["active"] else "no",
        "version": f"{source['version']}, by {source['updated_by']}" if source["updated_by"] else source["version"],
    }
    lines = [source["name"], *(f"{name:<9}  {value}" for name, value in about.items() if value)]
    return printable("\n".join(lines))


def _describe_server(server: Mapping[str, Any] | None) -> str:
    if server is None:
        return ""
    about = [server.get("url") or shlex.join(server.get("command", ()))]
    about += [f"{name}={value}" for name, value in server.get("env", {}).items()]
    if server.get("prefix") is not None:
        about.append(f"prefix {server['prefix'] or 'none'}")
    return ", ".join(about + [word for word in ("sampling", "shared") if server.get(word)])


def reload_of(source: Mapping[str, Any]) -> str:
    """Return when the document of a source is reloaded, for the terminal."""
    if source["reload_seconds"] == 0:
        return "never"
    if source["location"].startswith(FILE):
        return "when the file changes"
    if not source["location"]:
        return ""
    return f"every {source['reload_seconds']:g} s" if source["reload_seconds"] else "as often as the server checks"


def format_differences(found: Mapping[str, Any]) -> Iterable[str]:
    """Format what an import changed as the differences of the tools' definitions."""
    for tool in found["tools"]:
        what = f": {', '.join(tool['what'])}" if tool["what"] else ""
        yield f"{tool['change']} {tool['name']}{what}"
        before, after = (_lines_of(tool[side]) for side in ("before", "after"))
        yield from (f"  {line}" for line in list(unified_diff(before, after, lineterm="", n=2))[2:])


def _lines_of(definition: Mapping[str, Any] | None) -> list[str]:
    return [] if definition is None else json.dumps(definition, indent=2, ensure_ascii=False).splitlines()


async def _document_to_reload(api: Api, name: str, location: str | None, progress: Progress) -> str | None:
    """Return the document of a source, or None if the server asks a service for it."""
    if location is not None:
        return None if location.startswith(FILE) else read_document(location, progress)
    source = (await api.call("get_source", name=name))["source"]
    if _is_asked(source):
        return None
    if not source["location"]:
        next = f"Name it: `holdfast sources reload {name} FILE`."
        raise InvalidInput(
            f"the location of the document of {name} is not known", why="it came from a file or stdin", next=next
        )
    return read_document(source["location"], progress)


def _is_asked(source: Mapping[str, Any]) -> bool:
    """Whether the server itself reads the document of a source: from the service, or from a file."""
    return (
        source["location"].startswith(FILE)
        or source["kind"] == "mcp"
        or (source["kind"] != "openapi" and bool(source["location"]))
    )


def _selection(old: Mapping[str, Any], texts: list[str] | None, depth: int | None) -> dict[str, Any] | None:
    """Return what GraphQL tools ask for, for the API, or None if no option says it. An empty selection is removed."""
    if not texts and depth is None:
        return None
    new = pairs("--selection", texts, "=", "OPERATION={ FIELDS }")
    found = {**old, "operations": _merge(old.get("operations", {}), new)}
    return found if depth is None else {**found, "depth": depth}


def _url(location: str | None) -> str | None:
    is_one = location is not None and location.lower().startswith(("http://", "https://", FILE))
    return location if is_one else None


def _fetch(url: str) -> bytes:
    from http.client import HTTPException
    from urllib import request

    opener = request.OpenerDirector()  # without handlers for files and other protocols
    for handler in (
        request.ProxyHandler, request.HTTPHandler, request.HTTPSHandler, request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler, request.HTTPErrorProcessor,
    ):  # fmt: skip
        opener.add_handler(handler())
    try:
        with opener.open(url, timeout=FETCH_SECONDS) as answer:
            return answer.read(MAX_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:
        why = str(getattr(error, "reason", "") or error)
        next = "Check the address, or give the document as a file."
        raise Unavailable(f"{url[:200]} cannot be fetched", why=why, next=next) from None


def _merge(old: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in {**old, **changes}.items() if value}


def _report_import(invocation: Invocation, report: dict[str, Any]) -> None:
    """Report an import: a line for each changed tool, then a summary."""
    source, output = report["source"], invocation.output
    output.record(report)
    rows = [{"change": "added", "name": name} for name in report["added"]]
    rows += [{"change": "changed", "name": tool["name"], "what": tool["what"]} for tool in report["changed"]]
    rows += [{"change": kind, "name": name} for kind in ("removed", "deactivated") for name in report[kind]]
    if rows and not invocation.json:
        output.rows(rows, CHANGES)
    would = "would have" if report["dry_run"] else "has"
    output.say(f"{source['name']} {would} {_plural(source['tools'], 'tool')}: {_count_changes(report)}.")
    chosen = [each for each in report["skipped"] if each["chosen"]]
    for each in chosen[:5]:
        output.say(f"{each['operation']} was skipped: {each['reason']}.")
    if len(report["skipped"]) > min(len(chosen), 5):
        output.say(
            f"{len(report['skipped'])} operations were skipped. `holdfast sources show {source['name']}` says why."
        )
    if not source["tools"]:
        output.say(
            "The document marks no operation x-ai-enabled. Select some with --all, --operation, --tag or --path."
        )
    _say_missing(invocation, report)


def _count_changes(report: Mapping[str, Any]) -> str:
    kinds = ("added", "changed", "removed", "deactivated", "unchanged")
    return ", ".join(f"{len(report[kind])} {kind}" for kind in kinds if report[kind]) or "no changes"


def _say_missing(invocation: Invocation, found: Mapping[str, Any]) -> None:
    source = found["source"]
    for name in source["missing_secrets"]:
        invocation.output.say(f"The secret {name} is missing. Store it: `holdfast secrets set {name}`.")
    for scheme in found["missing_auth"]:
        how = f"`holdfast sources change {source['name']} --auth {scheme}=SECRET`"
        invocation.output.say(
            f"The security scheme {scheme} has no secret, so calls that need it fail. Name one: {how}."
        )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
