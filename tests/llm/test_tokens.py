import re
import time
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from holdfast.core.errors import BadSetting
from holdfast.core.settings import LlmSettings
from holdfast.llm import TokenUsage, counter_for
from holdfast.llm.prices import Prices
from holdfast.llm.tokens import ESTIMATE, PART

pytestmark = pytest.mark.req("AGENT-02", "AGENT-03")

DEFAULTS = LlmSettings()
PROSE = """She said that the shipment had left the warehouse on Tuesday morning, and that it would probably arrive
before the weekend unless the weather got worse. Nobody had told her about the second parcel."""
CODE = Path(__file__).read_text("utf-8")
JSON = '{"id":7919,"name":"item 4","price":5.48,"tags":["a","bb"],"ok":true,"at":"2026-11-05T10:04:00Z"}' * 5
CHINESE = "他明天去北京出差，下午三点的飞机。请问您的包裹什么时候能到？如果包裹丢失，我们会在三个工作日内退款。"  # noqa: RUF001


@pytest.mark.parametrize(
    ("model", "counter"),
    [
        ("openai:gpt-5", "o200k_base"),
        ("openai:gpt-5-mini-2025-08-07", "o200k_base"),
        ("openai:gpt-4o-mini", "o200k_base"),
        ("openai:gpt-4.1", "o200k_base"),
        ("openai:o3", "o200k_base"),
        ("openai:ft:gpt-4o-mini:acme::1", "o200k_base"),
        ("openrouter:openai/gpt-5", "o200k_base"),
        ("openai:gpt-4-turbo", "cl100k_base"),
        ("openai:gpt-3.5-turbo", "cl100k_base"),
        ("openai:qwen3", "estimate"),
        ("openrouter:google/gemini-2.5-flash", "estimate"),
        ("anthropic:claude-sonnet-4-5", "estimate"),
        ("ollama:gpt-oss", "estimate"),
        ("offline", "estimate"),
    ],
)
def test_a_model_is_counted_by_its_own_vocabulary_where_it_is_known(model: str, counter: str) -> None:
    assert counter_for(model, DEFAULTS).name == counter


def test_openai_s_vocabularies_count_as_openai_does() -> None:
    newer, older = counter_for("openai:gpt-5", DEFAULTS), counter_for("openai:gpt-4", DEFAULTS)

    assert [newer.count(text) for text in ("", "tiktoken is great!", "你好，世界", "<|endoftext|>")] == [0, 6, 3, 7]  # noqa: RUF001
    assert [older.count(text) for text in ("", "tiktoken is great!", "你好，世界", "<|endoftext|>")] == [0, 6, 6, 7]  # noqa: RUF001


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [(PROSE, 0.95, 1.15), (CODE, 0.9, 1.15), (JSON, 0.9, 1.2), (CHINESE, 1.0, 1.5)],
    ids=["prose", "code", "json", "chinese"],
)
def test_an_estimate_is_near_the_truth(text: str, least: float, most: float) -> None:
    estimate = counter_for("offline", DEFAULTS).count(text)

    truth = counter_for("openai:gpt-5", DEFAULTS).count(text)

    assert least <= estimate / truth <= most


@pytest.mark.parametrize("model", ["offline", "openai:gpt-5", "file"])
@pytest.mark.parametrize("text", ["a" * 10_000_000, PROSE * 10_000, "\n." * 500_000, "\ud83d\0" * 100_000])
def test_ten_megabytes_are_counted_in_seconds(model: str, text: str, tokenizer: Path) -> None:
    settings = LlmSettings(model="ollama:x", tokenizer=tokenizer) if model == "file" else DEFAULTS
    counter = counter_for("ollama:x" if model == "file" else model, settings)
    counter.count("loaded")
    started = time.monotonic()

    count = counter.count(text)

    assert count > 0
    assert time.monotonic() - started < 30


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that counts words."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "tea": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.enable_truncation(2)  # pyright: ignore[reportUnknownMemberType]
    made.save(str(path))
    return path


def test_a_tokenizer_of_the_settings_counts_for_their_model_alone(tokenizer: Path) -> None:
    settings = LlmSettings(model="ollama:qwen3", tokenizer=tokenizer)

    counter = counter_for("ollama:qwen3", settings)

    assert (counter.name, counter.count("tea or coffee, or tea")) == ("tokenizer.json", 6)
    assert counter_for("ollama:other", settings).name == "estimate"


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_a_tokenizer_that_is_none_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    counter = counter_for("ollama:x", LlmSettings(model="ollama:x", tokenizer=path))

    with pytest.raises(BadSetting, match=re.escape(f"{path} cannot count tokens")):
        counter.count("tea")


def test_a_call_costs_by_the_last_price_of_its_model() -> None:
    prices = Prices(["openai:a=9/9", "openai:a=1.25/10/0.125", "openrouter:x=y/z=2/4"])

    assert prices.cost("openai:a", TokenUsage(1_000_000, 500_000, cached_tokens=400_000)) == pytest.approx(5.8)
    assert prices.cost("openrouter:x=y/z", TokenUsage(1_000_000, 1_000_000, cached_tokens=10)) == pytest.approx(6.0)
    assert prices.cost("openai:b", TokenUsage(1, 1)) == 0.0
    assert prices.cost("openai:a", TokenUsage(10, 0, cached_tokens=99)) == pytest.approx(10 * 0.125 / 1e6)


def test_a_long_text_is_estimated_by_parts_of_it() -> None:
    sentence = "The parcel 4711 left Cologne on Monday, and arrives tomorrow. "
    text = sentence * (1_000_000 // len(sentence)) + "字" * 1_000_000
    began = time.process_time()

    counted = ESTIMATE.count(text)

    assert time.process_time() - began < 1  # seconds; to count all of it takes many
    exact = sum(ESTIMATE.count(text[start : start + PART]) for start in range(0, len(text), PART))
    assert counted == pytest.approx(exact, rel=0.1)
