"""Sources: documents of REST, GraphQL and JSON-RPC services, and MCP servers, whose operations become tools.

Needs the scope `admin`.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import asdict

from holdfast.core.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    LimitReached,
    NotFound,
    Overloaded,
    TimedOut,
    TooLarge,
    Unavailable,
)
from holdfast.execution.egress import checked_url
from holdfast.execution.rest.requests import origin_of
from holdfast.server.fields import (
    SECRET_NAME,
    WEB_ADDRESS,
    CallSeconds,
    DocumentAddress,
    RegistryVersion,
    ReloadSeconds,
    SecretName,
    SourceName,
    WebAddress,
    about,
    documented,
    matching,
    present,
)
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.skills.request import BackendIdentity, McpServer
from holdfast.skills.sources.graphql.rules import (
    DEEPEST,
    MOST_CHARACTERS,
    MOST_FIELDS,
    MOST_ITEMS,
    SelectionRules,
)
from holdfast.skills.sources.identity import MAX_SCOPES, MAX_TEXT, SCOPE, TEXT
from holdfast.skills.sources.imports import KEPT
from holdfast.skills.sources.reports import ImportDetails, SourceDetails, SourceEntry, SourceImport, SourceReport
from holdfast.skills.sources.settings import HEADER_NAME, HEADER_VALUE, LOADER, MAX_ENTRIES, MAX_ENTRY, PREFIX, VARIABLE
from holdfast.skills.sources.source import Choice, PinPolicy, SourceKind

operations = ApiOperations("sources")

MAX_BODY_BYTES = 64 * 1024 * 1024  # a document of 50 MB, as a JSON string
IMPORT_SECONDS = 115.0  # to fetch and import a large document on a busy machine
FETCHING = (TooLarge, LimitReached, Overloaded, Unavailable, TimedOut)

ImportLimit = Annotated[int, msgspec.Meta(ge=1, le=KEPT)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
IdentityText = Annotated[str, documented(maxLength=MAX_TEXT, pattern=f"^{TEXT}$")]
IdentityAddress = Annotated[str, matching(f"({WEB_ADDRESS})?")]
Entry = Annotated[
    str, documented(minLength=1, maxLength=MAX_ENTRY, pattern=r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$")
]
Entries = Annotated[tuple[Entry, ...], documented(maxItems=MAX_ENTRIES)]
Secrets = dict[Entry, SecretName]
Headers = dict[Annotated[str, matching(HEADER_NAME)], Annotated[str, matching(HEADER_VALUE)]]
VariableName = Annotated[str, matching(rf"(?!{LOADER}){VARIABLE}")]
Variables = dict[VariableName, Annotated[str, documented(maxLength=MAX_ENTRY, pattern=r"^[^\x00]*$")]]


class Chosen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operations to import in addition to the marked ones: all, or by operation, tag or path."""

    everything: bool = False
    operations: Entries = ()
    tags: Entries = ()
    paths: Entries = ()


class McpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server, besides its address. `command` starts it as a program instead, with the variables in `env`.

    The operator has to allow the program in the setting `execution.commands`. `{{secret:NAME}}` in a variable stands
    for a secret. `prefix` begins the names of its tools and prompts; by default, the name of the source. `sampling`:
    it may ask the models of clients. `shared`: users share a session with it; otherwise, each has one of their own.
    """

    command: Entries = ()
    env: Variables = {}
    prefix: Annotated[str, matching(PREFIX)] | None = None
    sampling: bool = False
    shared: bool = False


class SourceIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a back end learns about callers.

    `signed`: a token of this server in the header `Holdfast-Identity`, for the audience `audience`, by default the
    back end's address. `client_credentials`: an access token of this server's own. `token_exchange`: an access token in
    exchange for the caller's (RFC 8693). `pass_through`: the caller's own token, for REST services whose host is in the
    setting `execution.pass_through`. `user`: a token that each user agrees to once, for the back end at the base URL.

    `issuer` is the authorization server, whose metadata name the token endpoint, unless `token_url` does. `client_id`
    is this server's, `client_secret` the name of a secret, which is sent as `client_auth` says. `actor`: the exchanged
    token names this server as the actor. `requested` is the type of the requested token. `fallback`: what the back end
    gets if the caller has no token to exchange; by default, the call is refused. With `user`, `authorize_url` is where
    users agree, if the metadata of the issuer do not say it. An MCP server names its issuer itself.
    """

    kind: Literal["signed", "client_credentials", "token_exchange", "pass_through", "user"]
    audience: IdentityText = ""
    resource: IdentityAddress = ""
    scopes: Annotated[tuple[Annotated[str, matching(SCOPE)], ...], documented(maxItems=MAX_SCOPES)] = ()
    issuer: IdentityAddress = ""
    token_url: IdentityAddress = ""
    authorize_url: IdentityAddress = ""
    client_id: IdentityText = ""
    client_secret: Annotated[str, matching(rf"({SECRET_NAME})?")] = ""
    client_auth: Literal["basic", "post"] = "basic"
    actor: bool = False
    requested: Literal["access_token", "jwt"] = "access_token"
    fallback: Literal["signed", "client_credentials"] | None = None


