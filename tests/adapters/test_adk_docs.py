import re
from pathlib import Path

import pytest

from tests.processes import Processes

PAGE = Path(__file__).parents[2] / "docs" / "adk.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.acceptance
@pytest.mark.req("ADK-01", "ADK-02", "ADK-05", "CONV-09")
def test_the_page_says_what_works(processes: Processes, database_url: str, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("\n".join(BLOCK.findall(PAGE.read_text("utf-8"))), "utf-8")
    settings = {
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_DATA": str(tmp_path / "data"),
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",  # with a model or without, it works
    }

    program = processes.start("page.py", environment=settings)

    assert program.wait() == 0, program.stderr
    assert program.stdout.splitlines() == [
        "support You said: Where is my parcel?",
        "support You said: And now?",
        "visits 5",
        "user Where is my parcel?",
        "assistant You said: Where is my parcel?",
        "user And now?",
        "assistant You said: And now?",
        "user It has arrived.",
        "last user It has arrived.",
        "sunday I know nothing about you.",
        "monday Then no satay.",
        "friday Then no satay.",
        "found Likes a table by the window.",
    ]
