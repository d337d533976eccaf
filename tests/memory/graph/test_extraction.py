import subprocess
import sys

import pytest

from holdfast.memory.graph.extraction import entities_of, graph_of, key_of, query_keys, relations_of, title_keys
from tests.memory.graph.labelled_passages import passages, score

pytestmark = pytest.mark.req("GRAPH-01")


def named(text: str, **given: str) -> dict[str, str]:
    return {entity.name: entity.type for entity in entities_of(text, **given)}


@pytest.mark.parametrize(("language", "names", "typed"), [("english", 0.96, 0.85), ("chinese", 0.85, 0.85)])
def test_extraction_finds_the_names_of_passages_that_the_rules_were_not_developed_on(
    language: str, names: float, typed: float
) -> None:
    scores = score(passages(language, 1))

    assert scores.names.f1 >= names
    assert scores.typed.f1 >= typed


@pytest.mark.parametrize(
    "spellings",
    [
        ("The Acme Corp.", "Acme Corp", "ACME  CORP", "acme corp's"),
        ("U.S.A.", "USA"),
        ("O\u2019Brien & Sons", "OBrien and Sons"),
        ("Café-Noir", "cafe noir"),
        ("亚伯拉罕·林肯", "亚伯拉罕 林肯", "亚伯拉罕林肯"),
        ("《红楼梦》", "红楼梦"),
        ("ＩＢＭ", "IBM"),
    ],
)
def test_spellings_of_a_name_have_one_key(spellings: tuple[str, ...]) -> None:
    assert len({key_of(each) for each in spellings}) == 1


def test_keys_keep_names_apart() -> None:
    assert len({key_of(each) for each in ("C", "C++", "C#", "Acme", "Acme 2", "the")}) == 6


def test_a_key_is_never_empty_and_never_long() -> None:
    assert key_of("...") == "..."
    assert len(key_of("word " * 500)) <= 200


def test_a_stated_alias_belongs_to_the_entity() -> None:
    [ibm] = entities_of("International Business Machines (IBM) hires. IBM pays well.")
    [acme] = entities_of("Acme Corporation, also known as Acme, sells anvils.")
    [academy] = entities_of("中国科学院（简称中科院）公布了成果。")

    assert (ibm.name, ibm.aliases, ibm.count) == ("International Business Machines", ("IBM",), 3)
    assert (acme.name, acme.aliases) == ("Acme Corporation", ("Acme",))
    assert (academy.name, academy.aliases) == ("中国科学院", ("中科院",))


def test_a_bracket_that_is_no_short_form_is_no_alias() -> None:
    entities = entities_of("Angela Merkel (CDU) met Emmanuel Macron (Paris).")

    assert {alias for entity in entities for alias in entity.aliases} == set()


def test_code_and_headings_in_capitals_name_nothing() -> None:
    text = "INSTALLATION GUIDE\n\n```\nclass Foo(Bar):\n    Baz = Qux\n```\nOpen the folder."

    assert named(text) == {}


def test_a_surname_counts_as_a_mention_of_the_only_person_who_has_it() -> None:
    [alice] = entities_of("Alice Smith called. Then Smith wrote, and Smith left.")

    assert (alice.name, alice.count) == ("Alice Smith", 3)


def test_the_title_of_a_document_is_an_entity() -> None:
    entities = entities_of("It was filmed in Rome.", title="The Big Heist (1968 film).pdf")

    assert [(each.key, each.is_title, each.count) for each in entities] == [
        ("big heist 1968 film", True, 0),
        ("big heist", True, 0),
        ("rome", False, 1),
    ]
    assert title_keys("The Big Heist (1968 film)") == ["big heist 1968 film", "big heist"]


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("Jean Renoir was born in Paris.", [("jean renoir", "BORN_IN", "paris")]),
        ("My sister Anna works at Google.", [("anna", "WORKS_AT", "google")]),
        ("GitLab depends on PostgreSQL.", [("gitlab", "DEPENDS_ON", "postgresql")]),
        ("Tim Cook is the CEO of Apple.", [("tim cook", "LEADS", "apple")]),
        ('The film "Inception" was directed by Christopher Nolan.', [("inception", "CREATED_BY", "christopher nolan")]),
        ("Acme Corp., founded by Jane Roe, is growing.", [("acme corp", "CREATED_BY", "jane roe")]),
        ("Tom's wife Maria lives in Madrid.", [("tom", "MARRIED_TO", "maria"), ("maria", "LIVES_IN", "madrid")]),
        ("李明是清华大学的教授。", [("李明", "WORKS_AT", "清华大学")]),
        ("《活着》的作者是余华。", [("活着", "CREATED_BY", "余华")]),
        ("阿里巴巴集团位于杭州市。", [("阿里巴巴集团", "LOCATED_IN", "杭州市")]),
        ("Anna does not work at Google.", []),
        ("Is Tom married to Jane?", []),
        ("Anna met Google in Paris.", []),
        ("Anna left. Google is in Paris.", []),
    ],
)
def test_a_relation_is_found_where_a_sentence_states_it(text: str, relations: list[tuple[str, str, str]]) -> None:
    assert [(each.source, each.type, each.target) for each in relations_of(text)] == relations


def test_the_keys_of_a_question_contain_its_names() -> None:
    keys = query_keys("Who is the mother of the director of Polish-Russian War (Film)? 《红楼梦》的作者是谁？")

    assert {"polish russian war", "polish russian war film", "红楼梦"} <= set(keys)
    assert not {"who", "is", "the", "of"} & set(keys)


def test_the_keys_of_a_long_question_are_bounded() -> None:
    assert len(query_keys("one two three four five six " * 2000)) <= 1200


def test_a_text_that_names_nothing_has_no_graph() -> None:
    assert graph_of("the weather was fine, and we walked home.") is None


def test_extraction_is_linear_in_hostile_texts() -> None:
    for text in (
        "A" * 200_000,
        "A " * 100_000,
        "Aa of " * 50_000,
        '"A' * 100_000,
        "王" * 100_000,
        "《" * 100_000,
        "a_" * 100_000,
    ):
        entities_of(text)


def test_extraction_imports_neither_the_engine_nor_the_database() -> None:
    program = (
        "import sys, holdfast.memory.graph.extraction\n"
        "print([n for n in ('asyncpg', 'numpy', 'onnxruntime', 'holdfast.engine', 'holdfast.memory.memories') if n in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
