"""An endpoint as OpenAI's clients know it, around a real model, that fails when a test wants it to."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from holdfast.embeddings.onnx import OnnxModel


class FakeEndpoint:
    """Answers `POST /v1/embeddings`; what is in `failures` is answered first, and `broken` as long as it is set."""

    def __init__(self, model: OnnxModel) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.failures: deque[Callable[[], web.Response]] = deque()
        self.broken: Callable[[dict[str, Any]], web.Response | None] = lambda _: None
        self._model = model

    def answer(self, texts: list[str]) -> dict[str, Any]:
        """What the real ones answer; the vectors come in no particular order."""
        rows = [{"object": "embedding", "index": i, "embedding": self._numbers(text)} for i, text in enumerate(texts)]
        return {"object": "list", "data": rows[::-1], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def _numbers(self, text: str) -> list[float]:
        return [3.0 * number for number in self._model.vector(text)]  # normalising is the client's business

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization"))
        if self.failures:
            return self.failures.popleft()()
        return self.broken(body) or web.json_response(self.answer(body["input"]))

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[None]:
        """Listen as long as it lasts."""
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/embeddings", self._serve)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield
        finally:
            await runner.cleanup()
