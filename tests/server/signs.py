"""Signs between a test and the tools of its program."""

import asyncio


class Signs:
    """What tools of the program let a test know, and wait for."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.go_on = asyncio.Event()
        self.runs = 0
