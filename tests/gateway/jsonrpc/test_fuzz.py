import json
from collections import Counter
from typing import Any, cast

import pytest

from holdfast.core.errors import HoldfastError
from holdfast.core.text import parse
from holdfast.gateway.jsonrpc.dispatcher import RpcReply
from holdfast.gateway.jsonrpc.envelopes import is_envelope
from tests.gateway.jsonrpc.conftest import Desk
from tests.gateway.jsonrpc.mutations import messages

MESSAGES = 50_000  # by each of two seeds, so that two processes share them
KINDS = {"results", "errors", "nothing", "batches", "envelopes"}
PARTS = {"jsonrpc", "id"}
STATUS = {"statusCode", "code", "message", "description", "severity"}
NOTHING = object()  # nobody waits for an answer


@pytest.mark.req("RPC-02", "ENG-08")
@pytest.mark.parametrize("seed", [7, 8])
async def test_whatever_is_sent_is_answered_well_formed_under_the_right_ids(desk: Desk, seed: int) -> None:
    kinds: Counter[str] = Counter()

    for sent in messages(MESSAGES, seed=seed):
        reply = await desk.reply(sent)

        kinds[check(sent, reply)] += 1

    assert {kind for kind, count in kinds.items() if count > MESSAGES // 200} == KINDS


def check(sent: bytes, reply: RpcReply) -> str:
    """Hold an answer against what was sent; which kind of answer it was."""
    assert reply.status < 500, (sent, reply)
    try:
        message = cast(object, parse(sent))
    except HoldfastError:
        message = None  # no JSON, and so no request
    if isinstance(message, dict) and is_envelope(cast(dict[str, Any], message)):
        assert reply.status == 200 or set(json.loads(reply.body or b"")) == STATUS
        return "envelopes"
    batch = cast(list[Any], message) if isinstance(message, list) and message else None
    wanted = [id for id in map(id_of, [message] if batch is None else batch) if id is not NOTHING]
    if not wanted:
        assert (reply.body, reply.status) == (None, 204), (sent, reply)
        return "nothing"
    answered: Any = json.loads(reply.body or b"")
    answers: list[Any] = [answered] if batch is None else answered
    assert [json.dumps(each["id"]) for each in answers] == [json.dumps(id) for id in wanted], (sent, reply)
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        assert set(answer) in (PARTS | {"result"}, PARTS | {"error"}), (sent, reply)
        if "error" in answer:
            assert set(answer["error"]["data"]) == STATUS
            assert answer["error"]["code"] not in range(-32099, -31999)
    return "batches" if batch is not None else "errors" if "error" in answers[0] else "results"


def id_of(message: object) -> Any:
    """The id that a message is answered under."""
    if not isinstance(message, dict):
        return None
    request = cast(dict[str, Any], message)
    if "id" in request:
        id = request["id"]
        return id if id is None or type(id) in (str, int, float) else None
    is_call = isinstance(request.get("method"), str) and isinstance(request.get("params", []), list | dict)
    return NOTHING if request.get("jsonrpc") == "2.0" and is_call else None
