"""A desk to talk to: the app `desk.py`, and a model that follows a script."""

import json
import shutil
from pathlib import Path

from tests.cli.program import Program

APP = Path(__file__).parents[1] / "acceptance" / "programs" / "desk.py"
SCRIPT: list[dict[str, object]] = [
    {"by": "step"},
    {
        "when": "(?i)parcel",
        "text": "Let me look.",
        "calls": [{"name": "track", "arguments": {"parcel": "AB-1"}}],
        "usage": {"input_tokens": 1200, "output_tokens": 30},
    },
    {"when": "(?i)parcel", "text": "It is in Cologne.", "chunks": 3},
    {"when": "(?i)refund", "calls": [{"name": "refund", "arguments": {"parcel": "AB-1", "euros": 5}}]},
    {"when": "(?i)refund", "text": "That is settled."},
    {
        "when": "(?i)count",
        "text": "one two three four five six ",
        "chunks": 6,
        "delay": 0.2,
        "stall": 600,
        "stall_after": 4,
    },
    {"when": "(?i)recite", "text": " ".join(map(str, range(40))), "chunks": 40, "delay": 0.1},
    {"when": "(?i)wrong", "fail": {"status": 400, "message": "no such thing"}},
    {"when": "(?i)colours", "text": "red \x1b[31mand\r\nnext"},
    {"text": "Good morning."},
]


def at_desk(folder: Path, data: Path) -> Program:
    """The program in a folder that has the app, with the script for a model."""
    shutil.copy(APP, folder / "desk.py")
    script = folder / "script.jsonl"
    script.write_text("\n".join(map(json.dumps, SCRIPT)))
    program = Program(folder, data)
    program.environment["HOLDFAST_LLM__MODEL"] = f"scripted:{script}"
    return program
