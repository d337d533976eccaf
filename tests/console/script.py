"""What the agents `desk` and `moody` say: by the words of the message, step by step of a turn."""

import json
from pathlib import Path
from typing import Any

from tests.console.corpus import ARGUMENTS, IMAGE, IMAGES, LINKS

COUNTED = "one two three four "  # and then it falls silent, until it is stopped
COLUMNS = 40
RECITED = " ".join(map(str, range(300)))
WRITTEN = f"""\
# Parcels

A parcel is **tracked** by its *number*, such as `AB-1`; see [the rules](https://rules.example/parcels).

- small ones
- large ones
  1. up to 10 kg
  2. up to 30 kg

| Size  | Price |
| ----- | ----: |
| small |  4.50 |
| large |  9.90 |

```python
def price(size: str) -> float:
    return {{"small": 4.5, "large": 9.9}}[size]
```

|{"|".join(f"column {n}" for n in range(COLUMNS))}|
|{"--|" * COLUMNS}

> Nothing is refunded twice.
"""

BAITED = "\n\n".join((*LINKS, *IMAGES))

DESK: list[dict[str, Any]] = [
    {"when": "^bait: fail", "fail": {"status": 400, "message": IMAGE}},
    {"when": "^bait: allow", "calls": [{"name": "refund", "arguments": {"parcel": f"\u202e{IMAGE}", "euros": 5}}]},
    {
        "when": "^bait: act",
        "thinking": IMAGE,
        "text": IMAGE,
        "calls": [{"name": "echo", "arguments": {"value": ARGUMENTS}}, {"name": IMAGE, "arguments": ARGUMENTS}],
    },
    {"when": "^bait: act", "text": BAITED, "chunks": 100, "delay": 0.01},
    {
        "when": "(?i)parcel",
        "thinking": "They want to know where it is. I have a tool for that.",
        "text": "Let me look.",
        "calls": [{"name": "track", "arguments": {"parcel": "AB-1"}}],
        "usage": {"input_tokens": 1200, "output_tokens": 30},
    },
    {
        "when": "(?i)parcel",
        "text": "It is in Cologne.",
        "chunks": 3,
        "usage": {"input_tokens": 1300, "output_tokens": 6, "cached_tokens": 1200},
    },
    {"when": "(?i)refund", "calls": [{"name": "refund", "arguments": {"parcel": "AB-1", "euros": 5}}]},
    {"when": "(?i)refund", "text": "That is settled."},
    {
        "when": "(?i)count",
        "text": f"{COUNTED}five six ",
        "chunks": 6,
        "delay": 0.1,
        "stall": 600,
        "stall_after": 4,
    },
    {"when": "(?i)recite", "text": RECITED, "chunks": 300, "delay": 0.02},
    {"when": "(?i)markdown", "text": WRITTEN, "chunks": 20, "delay": 0.01},
    {"when": "(?i)wrong", "fail": {"status": 400, "message": "no such thing"}},
    {"text": "Good morning."},
]
# Each answer is given once: a turn fails, and when it is tried again it does not.
MOODY: list[dict[str, Any]] = [{"fail": {"status": 400, "message": "not today"}}, {"text": "Now it works."}] * 50


def write_scripts(folder: Path) -> None:
    """Write the scripts where `desk.py` looks for them."""
    _write(folder / "script.jsonl", [{"by": "step"}, *DESK])
    _write(folder / "moody.jsonl", MOODY)


def _write(file: Path, entries: list[dict[str, Any]]) -> None:
    file.write_text("\n".join(map(json.dumps, entries)), "utf-8")
