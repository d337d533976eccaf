"""Splitting documents into chunks."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.errors import Unavailable
from holdfast.embeddings.store import Store
from holdfast.knowledge.chunk import Chunk, Heading
from holdfast.knowledge.chunker import JOINT, Chunker, passage_texts, searchable_text
from holdfast.knowledge.parsing.units import Block, BlockKind, Unit
from holdfast.knowledge.tokenizer import Tokenizer
from tests.embeddings.models import CHINESE, ENGLISH

ESTIMATE = Tokenizer.load(None)
SENTENCE = "The quick brown fox jumps over the lazy dog. "
KINDS: Sequence[BlockKind] = ("heading", "paragraph", "list", "table", "code", "caption")

words = st.sampled_from(
    [
        "tea",
        "Dr. Li",
        "3.14",
        "supercalifragilistic",
        "a|b",
        "e.g. this",
        "# x",
        "什么是记忆",
        "它们在哪里，",  # noqa: RUF001
        "。",
        "!",
        "?)",
        "x" * 90,
        "\t",
        "é",
    ]
)
lines = st.lists(words, min_size=1, max_size=30).map(" ".join)
texts = st.lists(lines, min_size=1, max_size=8).map(". ".join)


@st.composite
def units(draw: st.DrawFn) -> list[Unit]:
    """Documents of several units, with blocks of all kinds, gaps between them, and empty units."""
    found: list[Unit] = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        text, blocks = "", list[Block]()
        for _ in range(draw(st.integers(0, 6))):
            kind = draw(st.sampled_from(KINDS))
            content = draw(texts).replace(". ", ".\n" if kind in ("table", "code", "list") else ". ")
            start = len(text)
            text += content + "\n\n"
            if draw(st.booleans()) or kind == "heading":
                level = draw(st.integers(1, 6)) if kind == "heading" else 0
                blocks.append(Block(kind, start, start + len(content), level))
        found.append(Unit(number, text.rstrip("\n"), blocks, page=draw(st.sampled_from([None, number]))))
    return found


def split(parts: Sequence[Unit], *, size: int = 64, overlap: int = 8, tokenizer: Tokenizer = ESTIMATE) -> list[Chunk]:
    """The chunks of a document."""
    chunker = Chunker(tokenizer, size=size, overlap=overlap)
    return [chunk for unit in parts for chunk in chunker.feed(unit)] + chunker.finish()


def text_of(parts: Sequence[Unit]) -> str:
    """The text of a document."""
    return JOINT.join(unit.text for unit in parts)


def markdown(text: str) -> Unit:
    """A unit whose paragraphs and headings are told by blank lines and hashes."""
    blocks, place = list[Block](), 0
    for part in text.split("\n\n"):
        level = len(part) - len(part.lstrip("#"))
        blocks.append(Block("heading" if level else "paragraph", place, place + len(part), level))
        place += len(part) + 2
    return Unit(1, text, blocks)


@pytest.mark.req("KNOW-01")
@given(units(), st.integers(16, 200), st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_chunks_cover_the_text_and_keep_to_their_size(parts: list[Unit], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))

    chunks = split(parts, size=size, overlap=overlap)

    text, covered = text_of(parts), 0
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip()
        assert not text[covered : chunk.start].strip()  # only blanks are lost
        assert chunk.end > covered
        assert ESTIMATE.count(text[chunk.start : min(covered, chunk.end)]) <= overlap
        assert ESTIMATE.count(chunk.text) <= chunk.tokens <= size
        covered = chunk.end
    assert not text[covered:].strip()


@given(units(), st.integers(16, 200))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_restored_chunker_continues_with_the_same_chunks(parts: list[Unit], size: int) -> None:
    whole = split(parts, size=size)

    chunker, chunks = Chunker(ESTIMATE, size=size, overlap=8), list[Chunk]()
    for unit in parts:
        chunks += chunker.feed(unit)
        chunker = Chunker.restore(ESTIMATE, chunker.state())
    chunks += chunker.finish()

    assert chunks == whole


@given(units(), st.integers(16, 200))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_passages_cover_their_chunk_and_each_heading_is_in_one_chunk(parts: list[Unit], size: int) -> None:
    chunks = split(parts, size=size)

    for chunk in chunks:
        assert 1 <= len(chunk.passages) <= 2
        assert chunk.passages[0][0] == 0
        assert chunk.passages[-1][1] == len(chunk.text)
        assert not chunk.text[chunk.passages[0][1] : chunk.passages[-1][0]].strip()
        assert all(chunk.text[start:end].strip() for start, end in chunk.passages)
    headings = [heading.start for chunk in chunks for heading in chunk.headings]
    assert len(headings) == len(set(headings))
    expected, place = list[int](), 0
    for unit in parts:
        expected += [place + b.start for b in unit.blocks if b.kind == "heading" and unit.text[b.start : b.end].strip()]
        place += len(unit.text) + len(JOINT)
    assert [text_of(parts)[start:].lstrip()[:3] for start in expected] == [
        text_of(parts)[start:][:3] for start in headings
    ]


def test_a_chunk_ends_at_a_paragraph_rather_than_within_one() -> None:
    first, second = SENTENCE * 5, SENTENCE * 5

    chunks = split([markdown(f"{first.strip()}\n\n{second.strip()}")], size=70, overlap=0)

    assert [chunk.text for chunk in chunks] == [first.strip(), second.strip()]


def test_a_chunk_begins_with_the_last_sentences_of_the_previous_one() -> None:
    numbered = " ".join(f"Sentence {n} is short." for n in range(40))

    first, second, *_ = split([markdown(numbered)], size=50, overlap=12)

    shared = numbered[second.start : first.end]
    assert shared.startswith("Sentence")
    assert shared.count("Sentence") == 2
    assert first.text.endswith(shared)


def test_a_section_begins_a_chunk_and_shares_nothing_with_the_previous_one() -> None:
    text = f"# Guide\n\n{SENTENCE * 5}\n\n## Install\n\n{SENTENCE * 5}"

    first, second = split([markdown(text)], size=100, overlap=20)

    assert second.text.startswith("## Install")
    assert (first.section, second.section) == (("Guide",), ("Guide", "Install"))
    assert first.headings == (Heading(1, "Guide", 0),)
    assert second.headings == (Heading(2, "Install", second.start),)


def test_small_sections_share_a_chunk_whose_section_is_the_common_one() -> None:
    text = f"# Guide\n\n## Install\n\n{SENTENCE}\n\n## Run\n\n{SENTENCE}"

    (chunk,) = split([markdown(text)], size=100)

    assert chunk.section == ("Guide",)
    assert [heading.text for heading in chunk.headings] == ["Guide", "Install", "Run"]


def test_a_heading_is_not_left_at_the_end_of_a_chunk() -> None:
    text = f"{SENTENCE * 4}\n\n# Next\n\n{SENTENCE * 6}"

    first, second = split([markdown(text)], size=48, overlap=0)[:2]

    assert first.text.endswith("dog.")
    assert second.text.startswith("# Next")


def test_sentences_end_at_marks_of_both_languages_but_not_at_abbreviations() -> None:
    text = "Dr. Li met Mrs. Wang, e.g. in St. Louis, at 3.14 p.m. today. 他们在哪里见面？在上海见面。" + SENTENCE  # noqa: RUF001

    chunks = split([markdown((text * 4).strip())], size=240, overlap=30) + split([markdown(text * 4)], size=200)

    assert len(chunks) > 2
    assert all(chunk.text.endswith(("today.", "？", "。", "dog.")) for chunk in chunks)  # noqa: RUF001
    assert all(chunk.text.startswith(("Dr. Li", "他们", "在", "The")) for chunk in chunks)


def test_a_table_is_cut_between_rows_and_code_between_lines() -> None:
    rows = "\n".join(f"| row {n} | value. And more |" for n in range(30))
    code = "\n".join(f"    call(argument_{n}); // see. There" for n in range(30))
    unit = Unit(
        1, f"{rows}\n\n{code}", [Block("table", 0, len(rows)), Block("code", len(rows) + 2, len(rows + code) + 2)]
    )

    chunks = split([unit], size=60, overlap=0)

    assert all(chunk.text.startswith(("| row", "call")) for chunk in chunks)
    assert all(chunk.text.endswith(("more |", "There")) for chunk in chunks)


def test_a_sentence_over_wrapped_lines_is_one_piece() -> None:
    wrapped = "This sentence of a plain text\ncontinues on the next line. This one\ndoes so as well."

    chunks = split([markdown(wrapped)], size=16, overlap=0)

    assert [chunk.text for chunk in chunks] == [
        "This sentence of a plain text\ncontinues on the next line.",
        "This one\ndoes so as well.",
    ]


def test_pages_of_a_chunk_are_those_of_its_pieces() -> None:
    pages = [Unit(n, SENTENCE.strip(), [], page=n, title="Foxes") for n in (1, 2, 3)]

    first, second = split(pages, size=24, overlap=0)

    assert (first.first_page, first.last_page, second.first_page, second.last_page) == (1, 2, 3, 3)


def test_the_title_of_the_first_unit_counts_unless_one_is_given() -> None:
    unit = Unit(1, SENTENCE, [], title="Foxes")
    named, unnamed = Chunker(ESTIMATE, size=64, overlap=8, title="Dogs"), Chunker(ESTIMATE, size=64, overlap=8)

    named.feed(unit)
    unnamed.feed(unit)

    assert (named.title, unnamed.title) == ("Dogs", "Foxes")


def test_words_come_from_title_section_and_text_and_vectors_from_title_and_passages() -> None:
    (chunk,) = split([markdown(f"# Guide\n\n## Install\n\n{SENTENCE.strip()}")])

    assert searchable_text(chunk, "Guide").splitlines()[:2] == ["Guide", "Install"]
    assert passage_texts(chunk, "  The\nHandbook ") == [f"The Handbook\n{chunk.text}"]
    assert passage_texts(chunk, None) == [chunk.text]


@pytest.mark.parametrize("text", ["x", "你", "[1,2],", "a. ", ".", " \u0001x"])
def test_text_without_structure_takes_linear_time_and_keeps_to_the_size(text: str, models: Store) -> None:
    tokenizer = Tokenizer.load(models.find(ENGLISH).tokenizer)  # pyright: ignore[reportOptionalMemberAccess]

    def cost(length: int) -> float:
        whole = text * (length // len(text))
        begun = time.process_time()
        chunks = split([Unit(1, whole, [Block("paragraph", 0, len(whole))])], size=512, overlap=50, tokenizer=tokenizer)
        spent = time.process_time() - begun
        assert max(chunk.tokens for chunk in chunks) <= 512
        assert max(len(chunk.text) for chunk in chunks) <= 512 * 10
        return spent

    assert cost(240_000) < 12 * cost(60_000) + 0.5  # four times would be linear, sixteen times quadratic


@pytest.mark.parametrize("model", [ENGLISH, CHINESE])
def test_tokens_are_those_of_the_embedding_model(model: str, models: Store) -> None:
    from tokenizers import Tokenizer as Model

    files = models.find(model)
    assert files is not None
    text = "Naïve cafés, 什么是记忆？ (tokenizers) don't\tsplit antidisestablishmentarianism\nthe same way. " * 30  # noqa: RUF001
    tokenizer, plain = Tokenizer.load(files.tokenizer), Model.from_file(str(files.tokenizer))

    plain.no_truncation()
    expected = len(plain.encode(text, add_special_tokens=False))

    assert tokenizer.count(text) == tokenizer.count(text) == expected
    assert sum(tokenizer.counts(text.split(" "))) == expected


def test_an_estimate_without_a_model_is_within_a_quarter(models: Store) -> None:
    files = models.find(ENGLISH)
    assert files is not None
    text = SENTENCE * 20 + "Retrieval-augmented generation, measured at 3.14 % of 1,200 documents, is evaluated. "

    ratio = ESTIMATE.count(text) / Tokenizer.load(files.tokenizer).count(text)

    assert 0.75 < ratio < 1.25


def test_a_broken_tokenizer_says_which_file(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "tokenizer.json"
    file.write_text("{}")

    with pytest.raises(Unavailable, match=r"tokenizer\.json"):
        Tokenizer.load(file)
