"""A real Keycloak for the tests: one for all processes of a test run, which ends when none of them needs it any more.

A test makes a realm of its own with `Keycloak.realm`. Without Java, or where Maven cannot fetch Keycloak, tests that
need it are skipped.
"""

import fcntl
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.oauth.java_servers import (
    LOG_TAIL,
    ask,
    cached,
    die_with_parent,
    fetch_with_maven,
    made_or_skip,
    missing_programs,
    run,
    skip_without,
)

POM = Path(__file__).parent / "pom.xml"
VERSION = ElementTree.parse(POM).findtext("{*}properties/{*}keycloak.version")
OPTIONS = ("--db=dev-mem", "--features=token-exchange-standard:v2", "--features-disabled=ciba,kerberos")
BUILD = 1  # of the cached copy; raised when the options change
READY_TIMEOUT = 180.0  # seconds, on a busy machine
LOG = "keycloak.log"
ADMIN = "admin"
PASSWORD = "open sesame"  # of all users of realms

# Java's optimizing compiler takes more CPU time than it saves a server that lives for minutes.
_JAVA = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms128m", "-Xmx384m", "-Djava.security.egd=file:/dev/urandom"]
_LISTENS = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")
_OPENED = ("java.util", "java.util.concurrent", "java.security")


@dataclass(frozen=True, slots=True)
class Realm:
    """An issuer of its own, with its clients and users."""

    keycloak: "Keycloak"
    name: str

    @property
    def issuer(self) -> str:
        """Its `iss`, below which its metadata are."""
        return f"{self.keycloak.url}/realms/{self.name}"

    @property
    def token_url(self) -> str:
        """Its token endpoint."""
        return f"{self.issuer}/protocol/openid-connect/token"

    @property
    def jwks_url(self) -> str:
        """Its public keys."""
        return f"{self.issuer}/protocol/openid-connect/certs"

    def user_token(self, user: str, client: str, secret: str | None = None, **more: str) -> str:
        """The access token of a user, who gives a client the password."""
        form = {"grant_type": "password", "username": user, "password": PASSWORD, "client_id": client, **more}
        return self.ask_for_token(**form, **({} if secret is None else {"client_secret": secret}))["access_token"]

    def ask_for_token(self, **form: str) -> dict[str, Any]:
        """What the token endpoint answers."""
        return ask("POST", self.token_url, form=form)

    def administer(self, method: str, path: str, body: object = None) -> Any:
        """Call the administration of this realm; the path begins with a slash, or is empty for the realm itself."""
        return self.keycloak.administer(method, f"/realms/{self.name}{path}", body)

    def end_sessions(self) -> None:
        """End what users have begun: their refresh tokens are then no longer valid."""
        self.administer("POST", "/logout-all")


@dataclass(frozen=True, slots=True)
class Keycloak:
    """A running Keycloak."""

    url: str

    @contextmanager
    def realm(
        self,
        *,
        clients: Sequence[Mapping[str, Any]] = (),
        users: Sequence[str] = (),
        scopes: Sequence[Mapping[str, Any]] = (),
        **settings: Any,
    ) -> Generator[Realm]:
        """A realm with clients, users and client scopes, and settings in Keycloak's own words, until the end."""
        realm = Realm(self, f"test-{secrets.token_hex(6)}")
        people = [
            {
                "username": user,
                "enabled": True,
                "email": f"{user}@example.com",
                "emailVerified": True,
                "firstName": user.title(),
                "lastName": "Tester",
                "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
            }
            for user in users
        ]
        # Few rounds: the passwords of tests need not withstand anybody, and hashing them takes most of the time.
        wanted = {"realm": realm.name, "enabled": True, "passwordPolicy": "hashIterations(1)", **settings}
        self.administer("POST", "/realms", {**wanted, "users": people})
        try:
            for scope in scopes:
                realm.administer("POST", "/client-scopes", {"protocol": "openid-connect", **scope})
            for client in clients:
                realm.administer("POST", "/clients", dict(client))
            yield realm
        finally:
            realm.administer("DELETE", "")

    def administer(self, method: str, path: str, body: object = None) -> Any:
        """Call the administration, as the administrator."""
        form = {"grant_type": "password", "client_id": "admin-cli", "username": ADMIN, "password": ADMIN}
        token = ask("POST", f"{self.url}/realms/master/protocol/openid-connect/token", form=form)["access_token"]
        return ask(method, f"{self.url}/admin{path}", body=body, token=token)


def confidential_client(id: str, secret: str, **more: Any) -> dict[str, Any]:
    """A client with a secret, a service account and password grants; `more` in Keycloak's own words."""
    return {
        "clientId": id,
        "secret": secret,
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "directAccessGrantsEnabled": True,
        **more,
    }


