"""Content blocks of MCP, which tools, prompts and resources can return besides plain values."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec


class Text(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A text block."""

    text: str


class Image(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    """An image; `data` is Base64. `Image.of(b"...", "image/png")` creates one from bytes."""

    data: str
    mime_type: str = msgspec.field(name="mimeType")

    @classmethod
    def of(cls, data: bytes, mime_type: str) -> "Image":
        """Create an image from bytes."""
        return cls(base64.b64encode(data).decode(), mime_type)


class Audio(msgspec.Struct, frozen=True, tag_field="type", tag="audio"):
    """A sound; `data` is Base64. `Audio.of(b"...", "audio/wav")` creates one from bytes."""

    data: str
    mime_type: str = msgspec.field(name="mimeType")

    @classmethod
    def of(cls, data: bytes, mime_type: str) -> "Audio":
        """Create a sound from bytes."""
        return cls(base64.b64encode(data).decode(), mime_type)


class ResourceContents(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contents of a resource: a text, or Base64 in `blob`."""

    uri: str
    mime_type: str | None = msgspec.field(default=None, name="mimeType")
    text: str | None = None
    blob: str | None = None


class Embedded(msgspec.Struct, frozen=True, tag_field="type", tag="resource"):
    """A resource with its contents."""

    resource: ResourceContents


class Link(msgspec.Struct, frozen=True, tag_field="type", tag="resource_link", omit_defaults=True):
    """A link to a resource that the client can read."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")


Block = Text | Image | Audio | Embedded | Link
BLOCKS = (Text, Image, Audio, Embedded, Link)


class Message(msgspec.Struct, frozen=True):
    """A message of a prompt: a text or a block, with the role `user` or `assistant`."""

    role: Literal["user", "assistant"]
    content: Block | str


def blocks_of(value: object) -> tuple[Block, ...] | None:
    """Return the blocks that a function returned: one, or a list of blocks. Return None for any other value."""
    if isinstance(value, BLOCKS):
        return (value,)
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(each, BLOCKS) for each in cast(Sequence[Any], value))
    ):
        return tuple(cast(Sequence[Block], value))
    return None


def text_of(blocks: Sequence[Block]) -> str:
    """Return blocks as plain text, for readers that take only text."""
    return "\n".join(map(_text_of_block, blocks))


def _text_of_block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case Image() | Audio():
            kind = "picture" if isinstance(block, Image) else "sound"
            return f"[a {kind}: {block.mime_type}, {len(block.data.rstrip('=')) * 3 // 4} bytes]"
        case Embedded():
            held = block.resource
            return held.text if held.text is not None else f"[{held.uri}: {held.mime_type or 'bytes'}]"
        case Link():
            return f"[{block.name}: {block.uri}]"


def text_of_json(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return blocks of another server, in their wire format, as plain text."""
    return "\n".join(map(_text_of_json, blocks))


def _text_of_json(block: Mapping[str, Any]) -> str:
    if isinstance(block.get("text"), str):
        return block["text"]
    try:
        return _text_of_block(msgspec.convert(block, Block))
    except msgspec.ValidationError:
        return f"[{str(block.get('type'))[:60]}]"


def builtin(block: Block) -> Mapping[str, Any]:
    """Return a block as plain JSON data."""
    return cast(Mapping[str, Any], msgspec.to_builtins(block))
