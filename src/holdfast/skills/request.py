"""How a tool call becomes an HTTP request, and how its back end is reached, as stored."""

from typing import Any, Literal

import msgspec

Location = Literal["path", "query", "header", "cookie"]
Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"]


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of types that are stored as JSON, without default values."""


class RequestParameter(Struct, frozen=True):
    """An argument in the URL, a header or a cookie, under the back end's name for it.

    With a `content_type`, the value is encoded as that (JSON), and `style` and `explode` have no effect.
    """

    argument: str
    name: str
    location: Location
    style: Style = "form"
    explode: bool = False
    allow_reserved: bool = False
    content_type: str | None = None


class BodyField(Struct, frozen=True):
    """An argument that is a property or a part of the body. `content_type` is that of a part, if specified."""

    argument: str
    name: str
    content_type: str | None = None
    style: Style | None = None
    explode: bool | None = None


class RequestBody(Struct, frozen=True):
    """The body of a request: one whole argument, or an object of several.

    `content_type` is JSON, application/x-www-form-urlencoded, multipart/form-data, or another one (then text or
    base64).
    """

    content_type: str
    argument: str | None = None
    fields: tuple[BodyField, ...] = ()


class AuthScheme(Struct, frozen=True):
    """A security scheme, by its name in the document.

    `kind`: a `header`, `query` parameter or `cookie` named `parameter`, or `basic` or `bearer` in `Authorization`.
    """

    name: str
    kind: Literal["header", "query", "cookie", "basic", "bearer"]
    parameter: str = ""


class RpcMethod(Struct, frozen=True):
    """A JSON-RPC method. Its params are sent by name, or by position in the order of `positions`, if there are any."""

    name: str
    positions: tuple[str, ...] = ()


class GraphqlOperation(Struct, frozen=True):
    """A GraphQL operation: its text and its name. The arguments of a call are its variables.

    `fields` names the argument with a caller's own selection of the type `type`, at most `deepest` levels deep. It
    replaces `selection`, with which the text ends. `items` is sent as `first` if a call has neither `first` nor `last`.
    """

    document: str
    name: str = ""
    type: str = ""
    selection: str = ""
    fields: str = ""
    deepest: int = 8
    items: int = 0


class McpTool(Struct, frozen=True):
    """A tool of an MCP server, by its name there. `definition` has what its definition says besides its arguments."""

    name: str
    definition: dict[str, Any] = {}


class McpServer(Struct, frozen=True):
    """How an MCP server is reached, and what it may do.

    `url` is its address. Without one, `command` starts it as a program, with the variables in `env`. `prefix` begins
    the names of its tools and prompts; None: the name of the source. `sampling`: it may ask the models of clients.
    `shared`: users share sessions with it; otherwise, a server that keeps sessions has one for each user.
    """

    url: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    prefix: str | None = None
    sampling: bool = False
    shared: bool = False


IdentityKind = Literal["signed", "client_credentials", "token_exchange", "pass_through", "user"]


class BackendIdentity(Struct, frozen=True):
    """What a back end learns about the caller of a tool.

    `signed`: headers with a short token that this engine signs. `client_credentials`: a token of this engine's own, by
    OAuth. `token_exchange`: a token for the back end in exchange for the caller's token (RFC 8693). `pass_through`: the
    caller's token as it is. `user`: a token that the user consented to (OAuth, authorization code with PKCE).

    `audience` and `resource` say for whom a token is. `issuer` is the authorization server, whose metadata name its
    endpoints, unless `token_url` and `authorize_url` do. `client_id` is this engine's, `client_secret` the name of a
    secret. `actor`: the exchanged token names this engine as the actor. `requested` is the type of token that is
    requested in exchange. `fallback`: what the back end gets if the caller has no token to exchange, as in an agent's
    turn; None: the call is refused.
    """

    kind: IdentityKind
    audience: str = ""
    resource: str = ""
    scopes: tuple[str, ...] = ()
    issuer: str = ""
    token_url: str = ""
    authorize_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    client_auth: Literal["basic", "post"] = "basic"
    actor: bool = False
    requested: Literal["access_token", "jwt"] = "access_token"
    fallback: Literal["signed", "client_credentials"] | None = None

    @property
    def sends_token(self) -> bool:
        """Whether requests have a token in `Authorization`."""
        return self.kind != "signed"


class RequestTemplate(Struct, frozen=True):
    """A call as an HTTP request. `url` is absolute or a path below the back end's base URL, with `{name}` parameters.

    `security` lists alternatives, of which one is sent completely; an empty one means that no credentials are needed.
    `headers` are sent unchanged, except for `{{secret:NAME}}` in them. `rpc` is the method that a JSON-RPC tool calls,
    `graphql` the operation of a GraphQL tool, `mcp` the tool of an MCP server.
    """

    method: str
    url: str
    parameters: tuple[RequestParameter, ...] = ()
    body: RequestBody | None = None
    security: tuple[tuple[AuthScheme, ...], ...] = ()
    headers: dict[str, str] = {}
    accept: str = "application/json, text/*;q=0.9, */*;q=0.5"
    rpc: RpcMethod | None = None
    graphql: GraphqlOperation | None = None
    mcp: McpTool | None = None


class Backend(Struct, frozen=True):
    """How the back end of a source is reached. `base_url` overrides the document's; `auth` maps schemes to secrets.

    `headers` are sent with each request and can contain `{{secret:NAME}}`. `timeout` is in seconds, for tools without
    their own. `mcp`: it is an MCP server. `identity`: what the back end learns about the caller; None: nothing.
    """

    source: str = ""
    base_url: str | None = None
    auth: dict[str, str] = {}
    headers: dict[str, str] = {}
    timeout: float | None = None
    mcp: McpServer | None = None
    identity: BackendIdentity | None = None

    def has_token_for(self, scheme: AuthScheme) -> bool:
        """Whether the token of the identity is what a security scheme asks for."""
        return scheme.kind == "bearer" and self.identity is not None and self.identity.sends_token

    def to_json(self) -> Any:
        """Return the stored form."""
        return msgspec.to_builtins(self)
