"""What a request to a back end says of its caller: headers, whose tokens are redacted from the answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.requests import WireRequest

AUTHORIZATION = "Authorization"
REQUEST_ID = "X-Request-Id"


@dataclass(frozen=True, slots=True)
class SentIdentity:
    """The headers of a request. `renew` returns those with a new token, if the back end refused the one that was kept.

    None: the token is new, or is not one that can be renewed.
    """

    headers: Mapping[str, str] = field(repr=False)
    redaction: Redaction = field(repr=False)
    renew: "Renew | None" = field(default=None, repr=False)

    def is_in(self, request: WireRequest) -> bool:
        """Whether a request has these headers: one that was redirected to another origin has not."""
        return self.headers.items() <= request.headers.items()

    def add_to(self, request: WireRequest) -> WireRequest:
        """Return a request with these headers. They replace those of a tool or a model."""
        ours = {name.lower() for name in self.headers}
        others = {name: value for name, value in request.headers.items() if name.lower() not in ours}
        return WireRequest(request.method, request.url, {**others, **self.headers}, request.body)


Renew = Callable[[], Awaitable[SentIdentity | None]]