# Which fields go together.
_CLIENT: dict[str, Any] = {
    "required": ["client_id"],
    "properties": {"client_id": {"minLength": 1}},
    "anyOf": [{"required": [name], "properties": {name: {"minLength": 1}}} for name in ("issuer", "token_url")],
}
_SECRET: dict[str, Any] = {"required": ["client_secret"], "properties": {"client_secret": {"minLength": 1}}}
_FOR: dict[str, Any] = {
    "anyOf": [{"required": [name], "properties": {name: {"minLength": 1}}} for name in ("audience", "resource")]
}
_NO_CLIENT: dict[str, Any] = {
    **{name: {"const": ""} for name in ("resource", "issuer", "token_url", "client_id", "client_secret")},
    "scopes": {"maxItems": 0},
    "client_auth": {"const": "basic"},
}
_NO_CONSENT: dict[str, Any] = {"authorize_url": {"const": ""}}
_NO_EXCHANGE: dict[str, Any] = {
    "actor": {"const": False}, "requested": {"const": "access_token"}, "fallback": {"type": "null"},
}  # fmt: skip
_NO_SECRET: dict[str, Any] = {
    "properties": {"actor": {"const": False}, "fallback": {"enum": [None, "signed"]}},
}
# The schema of a union drops what its members are annotated with.
IDENTITY_RULE = documented(
    allOf=[
        {
            "anyOf": [
                {"type": "null"},
                {"properties": {"kind": {"const": "signed"}, **_NO_CLIENT, **_NO_EXCHANGE, **_NO_CONSENT}},
                {
                    "properties": {
                        "kind": {"const": "pass_through"},
                        "audience": {"const": ""},
                        **_NO_CLIENT,
                        **_NO_EXCHANGE,
                        **_NO_CONSENT,
                    }
                },
                {
                    "properties": {"kind": {"const": "user"}, "audience": {"const": ""}, **_NO_EXCHANGE},
                    "anyOf": [
                        {"required": ["client_id"], "properties": {"client_id": {"minLength": 1}}},
                        {"properties": {"client_secret": {"const": ""}}},
                    ],
                },
                {
                    "properties": {"kind": {"const": "client_credentials"}, **_NO_EXCHANGE, **_NO_CONSENT},
                    "allOf": [_CLIENT, _SECRET],
                },
                {
                    "properties": {"kind": {"const": "token_exchange"}, **_NO_CONSENT},
                    "allOf": [_CLIENT, _FOR, {"anyOf": [_SECRET, _NO_SECRET]}],
                },
            ]
        }
    ]
)


class IdentityCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a back end got when it was tried: the kind, and the claims of the token, if it is a JWT."""

    kind: str
    claims: dict[str, Any] = {}


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What GraphQL tools ask for.

    By default, scalars and enums down to `depth`, in at most `fields` fields and `characters`. `items`: the size of a
    page of a connection. `deepest` limits the selections of callers. `operations`: selections of single operations,
    such as `{"query repository": "{ id name }"}`.
    """

    depth: Annotated[int, msgspec.Meta(ge=1, le=DEEPEST)] = 2
    fields: Annotated[int, msgspec.Meta(ge=1, le=MOST_FIELDS)] = 100
    characters: Annotated[int, msgspec.Meta(ge=1, le=MOST_CHARACTERS)] = 4000
    items: Annotated[int, msgspec.Meta(ge=1, le=MOST_ITEMS)] = 20
    deepest: Annotated[int, msgspec.Meta(ge=1, le=DEEPEST)] = 8
    operations: dict[Entry, Entry] = {}


NO_SERVER: dict[str, Any] = {"kind": {"not": {"const": "mcp"}}, "mcp": {"type": "null"}}
OF_SERVER: dict[str, Any] = {"kind": {"enum": [None, "mcp"]}, "document": {"type": "null"}}


class NewSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A source to add: a `document` as text, in JSON, YAML or GraphQL SDL, or a `url` to fetch it from.

    With both, `url` says where the document comes from; if that is the JSON-RPC or GraphQL service itself, the document
    is never reloaded automatically. `auth` names the secret of each security scheme. `kind`: what the document
    describes; by default, the document says so. With the kind `jsonrpc` and without a document, the service at `url` is
    asked for it (`rpc.discover`); with the kind `graphql`, for its schema (introspection). With the kind `mcp`, the MCP
    server at `url` is asked for its tools, prompts and resources, or the program that `mcp` names. `file:NAME` as `url`
    is a file in the folder of the setting `sources.folder`. `reload_seconds`: between two checks of the document; by
    default as the setting `sources.check_seconds` says; 0: it is never reloaded automatically. `pin`: changed
    definitions of tools are held until somebody approves them (`hold`), or used at once (`follow`). `identity`: what
    the back end learns about callers; by default, nothing.
    """

    name: SourceName
    kind: SourceKind | None = None
    document: Text | None = None
    url: DocumentAddress | None = None
    choice: Chosen = Chosen()
    base_url: WebAddress | None = None
    auth: Secrets = {}
    headers: Headers = {}
    timeout: CallSeconds | None = None
    mcp: McpSettings | None = None
    reload_seconds: ReloadSeconds | None = None
    selection: Selection = Selection()
    pin: PinPolicy = "hold"
    identity: Annotated[SourceIdentity | None, IDENTITY_RULE] = None


# A document, an address, or an MCP server: either a program, or at an address without a program's fields.
SOURCE_RULE = documented(
    anyOf=[
        *({**given, "properties": {**NO_SERVER, **given["properties"]}} for given in present("document", "url")),
        {
            "required": ["mcp"],
            "properties": {
                **OF_SERVER,
                "mcp": {"type": "object", "required": ["command"], "properties": {"command": {"minItems": 1}}},
                "url": {"type": "null"},
                "headers": {"maxProperties": 0},
                "identity": {"type": "null"},
            },
        },
        {
            "required": ["mcp", "url"],
            "properties": {
                **OF_SERVER,
                "mcp": {
                    "type": "object",
                    "properties": {"command": {"maxItems": 0}, "env": {"maxProperties": 0}},
                },
                "url": {"type": "string", "pattern": f"^{WEB_ADDRESS}$"},
                "identity": {"not": {"required": ["kind"], "properties": {"kind": {"const": "pass_through"}}}},
            },
        },
    ]
)


class SourceChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a source. Omitted fields are unchanged. `version` is the current version.

    If the change affects the tools, the document is read again. Send it, unless the source has the address to fetch it
    from. `url`: where the document comes from. `accept_address`: allow secrets to be sent to another address than
    before.
    """

    version: RegistryVersion
    choice: Chosen | None = None
    base_url: WebAddress | msgspec.UnsetType | None = msgspec.UNSET
    auth: Secrets | None = None
    headers: Headers | None = None
    timeout: CallSeconds | msgspec.UnsetType | None = msgspec.UNSET
    mcp: McpSettings | None = None
    reload_seconds: ReloadSeconds | msgspec.UnsetType | None = msgspec.UNSET
    selection: Selection | None = None
    pin: PinPolicy | None = None
    identity: Annotated[SourceIdentity | msgspec.UnsetType | None, IDENTITY_RULE] = msgspec.UNSET
    document: Text | None = None
    url: DocumentAddress | None = None
    accept_address: bool = False