def public_client(id: str, *redirects: str, **more: Any) -> dict[str, Any]:
    """A client without a secret, for authorization codes with PKCE and for passwords."""
    return {
        "clientId": id,
        "publicClient": True,
        "directAccessGrantsEnabled": True,
        "redirectUris": list(redirects),
        "attributes": {"pkce.code.challenge.method": "S256"} if redirects else {},
        **more,
    }


def audience_mapper(audience: str) -> dict[str, Any]:
    """A protocol mapper that adds an audience to access tokens."""
    config = {"included.custom.audience": audience, "access.token.claim": "true"}
    kind = {"protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper"}
    return {"name": f"audience {audience}", **kind, "config": config}


def keycloak_or_skip(shared: Path) -> Iterator[Keycloak]:
    """The Keycloak of a test run, whose processes share a folder; without one, tests are skipped, but fail in CI."""
    skip_without("KEYCLOAK", missing())
    with _shared(shared / "keycloak") as keycloak:
        yield keycloak


def missing() -> str:
    """What Keycloak needs and this machine does not have, or nothing."""
    return missing_programs(*([] if _cache().exists() else ["mvn"]))


@contextmanager
def _shared(folder: Path) -> Generator[Keycloak]:
    """The Keycloak in a folder, started by whoever needs it first.

    Everyone who uses it holds a shared lock. Its keeper waits for an exclusive one, and then ends it: so it ends after
    its last user, whichever way that one ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users").open("a") as users, (folder / "start").open("a") as start:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(start, fcntl.LOCK_EX)
        if not (folder / "url").exists():
            _start(folder)
        fcntl.flock(start, fcntl.LOCK_UN)
        yield Keycloak((folder / "url").read_text("utf-8"))


def _start(folder: Path) -> None:
    home, log = made_or_skip("KEYCLOAK", _cache(), _make), folder / LOG
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.oauth.keycloak", str(folder), str(home)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a Ctrl-C is for the tests
        )
    deadline = time.monotonic() + READY_TIMEOUT
    while not (folder / "url").exists():
        if keeper.poll() is not None or time.monotonic() > deadline:
            keeper.terminate()
            raise RuntimeError(f"Keycloak did not start; its log ends with:\n{log.read_text('utf-8')[-LOG_TAIL:]}")
        time.sleep(0.05)
    keeper.returncode = 0  # it outlives this process, which does not wait for it


def _keep(folder: Path, home: Path) -> None:
    """Run Keycloak until nobody uses it. This is the program of a process of its own."""
    place = folder / f"run-{os.getpid()}"
    (place / "data").mkdir(parents=True)
    for each in home.iterdir():
        (place / each.name).symlink_to(each)
    settings = ["--http-enabled=true", "--http-host=127.0.0.1", "--http-port=0", "--hostname-strict=false"]
    java = subprocess.Popen(
        [*_java(place), "start", "--optimized", "--cache=local", *settings],
        cwd=place,
        env={**os.environ, "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN, "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN},
        preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
    )
    signal.signal(signal.SIGTERM, _leave)
    try:
        while (listens := _LISTENS.search((folder / LOG).read_text("utf-8"))) is None and java.poll() is None:
            time.sleep(0.1)
        if listens is not None:
            draft = folder / "url.draft"
            draft.write_text(listens[1], "utf-8")
            draft.rename(folder / "url")
            with (folder / "users").open("a") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
                (folder / "url").unlink()
    finally:
        java.kill()
        java.wait()
        shutil.rmtree(place, ignore_errors=True)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


def _java(home: Path) -> list[str]:
    pool = "io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory"
    properties = {
        "java.util.concurrent.ForkJoinPool.common.threadFactory": pool,
        "java.util.logging.manager": "org.jboss.logmanager.LogManager",
        "jboss.server.config.dir": str(home / "conf"),
        "kc.home.dir": str(home),
        "picocli.disable.closures": "true",
    }
    return [
        *("java", *_JAVA),
        *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", str((home / "lib").resolve() / "quarkus-run.jar"), "io.quarkus.bootstrap.runner.QuarkusEntryPoint"),
    ]


def _cache() -> Path:
    return cached(f"keycloak-{VERSION}-{BUILD}")


def _make(draft: Path) -> Path:
    fetch_with_maven(POM, draft)
    with zipfile.ZipFile(next(draft.glob("*.zip"))) as archive:
        archive.extractall(draft)
    home = draft / f"keycloak-{VERSION}"
    run(["sh", str(home / "bin" / "kc.sh"), "build", *OPTIONS], JAVA_OPTS=" ".join(_JAVA))
    shutil.rmtree(home / "data", ignore_errors=True)
    return home


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), Path(sys.argv[2]))
