"""The client of a modern request: gets notifications on the stream of the answer, and questions in the answer itself.

Answers come with the request. If one is missing, the request ends with the question. The client repeats the request
with the answers, and the tool runs again from its beginning.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from holdfast.core.text import render
from holdfast.gateway.mcp.notified_client import NotifiedClient, Notify
from holdfast.gateway.mcp.replies import describe_mismatch, undeclared_capabilities
from holdfast.gateway.mcp.request_state import Answers, RequestState
from holdfast.gateway.policies.approval import QUESTION
from holdfast.mcp.inputs import Elicit, Forwarded, InputRequest, MissingCapability, Reply
from holdfast.postgres.database import Database
from holdfast.skills.client import InputRequired


class ModernClient(NotifiedClient):
    """The client of one request.

    `answers` came with the request, `state` says what the client was asked before, and `used` are the answers that were
    read. `digests` are those of the questions of other servers.
    """

    def __init__(
        self,
        notify: Notify,
        database: Database,
        answers: Answers,
        state: RequestState | None,
        *,
        capabilities: Mapping[str, Any],
        progress_token: str | int | None = None,
        level: str | None = None,
    ) -> None:
        super().__init__(notify, progress_token=progress_token, level=level)
        self._database = database
        self._answers = answers
        self._state = state
        self.capabilities = capabilities
        self.waiting = "" if state is None else state.waiting
        self.used: dict[str, Mapping[str, Any]] = {}
        self.digests: dict[str, str] = {} if state is None else {**state.digests}

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Return the answers; raise InputRequired if one is missing, or does not fit its question."""
        self._refuse_undeclared(requests)
        open: dict[str, InputRequest] = {}
        for name, request in requests.items():
            answer = self._answers.get(name) if self._was_asked(name, request) else None
            wrong = "" if answer is None else describe_mismatch(request, answer)
            if answer is None or wrong:
                open[name] = _ask_again(request, wrong)
            else:
                self.used[name] = answer
        if open:
            raise InputRequired(open)
        if QUESTION in requests and self._state is not None:  # an approval is answered only with a state
            await self._state.use(self._database)
        return {name: Reply(self.used[name]) for name in requests}

    def _was_asked(self, name: str, request: InputRequest) -> bool:
        """Whether an answer of this name is one to this question, and note the question.

        A tool of ours chooses the names of its questions. Those of another server are only counted: if it asks in
        another order when it is called again, an answer must not be taken for one to another question.
        """
        if not isinstance(request, Forwarded):
            return True
        digest = hashlib.blake2s(render([request.method, request.params]), digest_size=16).hexdigest()
        before, self.digests[name] = self.digests.get(name), digest
        return self._state is None or before == digest

    def _refuse_undeclared(self, requests: Mapping[str, InputRequest]) -> None:
        missing = undeclared_capabilities(self.capabilities, requests.values())
        if missing:
            raise MissingCapability(missing)


def _ask_again(request: InputRequest, wrong: str) -> InputRequest:
    """Return a request to ask again; a form tells the person why."""
    if not wrong or not isinstance(request, Elicit):
        return request
    return Elicit(f"{request.message}\n\nWhat was sent before does not fit: {wrong}", request.schema)
