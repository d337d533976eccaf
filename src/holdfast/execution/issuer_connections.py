"""Connections to token issuers. Their addresses may be private, because the operator sets them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from yarl import URL

from holdfast.access.jwks import Fetch
from holdfast.core.config import Config
from holdfast.core.issuers import is_url
from holdfast.execution.documents import Documents
from holdfast.execution.egress import AllowedHosts, Egress

TIMEOUT = 5.0  # seconds for an issuer's document: callers wait for it


@asynccontextmanager
async def open_fetch(config: Config) -> AsyncGenerator[Fetch]:
    """Open a function that fetches documents from the issuers in the settings.

    It has its own connections, so that tools cannot reach an issuer's private address.
    """
    urls = [
        url
        for each in config.access.issuers
        for url in (each.issuer, each.jwks_url)
        if url and is_url(url.partition("?")[0])
    ]
    hosts = [f"{url.host_subcomponent}:{url.port}" for url in map(URL, urls)]
    async with Egress(AllowedHosts.parse([*config.execution.allow_private, *hosts])) as egress:
        yield Documents(egress, timeout=TIMEOUT).fetch
