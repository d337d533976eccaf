# ruff: noqa: RUF001 - Chinese has signs of its own
import time

import pytest

from holdfast.memory.query import MAX_QUESTION, asks_when, is_first_person, sentences_of


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is her job? And where does she live?", ["What is her job", "And where does she live"]),
        ("She moved. Where to?", ["She moved", "Where to"]),
        ("Dr. Smith left. Why?", ["Dr. Smith left", "Why"]),
        ("tea; coffee; water", ["tea", "coffee", "water"]),
        ("first\nsecond", ["first", "second"]),
        ("我上司的手机号是多少？他叫什么？", ["我上司的手机号是多少", "他叫什么"]),
        ("他搬家了。搬到哪里；和谁？", ["他搬家了", "搬到哪里", "和谁"]),
        ("小明说：“走吧！”他去哪了？", ["小明说：“走吧！”", "他去哪了"]),
    ],
)
def test_a_question_of_several_sentences_has_parts(question: str, expected: list[str]) -> None:
    assert sentences_of(question) == expected


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    "question",
    [
        "What is her job?",
        "Who, when, and where?",
        "在哪里，什么时候，和谁？",
        "Is it Python 3.11?",
        "Where did Mr. Smith and J. R. Meyer go?",
        "What is at example.com?",
        "Does it take nuts, e.g. walnuts?",
        "Who said https://example.com/?a=1;b=2 works?",
        "Really?!?!",
        "",
        "???",
    ],
)
def test_a_single_sentence_has_no_parts(question: str) -> None:
    assert sentences_of(question) == []


@pytest.mark.req("MEM-04")
def test_a_question_has_at_most_four_parts() -> None:
    assert sentences_of("One? Two? Three? Four? Five?") == ["One", "Two", "Three", "Four"]


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize("filler", ["?", "!?", ";", "？", ".", "?)", "? ", "a.", "\n", " ", "e.g.", '."', "i "])
def test_a_question_of_any_shape_is_split_in_no_time(filler: str) -> None:
    question = (filler * MAX_QUESTION)[: MAX_QUESTION - 1] + "a"
    start = time.process_time()

    sentences_of(question)
    is_first_person(question)
    asks_when(question)

    assert time.process_time() - start < 1


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    "question",
    [
        "What did I say?",
        "what do i like?",
        "What's my address?",
        "Who gave it to me?",
        "Is that mine?",
        "where I'm from",
        "我住在哪里？",
        "他送了我什么？",
        "咱家的地址",
        "what i’ve read",
    ],
)
def test_a_question_may_be_about_the_one_who_asks(question: str) -> None:
    assert is_first_person(question)


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    "question",
    [
        "What did Ann say?",
        "What is I.B.M.?",
        "mining in Maine",
        "Where is the I/O?",
        "我们去哪里？",
        "我国的首都",
        "for i in range",
        "",
    ],
)
def test_a_question_may_be_about_others(question: str) -> None:
    assert not is_first_person(question)


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did she go?", True),
        ("What year was it?", True),
        ("On which day does it start?", True),
        ("他什么时候去的？", True),
        ("论坛的时间是什么？", True),
        ("Where did she go?", False),
        ("Whenever", False),
        ("他在哪里？", False),
    ],
)
def test_a_question_may_ask_for_a_time(question: str, expected: bool) -> None:
    assert asks_when(question) is expected
