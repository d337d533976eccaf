"""Ends a process that runs code of apps."""

import logging
import os
import sys
import threading
from contextlib import suppress

LEAVING = 3.0  # seconds for the process to exit by itself, after all work is given back

log = logging.getLogger(__name__)


def leave() -> None:
    """End the process soon, even if a handler or a tool has a task or a thread that never ends."""

    def end() -> None:
        try:
            log.warning("a skill or a tool does not end, and the process ends without it")
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
        finally:
            os._exit(0)

    timer = threading.Timer(LEAVING, end)
    timer.daemon = True
    timer.start()
