"""Issuers of tokens (JWT): which tokens the server accepts, how it verifies them, and their scopes."""

import json
import re
from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from holdfast.core.settings import Name, Names, Number, SettingsSection, StrongSecret

SHARED = "HS256"  # signed with a shared secret
DEFAULT_ALGORITHMS = ("RS256", "ES256", "EdDSA", "PS256")
PUBLIC = frozenset({*DEFAULT_ALGORITHMS, "RS384", "RS512", "PS384", "PS512", "ES384", "ES512", "Ed25519"})
OFFLINE = "offline_access"  # asks an issuer for a refresh token

_SCOPE = re.compile(r"[!#-\[\]-~]+")  # RFC 6749


def is_url(text: str) -> bool:
    """Whether `text` is an HTTP or HTTPS URL without credentials, query or fragment."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
    return usable and not (parts.username or parts.password or parts.query or parts.fragment)


def _check_jwks_url(address: str | None) -> str | None:
    if address is not None and not is_url(address.partition("?")[0]):
        raise ValueError("it should be like https://login.example.com/.well-known/jwks.json")
    return address


def _parse_objects(value: object) -> object:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it should be a list of objects in JSON: {error}") from None
    return [cast(object, value)] if isinstance(value, dict) else value


def _check_supported(scopes: tuple[str, ...]) -> tuple[str, ...]:
    wrong = next((scope for scope in scopes if not _SCOPE.fullmatch(scope)), None)
    if wrong is not None:
        raise ValueError(f"{wrong!a} is not a scope: it has a space, a quote or another character that scopes cannot")
    if OFFLINE in scopes:
        raise ValueError(f"{OFFLINE} is not a scope of this server; clients ask their issuer for it by themselves")
    return scopes


def _check_distinct(issuers: "tuple[Issuer, ...]") -> "tuple[Issuer, ...]":
    names = [issuer.issuer for issuer in issuers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"it contains {twice[0]} twice")
    return issuers


class Issuer(SettingsSection):
    """An issuer whose tokens the server accepts."""

    issuer: Name = Field(description="issuer of the tokens: `iss` of a token has to be equal to it")
    audience: Names = Field(
        default=(),
        description="accepted audiences: `aud` of a token has to contain one of them; if unset, the public URL of "
        "the server, with or without `/mcp` or `/rpc`",
    )
    jwks_url: Annotated[Name | None, AfterValidator(_check_jwks_url)] = Field(
        default=None, description="URL of the issuer's public keys (JWKS); if unset, the URL in the issuer's metadata"
    )
    secret: StrongSecret = Field(
        default=None, description="shared secret that signs the tokens, in place of a key pair"
    )
    algorithms: Names = Field(
        default=(),
        description=f"accepted signature algorithms; if unset: {', '.join(DEFAULT_ALGORITHMS)}; with `secret`: "
        f"{SHARED}",
    )
    tenant: Name = Field(default="default", description="tenant of the users")
    tenant_claim: Name | None = Field(default=None, description="claim that names the tenant, in place of `tenant`")
    tenants: Names = Field(default=(), description="tenants that `tenant_claim` may name; if unset, all tenants")
    user_claim: Name = Field(default="sub", description="claim that names the user")
    agent_claim: Name | None = Field(default=None, description="claim that names the agent for which a token acts")
    scopes: Annotated[
        tuple[Literal["read", "write", "admin", "act-as"], ...],
        BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value),
        Field(min_length=1),
    ] = Field(
        default=("read", "write"),
        description="maximum scopes of a token; a token gets `admin` and `act-as` only if it names them",
    )
    scope_claim: Name | None = Field(
        default=None,
        description="claim with the scopes of a token, such as `holdfast:read`; a token that names scopes gets "
        "only these; if unset, `scope` and `scp`",
    )
    leeway: Number = Field(
        default=60,
        ge=0,
        le=600,
        description="maximum difference between the clocks of the issuer and the server, in seconds",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_underscores(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        fields = {str(name).replace("-", "_"): value for name, value in cast(dict[object, object], given).items()}
        if len(fields) < len(cast(dict[object, object], given)):
            raise ValueError("it contains a name twice")
        return fields

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        possible = PUBLIC if self.secret is None else {SHARED}
        unsupported = [name for name in self.algorithms if name not in possible]
        if unsupported:
            raise ValueError(f"{unsupported[0]!a} is not a supported algorithm; use {', '.join(sorted(possible))}")
        if self.secret is not None and self.jwks_url is not None:
            raise ValueError(
                "it has both secret and jwks_url, but an issuer signs with a shared secret or with a key pair"
            )
        if self.secret is None and self.jwks_url is None and not is_url(self.issuer):
            raise ValueError("issuer should be a URL, so that its keys can be found; otherwise set jwks_url")
        if self.tenant_claim is not None and "tenant" in self.model_fields_set:
            raise ValueError("it has both tenant and tenant_claim")
        if self.tenants and self.tenant_claim is None:
            raise ValueError("tenants requires a tenant_claim")
        return self

    @property
    def accepted_algorithms(self) -> tuple[str, ...]:
        """The accepted signature algorithms."""
        return self.algorithms or (DEFAULT_ALGORITHMS if self.secret is None else (SHARED,))


class AccessSettings(SettingsSection):
    """Authentication by tokens of an issuer."""

    issuers: Annotated[tuple[Issuer, ...], BeforeValidator(_parse_objects), AfterValidator(_check_distinct)] = Field(
        default=(),
        description="issuers whose tokens (JWT) the server accepts; tables in the file, JSON in the environment",
    )
    scopes_supported: Annotated[Names, AfterValidator(_check_supported)] = Field(
        default=("holdfast:read", "holdfast:write"),
        description="scopes that MCP clients should request from an issuer; empty if the issuer does not know them",
    )
