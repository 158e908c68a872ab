"""The page of rooms, made from the table of layers and the first lines of chapters. Pure but for reading them."""

from collections.abc import Sequence
from pathlib import Path

from docs.generators.mechanisms import first_line, header_of

_HEAD = """# The rooms

The engine is a set of packages and modules, called rooms, in layers. A room imports only from layers below its own;
rooms of one layer never import each other. `tests/tidy/layers.py` has the table, and a test reads the imports of every
`.py`, `.pyx` and `.pxd` file. This page is made from that table and from the headers of the rooms.

Two more rules have tests of their own: rooms of the JobManager never import pyarrow, and loops over records are in
`.pyx` files and run without the GIL.

Where to start reading: `engine/graph/plan.py`, then `engine/operators/batch_task.py`, then `engine/records/layout.py`.
[The map](map.md) lists the modules of each room with their tests.

| layer | room | what it is |
| --- | --- | --- |
"""


def _header(root: Path, room: str) -> str:
    package, module = root / "engine" / room / "__init__.py", root / "engine" / f"{room}.py"
    return first_line(header_of((package if package.is_file() else module).read_text(encoding="utf-8")))


def rooms_page(root: Path, layers: Sequence[Sequence[str]]) -> str:
    """Return the page: a row for each room, the highest layer first; ``ha`` imports nothing of the engine."""
    rows = [
        f"| {level} | `{room}` | {_header(root, room)} |"
        for level, rooms in reversed(list(enumerate(layers)))
        for room in rooms
    ]
    leaders = first_line(header_of((root / "ha" / "__init__.py").read_text(encoding="utf-8")))
    return _HEAD + "\n".join([*rows, f"| beside them | `ha` | {leaders} |", ""])
