"""A model behind an endpoint, which tells stories piece by piece, each with the time when it left.

    storyteller.py PORT

Speaks OpenAI's chat completions. What the user says last is JSON: how many pieces, of how many characters, and how many
seconds before each; whoever asks otherwise, for a summary, gets one piece. A piece begins with `@` and the seconds of
the clock that all processes share.
"""

import asyncio
import json
import sys
import time
from asyncio import StreamReader, StreamWriter
from typing import Any

import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
SUMMARY: dict[str, Any] = {"pieces": 1, "length": 24, "delay": 0.0}


async def answer(reader: StreamReader, writer: StreamWriter) -> None:
    """Answer one question after the other on a connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
            body = json.loads(await reader.readexactly(int(fields[b"content-length"])))
            said = next(each["content"] for each in reversed(body["messages"]) if each["role"] == "user")
            writer.write(HEAD)
            await tell(writer, **(json.loads(said) if said.startswith("{") else SUMMARY))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def tell(writer: StreamWriter, *, pieces: int, length: int, delay: float) -> None:
    """Tell a story."""
    start = time.monotonic()
    for number in range(pieces):
        await asyncio.sleep(start + (number + 1) * delay - time.monotonic())
        if writer.is_closing():
            raise ConnectionResetError
        text = f"@{time.monotonic():.6f} ".ljust(length, "o")
        event(writer, {"choices": [{"index": 0, "delta": {"content": text}}]})
    used = {"prompt_tokens": 100, "completion_tokens": pieces}
    event(writer, {"choices": [{"index": 0, "finish_reason": "stop"}], "usage": used})
    piece(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")


def event(writer: StreamWriter, told: object) -> None:
    """Write an event."""
    piece(writer, b"data: %b\n\n" % json.dumps(told).encode())


def piece(writer: StreamWriter, data: bytes) -> None:
    """Write a piece of the body."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


async def main() -> None:
    """Tell until the standard input ends."""
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]), limit=2**24, backlog=1000)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
