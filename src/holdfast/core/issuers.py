"""Issuers of tokens (JWT): whose tokens are taken, what is checked of them, and what they may do."""

import json
from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from holdfast.core.settings import Name, Names, Number, Section, StrongSecret

SHARED = "HS256"  # signed with a secret that both sides know
USUAL = ("RS256", "ES256", "EdDSA", "PS256")
PUBLIC = frozenset({*USUAL, "RS384", "RS512", "PS384", "PS512", "ES384", "ES512", "Ed25519"})


def is_address(text: str) -> bool:
    """Whether it is an address on the web, without a query, and without anybody's name or password in it."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
    return usable and not (parts.username or parts.password or parts.query or parts.fragment)


def _keys_address(address: str | None) -> str | None:
    if address is not None and not is_address(address.partition("?")[0]):
        raise ValueError("it should be like https://login.example.com/.well-known/jwks.json")
    return address


def _objects(value: object) -> object:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it should be a list of objects in JSON: {error}") from None
    return [cast(object, value)] if isinstance(value, dict) else value


def _distinct(issuers: "tuple[Issuer, ...]") -> "tuple[Issuer, ...]":
    names = [issuer.issuer for issuer in issuers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{twice[0]} is in it twice")
    return issuers


class Issuer(Section):
    """Somebody whose tokens are taken."""

    issuer: Name = Field(description="who issues them: `iss` of a token, to the letter")
    audience: Names = Field(
        default=(), description="whom they are for: `aud` has one of these; unset: the address of the gateway"
    )
    jwks_url: Annotated[Name | None, AfterValidator(_keys_address)] = Field(
        default=None, description="where its public keys are; unset: where its metadata says"
    )
    secret: StrongSecret = Field(default=None, description="what it signs with, where that is no key pair")
    algorithms: Names = Field(
        default=(), description=f"how they are signed; unset: {', '.join(USUAL)}; with `secret`: {SHARED}"
    )
    tenant: Name = Field(default="default", description="tenant of the users")
    tenant_claim: Name | None = Field(default=None, description="claim that names the tenant, in place of `tenant`")
    tenants: Names = Field(default=(), description="tenants that it may name; unset: all that exist")
    user_claim: Name = Field(default="sub", description="claim that names the user")
    agent_claim: Name | None = Field(default=None, description="claim that names the agent that a token speaks for")
    scopes: Annotated[
        tuple[Literal["read", "write", "admin", "act-as"], ...],
        BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value),
        Field(min_length=1),
    ] = Field(default=("read", "write"), description="what they may do at most; beyond these two, where they say so")
    scope_claim: Name = Field(default="scope", description="claim whose entries such as `holdfast:read` narrow that")
    leeway: Number = Field(default=60, ge=0, le=600, description="seconds that its clock may differ from ours")

    @model_validator(mode="before")
    @classmethod
    def _with_underscores(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        named = {str(name).replace("-", "_"): value for name, value in cast(dict[object, object], given).items()}
        if len(named) < len(cast(dict[object, object], given)):
            raise ValueError("a name in it is given twice")
        return named

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        possible = PUBLIC if self.secret is None else {SHARED}
        unfit = [name for name in self.algorithms if name not in possible]
        if unfit:
            raise ValueError(f"algorithms should be of {', '.join(sorted(possible))}, not {unfit[0]!a}")
        if self.secret is not None and self.jwks_url is not None:
            raise ValueError("it has both secret and jwks_url: whoever knows the public keys could sign with them")
        if self.secret is None and self.jwks_url is None and not is_address(self.issuer):
            raise ValueError("issuer should be an address, for its keys to be found; or give jwks_url")
        if self.tenant_claim is not None and "tenant" in self.model_fields_set:
            raise ValueError("it has both tenant and tenant_claim")
        if self.tenants and self.tenant_claim is None:
            raise ValueError("tenants is for issuers with a tenant_claim")
        return self

    @property
    def signed_by(self) -> tuple[str, ...]:
        """The algorithms that are taken."""
        return self.algorithms or (USUAL if self.secret is None else (SHARED,))


class AccessSettings(Section):
    """Who is let in beside the holders of keys."""

    issuers: Annotated[tuple[Issuer, ...], BeforeValidator(_objects), AfterValidator(_distinct)] = Field(
        default=(), description="issuers whose tokens (JWT) are taken: tables in the file, JSON in the environment"
    )
    scopes_supported: Names = Field(
        default=("holdfast:read", "holdfast:write"),
        description="scopes that MCP clients are told to ask an issuer for; none where it does not know them",
    )
