"""Tools that are scripts: how they get their arguments, what they return, and what is recorded of them."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.execution.executions import Execution
from holdfast.execution.sandbox.languages import LANGUAGES, Language, find_interpreter
from holdfast.execution.sweeper import ExecutionSweeper
from holdfast.skills.tool import KINDS
from tests.clock import Clock

pytestmark = [pytest.mark.req("EXEC-01", "EXEC-03"), pytest.mark.usefixtures("no_models")]

ANYTHING = {"type": "object", "additionalProperties": True}
DOUBLE: dict[Language, str] = {
    "python": "import json, sys\nprint(json.dumps({'twice': 2 * json.load(sys.stdin)['number']}))",
    "javascript": "const { number } = JSON.parse(require('fs').readFileSync(0));"
    " console.log(JSON.stringify({ twice: 2 * number }));",
    "bash": 'read -r given; [[ $given =~ :([0-9]+) ]]; echo "{\\"twice\\": $((2 * BASH_REMATCH[1]))}"',
}
FAIL: dict[Language, str] = {
    "python": "import sys; print('so far'); sys.exit('there is no such parcel')",
    "javascript": "console.log('so far'); console.error('there is no such parcel'); process.exit(1)",
    "bash": "echo so far; echo there is no such parcel >&2; exit 1",
}


async def call(engine: Engine, code: str, kind: Language = "python", /, **arguments: Any) -> Execution:
    await engine.tools.put("script", description="It runs.", parameters=ANYTHING, kind=kind, script=code)
    return await engine.executions.call("script", arguments, user="ann")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_script_reads_its_arguments_as_json_and_its_output_is_the_result(
    tried: Engine, language: Language
) -> None:
    execution = await call(tried, DOUBLE[language], language, number=21)

    assert (execution.status, execution.result, execution.error) == ("done", {"twice": 42}, None)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_script_that_fails_tells_the_model_why(tried: Engine, language: Language) -> None:
    execution = await call(tried, FAIL[language], language)

    assert execution.status == "failed"
    assert execution.text.startswith("script failed: it ended with exit code 1\nstandard error:\n")
    assert "there is no such parcel" in execution.text
    assert execution.text.endswith("standard output:\nso far")


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("print('some text')", "some text"),
        ("print('two\\nlines\\n')", "two\nlines\n"),
        ("pass", None),
        ("print('[1, 2')", "[1, 2"),
        ("print(42)", 42),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00x')", "\ufffd\0x"),
        ("import os, json; print(json.loads(os.environ['ARGUMENTS'])['word'])", "日本 \U0001f600"),
        ("print('y' * 1_500_000)", "y" * 1_500_000),
    ],
)
async def test_what_a_script_prints_is_its_result(tried: Engine, code: str, result: object) -> None:
    execution = await call(tried, code, word="日本 \U0001f600")

    if execution.has_output:
        assert (await tried.executions.output(execution.id))[1].decode() == result
    else:
        assert execution.result == result
    assert execution.status == "done"


async def test_a_script_that_takes_too_long_is_stopped_and_says_so(tried: Engine) -> None:
    await tried.tools.put(
        "script", description="It runs.", parameters=ANYTHING, kind="bash", script="echo begun; sleep 1000", timeout=2
    )

    execution = await tried.executions.call("script", user="ann")

    assert execution.status == "failed"
    assert "ran longer than its 2 seconds" in execution.text
    assert "begun" in execution.text


async def test_a_script_has_no_network_by_default(tried: Engine) -> None:
    execution = await call(tried, "import socket; socket.create_connection(('127.0.0.1', 1))")

    assert "PermissionError" in execution.text


@pytest.mark.parametrize("language", ["python", "bash"])
async def test_a_python_of_the_settings_opens_no_folder_around_it(
    tried: Engine, language: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(find_interpreter("python", {}).program)
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    settings = tried.config.execution.sandbox.model_copy(update={"python": python})
    monkeypatch.setattr(tried.scripts, "_settings", settings)
    codes: dict[str, str] = {"python": f"print(open('{secret}').read())", "bash": f"cat {secret}"}

    execution = await call(tried, codes[language], language)

    assert "Permission denied" in execution.text
    assert "the secret" not in execution.text


async def test_what_ran_in_the_sandbox_is_recorded(tried: Engine) -> None:
    code = "import sys; print('out'); print('\\0err', file=sys.stderr); sys.exit(3)"

    execution = await call(tried, code, password="hunter2")
    [recorded] = await tried.scripts.executions.of(execution.id)

    assert (recorded.execution_id, recorded.run_id) == (execution.id, None)
    assert (recorded.sandbox_type, recorded.code, recorded.exit_code) == ("python", code, 3)
    assert (recorded.stdout, recorded.stderr) == ("out\n", "\0err\n")
    assert recorded.execution_time_ms > 0
    assert recorded.resource_usage.keys() == {"cpu_seconds", "memory_bytes"}
    assert "hunter2" not in json.dumps(dict(recorded.environment))


async def test_records_of_the_sandbox_are_deleted_when_they_are_old(tried: Engine) -> None:
    execution = await call(tried, "pass")
    sweeper = ExecutionSweeper(tried.postgres, tried.config.execution)

    await sweeper.sweep()
    before = await tried.scripts.executions.of(execution.id)
    await Clock(tried).advance(timedelta(days=tried.config.execution.keep_days, seconds=1))
    await sweeper.sweep()

    assert len(before) == 1
    assert await tried.scripts.executions.of(execution.id) == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_scripts_are_a_kind_that_runs(tried: Engine, language: Language) -> None:
    assert language in KINDS
    assert tried.tools.runs(language)
    assert await tried.tools.runs.refusal(language) is None


async def test_a_script_whose_interpreter_is_missing_is_refused_at_registration(
    tried: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.sandbox.languages._FINDERS", {"javascript": lambda: None})

    with pytest.raises(InvalidInput) as refused:
        await call(tried, "1", "javascript")

    assert "no program for them is installed" in refused.value.why
    assert refused.value.next == "Install it, or name its path in execution.sandbox.node."
    assert not tried.tools.runs("javascript")
