"""A provider's HTTP endpoint, which answers with a stream of events. Every failure is a `ModelFailed`."""

import json
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec
from pydantic import SecretStr

from holdfast.core.errors import HoldfastError, ModelFailed
from holdfast.core.pace import Pace
from holdfast.core.text import parse, parse_large
from holdfast.llm.sse import EventParser, ServerSentEvent

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

PIECE = 16 * 1024  # bytes of an answer that are parsed at a time
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_REFUSAL_BYTES = 64 * 1024
MAX_ERROR_CHARACTERS = 300  # characters of the server's error message

RETRYABLE = frozenset({408, 409, 425, 429})
# Errors that a retry does not fix, even if the status suggests one.
PERMANENT = re.compile(
    "insufficient_quota|invalid_api_key|invalid_request|authentication|permission|not_found|too_large|billing"
)
CONTEXT = re.compile("context_length|context length|context window|prompt is too long|too many tokens", re.IGNORECASE)

_KEY = re.compile(r"[!-~]+")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_NO_STREAM = ("application/json", "text/html")


class Connections:
    """The connections of all endpoints. They open on first use."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

    def session(self) -> "ClientSession":
        """Return the session that all requests share."""
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # the caller limits them
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class ModelEndpoint:
    """Posts requests to a model, and yields the events of the answers.

    `key_settings` names the settings for a key that is missing or rejected. If it is empty, no key is needed.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        connections: Connections,
        key: SecretStr | None = None,
        key_header: str = "Authorization",
        key_settings: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._model = model
        self._connections = connections
        self._key = key.get_secret_value().strip() if key else ""
        self._key_header = key_header
        self._key_settings = key_settings
        self._headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **(headers or {})}

    async def events(self, body: Mapping[str, object]) -> AsyncGenerator[ServerSentEvent]:
        """Yield the events of the answer to `body`, to the end of the stream."""
        import aiohttp

        headers = self._headers | self._authorization()
        parser = EventParser()
        pace = Pace()
        size = 0
        try:
            async with self._connections.session().post(
                self._url, data=_encode(body), headers=headers, allow_redirects=False
            ) as answer:
                await self._check(answer)
                async for data in answer.content.iter_any():
                    size += len(data)
                    if size > MAX_ANSWER_BYTES:
                        raise self._failure(
                            "sent an answer that is too large", f"it has more than {MAX_ANSWER_BYTES} bytes"
                        )
                    for start in range(0, len(data), PIECE):
                        for event in parser.feed(data[start : start + PIECE]):
                            yield event
                            await pace.rest()
                        await pace.rest()
        except (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError) as error:
            raise self._failure("cannot be reached securely", self._without_key(str(error))) from None
        except (aiohttp.ClientError, OSError) as error:
            why = self._without_key(" ".join(str(error).split()) or type(error).__name__)
            what = "broke off its answer" if size else "cannot be reached"
            raise self._failure(what, why, retryable=True, next="Check llm.base_url, and try again.") from None
        except HoldfastError as error:
            if isinstance(error, ModelFailed):
                raise
            raise self._failure("sent an invalid answer", error.why) from None

    async def objects(self, body: Mapping[str, object]) -> AsyncGenerator[tuple[str, dict[str, Any] | None]]:
        """Yield the kind and the JSON object of each event; None for `[DONE]`. Skip events that are not objects."""
        async with aclosing(self.events(body)) as events:
            async for event in events:
                if event.data.strip() == b"[DONE]":
                    yield event.kind, None
                    continue
                try:
                    value = await parse_large(event.data)
                except HoldfastError as error:
                    raise self._failure("sent an event that is not JSON", error.why, retryable=True) from None
                if isinstance(value, dict):
                    yield event.kind, cast(dict[str, Any], value)

    def refusal(self, body: object, *, status: int | None = None, retry_after: float = 0.0) -> ModelFailed:
        """Return the failure that an error object describes, in any provider's format."""
        error = cast(dict[str, Any], body).get("error", body) if isinstance(body, dict) else body
        fields = cast(dict[str, Any], error) if isinstance(error, dict) else {"message": error}
        kinds = " ".join(str(fields.get(name) or "") for name in ("type", "code", "status"))
        if status is None:
            code = fields.get("code", fields.get("status"))
            status = code if type(code) is int and 400 <= code <= 599 else None
        message = " ".join(str(fields.get("message") or kinds.strip() or "it returned no message").split())
        message = self._without_key(message)[:MAX_ERROR_CHARACTERS]
        retryable = (status is None or status in RETRYABLE or status >= 500) and not PERMANENT.search(kinds)
        what = "returned an error" if status is None else f"returned {status}"
        return self._failure(
            what,
            message,
            retryable=retryable,
            status=status,
            retry_after=retry_after,
            next=self._advice(status, f"{kinds} {message}"),
        )

    def broken_stream(self, why: str) -> ModelFailed:
        """Return the failure of a stream that ended before the answer did."""
        return self._failure("broke off its answer", why, retryable=True, next="Try again.")

    async def _check(self, answer: "ClientResponse") -> None:
        if answer.status == 200 and answer.content_type not in _NO_STREAM:
            return
        body = await answer.content.read(MAX_REFUSAL_BYTES)
        while len(body) < MAX_REFUSAL_BYTES and not answer.content.at_eof():
            body += await answer.content.read(MAX_REFUSAL_BYTES)
        error = _parse_error(answer.content_type, body)
        if answer.status != 200:
            raise self.refusal(error, status=answer.status, retry_after=_seconds(answer.headers))
        if isinstance(error, dict) and "error" in error:
            raise self.refusal(cast(object, error))
        next = "Check llm.base_url: it ends before /chat/completions or /messages."
        raise self._failure(f"returned {answer.content_type}, not an event stream", next=next)

    def _authorization(self) -> dict[str, str]:
        if not self._key and self._key_settings:
            raise self._failure("was not called", "it has no API key", next=f"Set {self._key_settings}.")
        if self._key and not _KEY.fullmatch(self._key):
            why = "its API key contains invalid characters"
            raise self._failure("was not called", why, next=f"Check {self._key_settings or 'llm.api_key'}.")
        value = f"Bearer {self._key}" if self._key_header == "Authorization" else self._key
        return {self._key_header: value} if self._key else {}

    def _advice(self, status: int | None, message: str) -> str:
        if status in (401, 403):
            return f"Check {self._key_settings or 'llm.api_key'}."
        if status == 404:
            return "Check llm.model and llm.base_url."
        if status in (400, 413, 422) and CONTEXT.search(message):
            return "Lower llm.context_tokens or llm.max_output_tokens."
        return "Try again later." if status == 429 else ""

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "********") if self._key else text

    def _failure(
        self,
        what: str,
        why: str = "",
        *,
        retryable: bool = False,
        status: int | None = None,
        retry_after: float = 0.0,
        next: str = "",
    ) -> ModelFailed:
        return ModelFailed(
            f"the model {self._model} {what}",
            model=self._model,
            retryable=retryable,
            status=status,
            retry_after=retry_after,
            why=why,
            next=next or "Check llm.model and llm.base_url.",
        )


def _encode(body: Mapping[str, object]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # a lone surrogate, which no provider accepts
        return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def _parse_error(kind: str, body: bytes) -> object:
    try:
        return parse(body)
    except HoldfastError:
        if kind == "text/html":
            return "an HTML page, which proxies and wrong URLs return"
        return body[: 4 * MAX_ERROR_CHARACTERS].decode(errors="replace")


def _seconds(headers: Mapping[str, str]) -> float:
    """Return how long to wait, from any of the headers and formats that servers use."""
    exact, value = headers.get("retry-after-ms", ""), headers.get("Retry-After", "")
    if _NUMBER.fullmatch(exact):
        return float(exact) / 1000
    if _NUMBER.fullmatch(value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
