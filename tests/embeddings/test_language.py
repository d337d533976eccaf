import pytest

from holdfast.embeddings import language_of

pytestmark = pytest.mark.req("MEM-11")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("She likes tea.", "en"),
        ("", "en"),
        ("42 :-) 👍", "en"),
        ("Я люблю чай", "en"),
        ("她喜欢喝茶。", "zh"),
        ("她喜歡喝茶", "zh"),
        ("我用 PostgreSQL 和 Kubernetes 部署了服务", "zh"),
        ("My colleague 王小明 likes tea and hiking", "en"),
        ("OK 好", "zh"),
        ("鲜の每日牛奶很好喝啊我喜欢", "zh"),
        ("お茶が好きです。", "other"),
        ("彼は東京大学で情報工学を研究しています", "other"),
        ("그녀는 차를 좋아한다", "other"),
        ("He said ありがとう to all of us at the end", "en"),
        ("\ud83d\0", "en"),
    ],
)
def test_the_script_of_a_text_decides_its_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_the_beginning_of_a_long_text_decides() -> None:
    assert language_of("她喜欢喝茶。" * 1000 + "and coffee " * 10_000) == "zh"
