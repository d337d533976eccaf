# ruff: noqa: RUF001 - Chinese has signs of its own
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words import author_terms, lexemes, names, term, terms


@pytest.mark.req("MEM-11")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The kids were running races", ["kid", "run", "race"]),
        ("Caroline's dog, the dogs' kennel and James\u2019s", ["carolin", "dog", "kennel", "jame"]),
        ("I don't, I'm, we've, she'll, can't", []),
        ("won the race", ["won", "race"]),
        ("Café, CAFE and cafe\u0301", ["cafe"]),
        ("ｆｕｌｌ ｗｉｄｔｈ", ["full", "width"]),
        ("tea TEA Tea", ["tea"]),
        ("Привет миру", ["привет", "миру"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("", []),
        ("... — ?!", []),
    ],
)
def test_words_are_compared_by_their_stem_and_without_those_of_every_sentence(text: str, expected: list[str]) -> None:
    assert lexemes(text) == expected


@pytest.mark.req("MEM-11")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann.lee@example.com", ["ann", "lee", "exampl", "com"]),
        ("https://example.com/blog", ["https", "exampl", "com", "blog"]),
        ("2023-05-07", ["2023", "05", "07", "20230507"]),
        ("555-1234", ["555", "1234", "5551234"]),
        ("at 10:30, 1,000 times 3.14.", ["10:30", "1000", "time", "3.14"]),
        ("v1.2.3 is 1.2.3", ["1.2.3"]),
        ("C++ or C#", ["c++", "c#"]),
        ("the U.S.A. and USA", ["usa"]),
        ("O'Brien", ["o", "brien", "obrien"]),
    ],
)
def test_addresses_numbers_and_names_with_signs_keep_what_tells_them_apart(text: str, expected: list[str]) -> None:
    assert lexemes(text) == expected


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize("written", ["fooBar", "foo_bar", "foo-bar", "FooBar", "FOO_BAR"])
def test_a_compound_is_found_by_its_parts_and_however_it_is_written(written: str) -> None:
    assert lexemes(written) == ["foo", "bar", "foobar"]


@pytest.mark.req("MEM-11")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("手机价格", ["手", "手机", "机", "机价", "价", "价格", "格"]),
        ("我的上司", ["的上", "上", "上司", "司"]),
        ("这是什么？", []),
        ("東京タワー", ["東", "東京", "京", "京タ", "タ", "タワ", "ワ", "ワー", "ー"]),
        ("검색", ["검", "검색", "색"]),
        ("iPhone15手机", ["phone15", "iphone15", "手", "手机", "机"]),
        ("用Python写代码", ["用", "python", "写", "写代", "代", "代码", "码"]),
    ],
)
def test_scripts_without_spaces_are_compared_by_characters_and_pairs(text: str, expected: list[str]) -> None:
    assert lexemes(text) == expected


@pytest.mark.req("MEM-04")
def test_a_term_is_the_same_for_ever() -> None:
    pinned = {
        "tea": -5015453343862700912,
        "上司": 3761290911265423938,
        "1.2.3": 2236841068171292113,
        "c++": -2756428418900102742,
    }

    assert {lexeme: term(lexeme) for lexeme in pinned} == pinned


@pytest.mark.req("MEM-04")
@given(st.text())
def test_every_text_has_distinct_terms_that_a_bigint_holds(text: str) -> None:
    found = terms(text)

    assert len(set(found)) == len(found)
    assert all(-(2**63) <= number < 2**63 for number in found)
    assert "" not in lexemes(text)


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("question", "author"),
    [
        ("When did Caroline go?", "Caroline"),
        ("what is caroline's job?", "Caroline Meyer"),
        ("Who met Meyer?", "Caroline Meyer"),
        ("When did Will go?", "Will"),
        ("What did ann say?", "ann@example.com"),
        ("What does the support agent say?", "support_agent"),
        ("José's flat", "Jose"),
        ("王小明喜欢什么？", "王小明"),
        ("小明喜欢什么？", "王小明"),
        ("欧阳娜娜的生日是哪天", "欧阳娜娜"),
    ],
)
def test_a_question_names_an_author(question: str, author: str) -> None:
    assert set(names(question)) & set(author_terms(author))


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("question", "author"),
    [
        ("Will you come?", "Will"),
        ("Where will you go?", "Will"),
        ("When did Caroline go?", "Carol"),
        ("How many of the 42?", "user-42"),
        ("What did you buy at example.com?", "ann@example.com"),
        ("小王喜欢什么？", "王小明"),
        ("", "Ann"),
        ("Ann", ""),
    ],
)
def test_a_question_that_only_sounds_like_an_author_names_none(question: str, author: str) -> None:
    assert not set(names(question)) & set(author_terms(author))


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize("text", ["What did Ann's brother-in-law say? ", "我的上司叫赵雅琳，她住在深圳。"])
def test_a_long_text_is_read_within_milliseconds(text: str) -> None:
    long = "".join(f"{text}{number}" for number in range(64 * 1024 // len(text.encode())))
    terms(long)

    spent: list[float] = []
    for _ in range(5):
        start = time.process_time()
        terms(long)
        spent.append(time.process_time() - start)

    assert min(spent) < 0.1


@pytest.mark.req("SAFE-06")
def test_long_texts_without_spaces_are_not_kept_in_memory() -> None:
    texts = ["".join(chr(0x4E00 + (13 * place * number) % 20_000) for place in range(2000)) for number in range(1, 101)]
    terms(texts[0])
    tracemalloc.start()

    for text in texts:
        terms(text)

    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 25_000_000  # the terms themselves, of which 65,536 are kept
