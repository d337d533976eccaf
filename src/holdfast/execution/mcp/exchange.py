"""Exchanges: a request to a server in progress, in which the server can ask the client that made it.

An exchange runs in a task of its own, because it can last longer than the call that began it: if a person has to
answer, the call ends with the question, and another call brings the answer. The server waits meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, cast

from holdfast.core.errors import HoldfastError, LimitReached
from holdfast.execution.egress import leave_connection
from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.runner import redact_error
from holdfast.mcp.inputs import Forwarded, MissingCapability
from holdfast.mcp.protocol import LOG_LEVELS, McpError
from holdfast.skills.client import Client

Replies = Mapping[str, Mapping[str, Any]]  # by the names of the questions
MAX_MESSAGES = 10_000  # of a server in one exchange
MAX_OPEN = 10  # questions of a server that wait for answers, in one exchange
SAMPLING = "sampling"  # the capability of a client whose model can be asked
OPTIONS: Mapping[str, Sequence[str]] = {"elicitation": ("form", "url"), SAMPLING: ("context", "tools"), "roots": ()}
NO_SECRETS = Redaction(())
NO_HEADERS: Mapping[str, str] = {}

Work = Callable[["Exchange"], Coroutine[Any, Any, Mapping[str, Any]]]


class ServerQuestions:
    """Questions of a server, which it asks at once. `replies` has the answers, or the error why there are none."""

    def __init__(self, requests: Mapping[str, Forwarded]) -> None:
        self.requests = requests
        self.replies: asyncio.Future[Replies] = asyncio.get_running_loop().create_future()

    def answer(self, replies: Replies) -> None:
        """Give the answers to the server, if it still waits for them."""
        if not self.replies.done():
            self.replies.set_result(replies)

    def fail(self, error: HoldfastError) -> None:
        """Tell the server why there are no answers, if it still waits for them."""
        if not self.replies.done():
            self.replies.set_exception(error)


class Exchange:
    """A request in progress. `client` is the one that waits for it now.

    `work` gets the exchange and returns the result. Without `work`, it is for requests in which nobody is asked.
    `redaction` removes the secrets of the source from all that the client gets: the server knows them. `sampling`: the
    server may ask the model of the client. `headers` say who calls, in the requests of this exchange.
    """

    def __init__(
        self,
        client: Client,
        work: Work | None = None,
        *,
        redaction: Redaction = NO_SECRETS,
        sampling: bool = False,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        self.client = client
        self.sampling = sampling
        self.headers = headers
        self._redaction = redaction
        self._questions: deque[ServerQuestions] = deque()
        self._news = asyncio.Event()
        self._messages = 0
        self._names: dict[str, int] = {}  # of questions, and how many began with them
        self._task = asyncio.create_task((work or _nothing)(self), name="MCP exchange")
        self._task.add_done_callback(lambda _: self._news.set())

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the server may ask for."""
        return capabilities_for(self.client, sampling=self.sampling)

    @property
    def has_asked(self) -> bool:
        """Whether the server has asked the client something."""
        return bool(self._names)

    @property
    def ended(self) -> bool:
        """Whether it has a result, or has failed."""
        return self._task.done()

    async def result(self, client: Client) -> Mapping[str, Any]:
        """Return the result of the request. Pass questions of the server on to `client`.

        Raises InputRequired if the answers take longer. The exchange then goes on, and a client that comes back with
        the answers calls this again.
        """
        self.client = client
        while True:
            if not self._questions:
                await self._news.wait()
            self._news.clear()
            while self._questions:
                asked = self._questions[0]
                try:
                    replies = await client.inputs(asked.requests)
                except HoldfastError as error:
                    asked.fail(error)
                else:
                    asked.answer({name: reply.result for name, reply in replies.items()})
                self._forget(asked)
            if self._task.done():
                return self._result()

    def cancel(self) -> None:
        """End it, if it has not ended yet. This does not wait: the server may have to be told so."""
        self._task.cancel()
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody else retrieves it

    async def wait(self) -> None:
        """Wait until it has ended."""
        await asyncio.wait([self._task])

    async def ask(self, requests: Mapping[str, Forwarded]) -> Replies:
        """Ask the client, and return its replies by the same names. For the work of the exchange."""
        if len(self._questions) >= MAX_OPEN:
            raise LimitReached("the question was not asked", why=f"{MAX_OPEN} others of this server wait for answers")
        names = {name: self._unused_name(self._redaction.redact(name)) for name in requests}
        questions = ServerQuestions(
            {
                names[name]: Forwarded(request.method, self._redaction.redact(request.params))
                for name, request in requests.items()
            }
        )
        self._questions.append(questions)
        leave_connection()  # a person may need minutes for the answer
        self._news.set()
        try:
            replies = await questions.replies
        finally:
            self._forget(questions)  # a server may go on without the answer
        return {name: replies[other] for name, other in names.items()}

    def count_message(self) -> None:
        """Count a message of the server besides the response. Raise HoldfastError if there are too many."""
        self._messages += 1
        if self._messages > MAX_MESSAGES:
            raise HoldfastError("the server was not heard out", why=f"it sent more than {MAX_MESSAGES:,} messages")

    async def notify(self, method: object, params: Mapping[str, Any]) -> None:
        """Pass a notification of the server on to the client. For the work of the exchange."""
        self.count_message()
        params = self._redaction.redact(params)
        if method == "notifications/progress":
            progress, total, message = (params.get(name) for name in ("progress", "total", "message"))
            if _is_number(progress):
                await self.client.progress(
                    cast(float, progress),
                    total=cast(float, total) if _is_number(total) else None,
                    message=message if isinstance(message, str) else None,
                )
        elif method == "notifications/message" and params.get("level") in LOG_LEVELS:
            logger = params.get("logger")
            await self.client.log(
                str(params["level"]), params.get("data"), logger=logger if isinstance(logger, str) else None
            )

    def _forget(self, questions: ServerQuestions) -> None:
        if questions in self._questions:
            self._questions.remove(questions)

    def _result(self) -> Mapping[str, Any]:
        try:
            return self._redaction.redact(self._task.result())
        except McpError as error:
            message, data = self._redaction.redact(error.message), self._redaction.redact(error.data)
            raise McpError(error.code, message, data) from None  # without the status: it is not the one of our answer
        except HoldfastError as error:
            if isinstance(error, MissingCapability):
                error.missing = self._redaction.redact(error.missing)
            raise redact_error(error, self._redaction) from None

    def _unused_name(self, name: str) -> str:
        """Return a name that no earlier question has: its answer would be taken for the answer to this one."""
        unused = name
        while unused in self._names:
            self._names[name] += 1
            unused = f"{name}#{self._names[name]}"
        self._names[unused] = 1
        return unused


def capabilities_for(client: Client, *, sampling: bool) -> dict[str, Any]:
    """Return what a server may ask a client for: what the client can, and the source allows.

    Only what the protocol knows: sessions are kept by it, and a client must not get new ones as it likes.
    """
    found: dict[str, Any] = {}
    for name, options in OPTIONS.items():
        if name in client.capabilities and (sampling or name != SAMPLING):
            given: object = client.capabilities[name]
            found[name] = {option: {} for option in options if isinstance(given, dict) and option in given}
    return found


async def _nothing(_: Exchange) -> Mapping[str, Any]:
    return {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