class Reloading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document to reload. Without one, it is fetched from `url`, by default from its previous address.

    `accept_address`: allow secrets to be sent to another address than before.
    """

    document: Text | None = None
    url: DocumentAddress | None = None
    version: RegistryVersion | None = None
    accept_address: bool = False
    dry_run: bool = False


class SourceList(msgspec.Struct, frozen=True):
    """Sources, by name."""

    sources: list[SourceEntry]


class SourceImportList(msgspec.Struct, frozen=True):
    """Imports that changed tools of a source, newest first."""

    imports: list[SourceImport]


class RemovedSource(msgspec.Struct, frozen=True):
    """The tools that were removed with a source."""

    tools: list[str]


@operations.declare("GET", "/api/sources", needs="admin")
async def list_sources(call: ApiCall) -> SourceList:
    """List sources."""
    return SourceList([*await call.engine.sources.list()])


@operations.declare(
    "POST", "/api/sources", needs="admin", status=201, errors=[AlreadyExists, NotFound, *FETCHING],
    max_body_bytes=MAX_BODY_BYTES, audit=["name", "url"],
)  # fmt: skip
async def add_source(call: ApiCall, body: Annotated[NewSource, SOURCE_RULE]) -> SourceReport:
    """Add a source: import the marked and the chosen operations of a document as tools."""
    if body.document is None and body.url is None and body.mcp is None:
        raise InvalidInput("there is no document", next="Give it as `document`, or its address as `url`.")
    call.slot.stay(IMPORT_SECONDS)
    return await call.engine.sources.add(**_engine_fields(body), by=call.principal.user)


@operations.declare("GET", "/api/sources/{name}", needs="admin", errors=[NotFound])
async def get_source(call: ApiCall, name: str) -> SourceDetails:
    """Get a source with its tools and its skipped operations."""
    return await call.engine.sources.get(name)


@operations.declare(
    "PUT", "/api/sources/{name}", needs="admin", errors=[NotFound, Conflict, *FETCHING], max_body_bytes=MAX_BODY_BYTES,
    audit=["url", "base_url", "choice", "identity", "accept_address"],
)  # fmt: skip
async def change_source(call: ApiCall, name: str, body: SourceChange) -> SourceReport:
    """Change which operations a source imports, or how its back end is called."""
    call.slot.stay(IMPORT_SECONDS)
    return await call.engine.sources.change(name, **_engine_fields(body), by=call.principal.user)


@operations.declare("DELETE", "/api/sources/{name}", needs="admin", errors=[NotFound, AlreadyExists, Conflict])
async def remove_source(
    call: ApiCall,
    name: str,
    force: Annotated[bool, about("Remove it even if skills use its tools.")] = False,
    version: RegistryVersion | None = None,
) -> RemovedSource:
    """Remove a source and its tools. If skills link one of the tools, this needs `force`."""
    removed = await call.engine.sources.remove(name, force=force, version=version, by=call.principal.user)
    return RemovedSource([*removed])


@operations.declare(
    "POST", "/api/sources/{name}/reload", needs="admin", errors=[NotFound, Conflict, *FETCHING],
    max_body_bytes=MAX_BODY_BYTES,
)  # fmt: skip
async def reload_source(call: ApiCall, name: str, body: Reloading) -> SourceReport:
    """Reload the document of a source, and report the differences; with `dry_run`, change nothing.

    New and changed definitions of tools are held until somebody approves them, unless the source follows its document.
    """
    call.slot.stay(IMPORT_SECONDS)
    return await call.engine.sources.reload(name, **_engine_fields(body), by=call.principal.user)


@operations.declare("POST", "/api/sources/{name}/identity", needs="admin", errors=[NotFound, Unavailable, TimedOut])
async def try_identity(call: ApiCall, name: str) -> IdentityCheck:
    """Try what the back end of a source learns about the caller, without a call of the back end."""
    found = await call.engine.sources.get(name)
    backend = found.source.backend
    address = backend.base_url or (backend.mcp.url if backend.mcp is not None else "")
    if not address and found.tools:
        address = origin_of((await call.engine.tools.get(found.tools[0].name)).tool)
    origin = str(checked_url(address).origin()) if address else ""
    principal = call.principal
    claims = await call.engine.backend_identities.describe(
        backend, user=principal.user, agent=principal.agent, token=principal.token, origin=origin
    )
    return IdentityCheck("none" if backend.identity is None else backend.identity.kind, dict(claims))


@operations.declare("GET", "/api/sources/{name}/imports", needs="admin", errors=[NotFound])
async def list_source_imports(call: ApiCall, name: str, limit: ImportLimit = 50) -> SourceImportList:
    """List the imports that changed tools of a source, newest first. The last 100 are kept."""
    await call.engine.sources.get(name)
    return SourceImportList(await call.engine.sources.imports.list(name, limit=limit))


@operations.declare("GET", "/api/sources/{name}/imports/{revision}", needs="admin", errors=[NotFound])
async def get_source_import(call: ApiCall, name: str, revision: RegistryVersion) -> ImportDetails:
    """Get an import, with the former and the new definition of each tool that it changed."""
    return await call.engine.sources.imports.get(name, revision)


def _engine_fields(body: NewSource | SourceChange | Reloading) -> dict[str, Any]:
    """Return the fields of a body as the engine takes them: the document in bytes, the choice as a `Choice`."""
    given = asdict(body)
    if given["document"] is not None:
        given["document"] = given["document"].encode(errors="surrogatepass")
    if given.get("choice") is not None:
        given["choice"] = Choice(**asdict(given["choice"]))
    if given.get("mcp") is not None:
        given["mcp"] = McpServer(**asdict(given["mcp"]))
    if given.get("selection") is not None:
        given["selection"] = SelectionRules(**asdict(given["selection"]))
    if isinstance(given.get("identity"), SourceIdentity):
        given["identity"] = BackendIdentity(**asdict(given["identity"]))
    return given
