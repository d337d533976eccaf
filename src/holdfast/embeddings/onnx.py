"""ONNX models in this process. A run embeds a single text: in a batch, the other texts change int8 vectors."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from holdfast.core.errors import Broken, Unavailable
from holdfast.embeddings.embedder import Vector, encodable, wrong_dimensions
from holdfast.embeddings.pool import EmbeddingPool
from holdfast.embeddings.store import ModelFiles, Pooling

POOLED = "sentence_embedding"  # the name that exporters give to the output with the vector of the whole text
MAX_TOKENS = 512
MAX_CHARACTERS = 32_768  # far more than 512 tokens of any language: the tokenizer would drop the rest


class OnnxEmbedder:
    """An embedder that runs a model of the store on the threads of a pool."""

    def __init__(self, model: "OnnxModel", *, name: str, prefix: str, pool: EmbeddingPool) -> None:
        self._model = model
        self._name = name
        self._prefix = prefix
        self._pool = pool

    @classmethod
    async def load(
        cls, files: ModelFiles, *, name: str, dimensions: int, prefix: str = "", pool: EmbeddingPool
    ) -> "OnnxEmbedder":
        """Load the model. Raises BadSetting if its vectors have other `dimensions`."""
        model = await pool.run(partial(OnnxModel, files), urgent=True)
        if model.dimensions != dimensions:
            raise wrong_dimensions(files.name, found=model.dimensions, expected=dimensions)
        return cls(model, name=name, prefix=prefix, pool=pool)

    @property
    def name(self) -> str:
        """The name that is stored with its vectors."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The dimensions of its vectors."""
        return self._model.dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts, in order."""
        vectors: list[Vector] = [[]] * len(texts)
        left = iter(enumerate(texts))
        try:
            async with asyncio.TaskGroup() as tasks:
                # Few texts of a call queue at once, so that calls with many texts and calls with one take turns.
                for _ in range(min(self._pool.threads + 1, len(texts))):
                    tasks.create_task(self._embed(left, vectors))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query. It has priority over queued texts."""
        return await self._pool.run(partial(self._model.vector, self._prefix + text), urgent=True)

    async def _embed(self, left: Iterator[tuple[int, str]], vectors: list[Vector]) -> None:
        for place, text in left:
            vectors[place] = await self._pool.run(partial(self._model.vector, text))


class OnnxModel:
    """A session of ONNX Runtime and its tokenizer. It is thread-safe."""

    def __init__(self, files: ModelFiles) -> None:
        import numpy
        import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
        from tokenizers import Tokenizer

        self._numpy = numpy
        runtime = cast(Any, onnxruntime)
        options = runtime.SessionOptions()
        # One thread per text, and as many texts as cores: the vector of a text then does not depend on other texts.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(files.tokenizer))
            self._session: Any = runtime.InferenceSession(str(files.onnx), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise Unavailable(
                f"the model {files.name} cannot be loaded",
                why=str(error).partition("\n")[0],
                next=f"Check the files in {files.onnx.parent}.",
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._inputs = {each.name for each in self._session.get_inputs()}
        outputs = [each.name for each in self._session.get_outputs()]
        self._outputs = [POOLED if POOLED in outputs else outputs[0]]
        self._pooling: Pooling = files.pooling
        self.dimensions = len(self.vector("."))

    def vector(self, text: str) -> Vector:
        """Return the unit vector of a text, or of its first 512 tokens."""
        try:
            state = self._session.run(self._outputs, self._tokens(text[:MAX_CHARACTERS]))[0]
        except Exception as error:
            raise Broken("the model failed on a text", why=str(error).partition("\n")[0]) from error
        pooled = state[0]
        if pooled.ndim == 2:
            pooled = pooled.mean(axis=0) if self._pooling == "mean" else pooled[0]
        norm = float(self._numpy.linalg.norm(pooled))
        if not 0 < norm < float("inf"):
            raise Broken("the model returned no vector for a text", why=f"the length of the vector is {norm}")
        return (pooled / norm).tolist()

    def _tokens(self, text: str) -> dict[str, Any]:
        ids = self._numpy.array([self._tokenizer.encode(encodable(text)).ids], self._numpy.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": self._numpy.ones_like(ids),
            "token_type_ids": self._numpy.zeros_like(ids),
        }
        return {name: value for name, value in inputs.items() if name in self._inputs}
