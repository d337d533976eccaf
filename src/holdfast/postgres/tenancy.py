"""The PostgreSQL roles that isolate tenants.

    holdfast_owner    sees every row: migrations, index builds, backups; owns the functions that run as their owner
    holdfast_app      runs every statement of a tenant; owns nothing, cannot bypass row-level security
    holdfast_system   runs the few statements across tenants, on listed tables (relays, sweeps, claims, key look-ups)
    holdfast_tenant   the group of tenants' logins, held to their tenants by a table that they cannot read: logins.py

No login uses these four roles directly. The engine has its own login, which can only switch to `holdfast_app` or
`holdfast_system`. If the owner cannot create this login, the engine logs in as the owner and switches to one of the two
when it connects.
"""

import hashlib
import hmac
from importlib.resources import files

from holdfast.core.errors import Forbidden
from holdfast.postgres.address import login_of, with_login
from holdfast.postgres.database import OwnerConnection, Statements
from holdfast.postgres.sql import statements

sql = statements(__name__)


async def ensure_roles(owner: OwnerConnection) -> None:
    """Create the four roles if they are missing, and let the owner switch to those that run statements."""
    script = (files("holdfast.postgres") / "roles.sql").read_text()
    try:
        await owner.script(script)
    except Forbidden as error:
        raise Forbidden(
            "the owner of the database may not create the roles that isolate tenants",
            why=error.why,
            next="As an administrator of the server, run `alter role <owner> createrole`, or create the roles "
            "holdfast_owner, holdfast_app, holdfast_system and holdfast_tenant and grant the first three to the owner.",
        ) from error


async def set_definer_owner(owner: OwnerConnection) -> None:
    """Make a role without superuser rights the owner of all functions that run with their owner's rights."""
    await owner.script((files("holdfast.postgres") / "definers.sql").read_text())


async def ensure_login(owner: OwnerConnection, url: str, *, by_account: bool, renew: bool = False) -> str:
    """Return the URL that the engine connects with: its own login if the owner can create one, otherwise the owner's.

    `by_account`: the server authenticates callers by their account, so the login needs no password.
    """
    _, password = login_of(url)
    abilities = await owner.one(sql("owner_abilities"))
    if abilities is None or not abilities["may_create_roles"] or (password is None and not by_account):
        return url
    login = f"holdfast_engine_{abilities['database']}"
    derived = None if password is None else derive_password(password.encode(), login)
    if renew or not abilities["has_login"]:
        await owner.run(sql("ensure_login"), login, derived, ["holdfast_app", "holdfast_system"])
    return with_login(url, login, derived)


async def check_row_security(database: Statements) -> None:
    """Raise Forbidden if row-level security does not restrict the role that runs statements."""
    role = await database.value(sql("role_not_held"))
    if role is not None:
        raise Forbidden(
            f"the role {role} bypasses row-level security",
            why="it is a superuser, has BYPASSRLS or is in holdfast_owner, so tenants could see each other's rows",
            next="Set database.url to a login without these attributes, and database.owner_url to the owner's login.",
        )


def derive_password(key: bytes, purpose: str) -> str:
    """Derive a password. Every node derives the same one, so it need not be stored."""
    return hmac.new(key, purpose.encode(), hashlib.sha256).hexdigest()
