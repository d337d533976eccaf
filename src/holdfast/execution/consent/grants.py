"""Grants: what is stored, encrypted, of a connection that was begun or completed."""

from typing import Literal, TypeVar

import msgspec

from holdfast.core.errors import Broken
from holdfast.core.ids import TenantId
from holdfast.core.text import render
from holdfast.execution.encryption import EncryptionKey
from holdfast.postgres.database import Row

PURPOSE = b"holdfast connections 1"


class StoredClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """The client that this installation is for an authorization server. `secret_name` names a secret of the tenant.

    `registered`: it was registered by itself (RFC 7591). Its `secret` is then stored here.
    """

    id: str
    auth: Literal["basic", "post", "none"] = "none"
    secret_name: str = ""
    secret: str = ""
    registered: bool = False

    def __repr__(self) -> str:
        return f"StoredClient({self.id})"


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """For what and where tokens are requested. `origin` is that of the back end, which alone gets them.

    `issuer` is empty if the source names the endpoints itself. `names_issuer`: the server promises to name itself in
    its answer (RFC 9207). `resource` says for whom a token is (RFC 8707).
    """

    source: str
    origin: str
    token_url: str
    client: StoredClient
    issuer: str = ""
    names_issuer: bool = False
    revocation_url: str = ""
    resource: str = ""
    scopes: tuple[str, ...] = ()


class PendingConsent(msgspec.Struct, frozen=True):
    """A connection that was begun: its grant, the code verifier (RFC 7636), and where the browser comes back to."""

    grant: Grant
    verifier: str
    redirect_uri: str

    def __repr__(self) -> str:
        return f"PendingConsent({self.grant.source})"


class GrantedTokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of a connection, and how they are refreshed."""

    grant: Grant
    access_token: str
    refresh_token: str = ""

    def __repr__(self) -> str:
        return f"GrantedTokens({self.grant.source})"


Sealed = TypeVar("Sealed", PendingConsent, GrantedTokens, StoredClient)


class GrantSeal:
    """Encrypts what is stored of connections. A row that is copied to another place cannot be decrypted there."""

    def __init__(self, secret: bytes) -> None:
        self.key = EncryptionKey(secret, purpose=PURPOSE)

    def seal(self, value: msgspec.Struct, tenant: TenantId, *place: object) -> bytes:
        """Encrypt a value for one place: the kind of row and its key."""
        return self.key.seal(render(value).decode(), about=_about(tenant, place))

    def open(self, kind: type[Sealed], row: Row, tenant: TenantId, *place: object) -> Sealed:
        """Decrypt the value of a row. Raise Broken if it was encrypted with another key, or for another place."""
        if row["key_id"] != self.key.id:
            raise Broken(
                "a connection cannot be decrypted",
                why="it was encrypted with another key",
                next="Restore the earlier value of execution.secret_key, or connect again.",
            )
        return msgspec.json.decode(self.key.open(row["sealed"], about=_about(tenant, place)), type=kind)


def _about(tenant: TenantId, place: tuple[object, ...]) -> str:
    return render([str(tenant), *map(str, place)]).decode()
