"""`holdfast` with an eye on it: from SIGUSR2 on, at every few milliseconds of its CPU it is noted what it is at.

    sampled.py FILE COMMAND…

FILE gets, when it ends, as JSON for each function how often it was at work itself, and how often it or what it called.
"""

import atexit
import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY = 0.001  # seconds of CPU; kernels often take 0.004 instead
DEPTH = 3  # parts of a path

own: Counter[str] = Counter()
whole: Counter[str] = Counter()


def note(_: int, frame: FrameType | None) -> None:
    """Note what is being done."""
    functions = list[str]()
    while frame is not None:
        code = frame.f_code
        functions.append(f"{'/'.join(code.co_filename.split('/')[-DEPTH:])} {code.co_qualname}")
        frame = frame.f_back
    own[functions[0]] += 1
    whole.update(set(functions))


def begin(_: int, __: FrameType | None) -> None:
    """Note from now on."""
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)


def tell(file: Path) -> None:
    """Write down what was noted."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    file.write_text(json.dumps({"own": own, "whole": whole, "samples": own.total()}))


if __name__ == "__main__":
    path, *sys.argv[1:] = sys.argv[1:]
    signal.signal(signal.SIGPROF, note)
    signal.signal(signal.SIGUSR2, begin)
    atexit.register(tell, Path(path))
    runpy.run_module("holdfast.cli.main", run_name="__main__", alter_sys=True)
