import asyncio
from typing import Final

TURNS: Final[int]

class LocalLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None: ...
