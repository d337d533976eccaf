from pathlib import Path

import pytest

from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.store import Store
from tests.cli.program import Program
from tests.embeddings.models import CHINESE, ENGLISH

pytestmark = pytest.mark.req("EMB-02", "UI-02")


@pytest.fixture
def holdfast(tmp_path: Path) -> Program:
    """The program, with a cache that has no models and no network to fetch them over."""
    program = Program(tmp_path)
    offline = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "PATH": ""}
    program.environment.update(offline)
    return program


def test_every_model_is_listed_with_where_it_is(holdfast: Program, models: Store) -> None:
    files = models.find(CHINESE)
    assert files is not None
    environment = {"HOLDFAST_MEMORY__EMBEDDING__FOLDER": str(files.onnx.parents[1])}

    here = holdfast("models", "ls", "--json", environment=environment)
    missing = holdfast("models", "ls", "--json")

    assert here.json[1] == {
        "name": CHINESE,
        "serves": "Chinese",
        "dimensions": 512,
        "bytes": KNOWN[CHINESE].bytes,
        "state": "here",
        "place": str(files.onnx.parent),
    }
    assert [(row["name"], row["state"]) for row in missing.json] == [(ENGLISH, "missing"), (CHINESE, "missing")]


def test_people_get_a_table(holdfast: Program) -> None:
    (holdfast.folder / "holdfast.toml").write_text('[memory.embedding]\nchinese_model = ""\n')

    done = holdfast("models", "ls")

    assert [line.split()[0] for line in done.stdout.splitlines()] == ["MODEL", ENGLISH, CHINESE]
    assert "every language" in done.stdout


def test_a_model_that_cannot_be_had_is_exit_code_6_with_every_reason(holdfast: Program) -> None:
    done = holdfast("models", "fetch", "--json")

    assert done.code == 6
    assert done.error["code"] == "unavailable"
    assert "the hub cannot be reached" in done.error["why"]
    assert "the program `mvn` was not found" in done.error["why"]


def test_a_model_that_is_here_is_not_fetched_again(holdfast: Program, models: Store) -> None:
    environment = {"HOLDFAST_MEMORY__EMBEDDING__FOLDER": str(models.cache)}

    done = holdfast("models", "fetch", ENGLISH, environment=environment)

    assert (done.code, done.stdout) == (0, "")
    assert done.stderr == f"The model {ENGLISH} is in {models.cache / ENGLISH}.\n"


def test_with_an_endpoint_there_is_nothing_to_fetch(holdfast: Program) -> None:
    environment = {"HOLDFAST_MEMORY__EMBEDDING__URL": "http://localhost:8000/v1"}

    fetched = holdfast("models", "fetch", environment=environment)
    listed = holdfast("models", "ls", "--json", environment=environment)

    assert (fetched.code, fetched.stderr) == (0, "Nothing to download: vectors come from http://localhost:8000/v1.\n")
    assert {row["state"] for row in listed.json} == {"remote"}
