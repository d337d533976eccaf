# ruff: noqa: RUF001 - Chinese has signs of its own
from time import process_time

import pytest

from holdfast.llm.user_facts import extract_facts, has_facts
from tests.agents.sayings import HELD_OUT_LASTING, HELD_OUT_PASSING, LASTING, PASSING

pytestmark = pytest.mark.req("MEM-07")


@pytest.mark.parametrize(
    ("lasting", "passing"), [(LASTING, PASSING), (HELD_OUT_LASTING, HELD_OUT_PASSING)], ids=["known", "held out"]
)
def test_nine_of_ten_are_told_apart(lasting: list[str], passing: list[str]) -> None:
    missed = [saying for saying in lasting if not has_facts(saying)]
    wrong = [saying for saying in passing if has_facts(saying)]

    kept = len(lasting) - len(missed)
    assert kept / len(lasting) >= 0.9, missed
    assert kept / (kept + len(wrong)) >= 0.9, wrong


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Please remember that my locker code is 4711.", "my locker code is 4711."),
        ("Remember: I take my coffee black.", "I take my coffee black."),
        ("请记住，我的生日是五月八号。", "我的生日是五月八号。"),
        ("别忘了我对海鲜过敏。", "我对海鲜过敏。"),
        ("Hi! I'm Dr. Ann Walker. Where is my parcel? I live in Berlin.", "I'm Dr. Ann Walker. I live in Berlin."),
        ("Yes, I have two sons. Thanks!", "I have two sons."),
        ("你好，我住在上海。明天天气怎么样？", "我住在上海。"),
        ("I use this at work:\n```\nI = my.value\n```\nCan you fix it?", "I use this at work:"),
        ("What is my name?", None),
        ("Remember to call my mother.", None),
        ("Do you remember that I live in Berlin?", None),
        ("", None),
        (" \n。！", None),
    ],
)
def test_only_the_sentences_worth_keeping_are_kept(text: str, part: str | None) -> None:
    assert extract_facts(text) == part


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("text", ["I " * 500_000, "我" * 1_000_000, "!" * 1_000_000, "```" * 300_000, "hi, " * 250_000])
def test_a_message_of_a_megabyte_costs_no_time(text: str) -> None:
    started = process_time()

    extract_facts(text)

    assert process_time() - started < 2  # seconds, on a busy machine, too; one that looks back takes minutes
