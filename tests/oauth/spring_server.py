"""A real Spring Authorization Server for the tests. Its exchanged tokens name the actor, which Keycloak's do not."""

import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlencode

from holdfast.execution.consent.connections import challenge_of
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
from tests.oauth.sign_in import parameters_of, sign_in

SOURCE = Path(__file__).parent / "spring"
BACK = "http://app.example/back"
READY_TIMEOUT = 120.0  # seconds, on a busy machine
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx192m", "-Djava.security.egd=file:/dev/urandom")
VERIFIER = "a-code-verifier-of-the-app-with-43-characters"


@dataclass(frozen=True, slots=True)
class SpringServer:
    """A running server, with the clients `app` and `holdfast`, and the user ann."""

    issuer: str

    async def user_token(self, user: str) -> str:
        """The access token of a user who signs in at the app."""
        asked = {
            "response_type": "code",
            "client_id": "app",
            "redirect_uri": BACK,
            "scope": "orders",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        back = await sign_in(f"{self.issuer}/oauth2/authorize?{urlencode(asked)}", user)
        form = {
            "grant_type": "authorization_code",
            "code": parameters_of(back)["code"],
            "redirect_uri": BACK,
            "client_id": "app",
            "code_verifier": VERIFIER,
        }
        return ask("POST", f"{self.issuer}/oauth2/token", form=form)["access_token"]


@contextmanager
def spring_server() -> Generator[SpringServer]:
    """A server as long as it lasts. Without Java's compiler or Maven, the test is skipped."""
    cache = cached(f"spring-{_version()}")
    skip_without("SPRING", missing_programs(*([] if cache.exists() else ["javac", "mvn"])))
    home = made_or_skip("SPRING", cache, _make)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryFile() as log:
        java = subprocess.Popen(
            [*JAVA, "-cp", f"{home}/classes:{home}/*", "DelegatingServer", f"--server.port={port}",
             "--server.address=127.0.0.1"],
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - nothing else is forked meanwhile
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = monotonic() + READY_TIMEOUT
            while not _answers(url):
                if java.poll() is not None or monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"Spring did not start:\n{log.read().decode()[-LOG_TAIL:]}")
                sleep(0.1)
            yield SpringServer(url)
        finally:
            java.kill()
            java.wait()


def _make(draft: Path) -> Path:
    home = draft / "home"
    fetch_with_maven(SOURCE / "pom.xml", home)
    run(["javac", "-cp", f"{home}/*", "-d", str(home / "classes"), str(SOURCE / "DelegatingServer.java")])
    return home


def _version() -> str:
    """Names what the copy in the cache is made of."""
    return sha256(b"".join(each.read_bytes() for each in sorted(SOURCE.iterdir()))).hexdigest()[:12]


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{url}/.well-known/oauth-authorization-server", timeout=5) as found:
        return found.status == 200
    return False
