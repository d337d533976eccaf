"""Short ways to make what ADK's tests need: events, and a model that answers by a script."""

from collections.abc import AsyncGenerator, Iterable
from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, FunctionCall, Part
from pydantic import PrivateAttr


def said(text: str, *, author: str = "support", **more: Any) -> Event:
    """An event with a text."""
    role = "user" if author == "user" else "model"
    return Event(author=author, content=Content(role=role, parts=[Part(text=text)]), **more)


def changed(delta: dict[str, Any], **more: Any) -> Event:
    """An event that changes state."""
    return Event(author="support", actions=EventActions(state_delta=delta), **more)


def user_says(text: str) -> Content:
    """What a user gives to a runner."""
    return Content(role="user", parts=[Part(text=text)])


def calls(name: str, **args: Any) -> Part:
    """A part that calls a tool."""
    return Part(function_call=FunctionCall(name=name, args=args))


class ScriptedLlm(BaseLlm):
    """Gives one answer after another, and keeps what it was asked."""

    _answers: list[list[Part]] = PrivateAttr()
    _asked: list[list[str]] = PrivateAttr(default_factory=list)
    _prompts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, *answers: str | Iterable[Part]) -> None:
        super().__init__(model="scripted")
        self._answers = [[Part(text=answer)] if isinstance(answer, str) else list(answer) for answer in answers]

    @property
    def asked(self) -> list[list[str]]:
        """The texts of each request."""
        return self._asked

    @property
    def prompts(self) -> list[str]:
        """Each request as JSON, with what tools gave."""
        return self._prompts

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next answer of the script."""
        self._prompts.append("\n".join(content.model_dump_json(exclude_none=True) for content in llm_request.contents))
        self._asked.append(
            [part.text for content in llm_request.contents for part in content.parts or [] if part.text is not None]
        )
        yield LlmResponse(content=Content(role="model", parts=self._answers.pop(0)))
