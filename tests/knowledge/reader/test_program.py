import io
import os

import msgspec
import pytest

from holdfast.knowledge.reader.program import EngineConnection
from holdfast.knowledge.reader.protocol import SIZE, Acknowledge, ReadPart, frame, reply_decoder

PART = ReadPart([], b"here", 1, None, 5, "text/plain", None, None)


def sent(replies: int) -> list[object]:
    data = io.BytesIO(os.read(replies, 1 << 16))
    found: list[object] = []
    while header := data.read(SIZE.size):
        found.append(reply_decoder.decode(data.read(SIZE.unpack(header)[0])))
    return found


def test_a_part_waits_while_too_many_are_not_acknowledged() -> None:
    reading, writing = os.pipe()
    connection = EngineConnection(io.BytesIO(frame(Acknowledge())), writing)

    for _ in range(3):  # two are sent ahead, the third after the acknowledgement
        connection.send_part(PART, window=2)
    with pytest.raises(SystemExit):  # the engine has gone
        connection.send_part(PART, window=2)

    assert sent(reading) == [PART] * 3
    os.close(reading)
    os.close(writing)


def test_the_process_ends_when_the_engine_has_gone() -> None:
    connection = EngineConnection(io.BytesIO(b""), -1)

    with pytest.raises(SystemExit) as caught:
        connection.receive()

    assert caught.value.code == 0


def test_a_frame_begins_with_its_length() -> None:
    data = frame(Acknowledge())

    assert SIZE.unpack(data[: SIZE.size]) == (len(data) - SIZE.size,)
    assert msgspec.msgpack.decode(data[SIZE.size :]) == ["acknowledge"]
