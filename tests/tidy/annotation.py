"""The compiler's annotation of native modules: which lines touch Python, and where they stand.

    scores(html)        line -> how much of its C code is calls of Python's C-API; 0: none at all
    stands(source)      line -> Stand: function, whether the GIL is held, loops around it

``cython -a`` colours a line by its score. What matters is not the colour but its place: a line of any colour costs
nothing once a batch, and everything once a row.
"""

import re
from dataclasses import dataclass
from html import unescape

_LINE = re.compile(r'class="cython line score-(\d+)"[^>]*>(.*?)</pre>', re.DOTALL)
_NUMBER = re.compile(r"\W*(\d+):")
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")


@dataclass(frozen=True)
class Stand:
    """Where a line stands."""

    function: str
    #: neither a ``nogil`` function nor below ``with nogil``; below ``with gil`` again
    holds_gil: bool
    #: the outermost ``with gil`` around it begins here, 0: none
    taken_at: int
    loops: int


def scores(html: str) -> dict[int, int]:
    """Return the score of each line of a module."""
    found = {}
    for score, body in _LINE.findall(html):
        number = _NUMBER.match(unescape(re.sub(r"<[^>]+>", "", body)))
        if number is not None:
            found[int(number[1])] = int(score)
    return found


def stands(source: str) -> dict[int, Stand]:
    """Return where each line of a module stands, by indentation."""
    found: dict[int, Stand] = {}
    blocks: list[tuple[int, str, Stand]] = []
    header, indent, depth, begun = "", 0, 0, 0
    for number, line in enumerate(source.splitlines(), 1):
        code = _STRING.sub("", line.split("#", 1)[0]).strip()
        if depth == 0 and code:
            indent, header, begun = len(line) - len(line.lstrip()), "", number
            while blocks and indent <= blocks[-1][0]:
                blocks.pop()
        header = f"{header} {code}".strip()
        depth = max(0, depth + sum(map(code.count, "([{")) - sum(map(code.count, ")]}")))
        found[number] = stand = blocks[-1][2] if blocks else Stand("", holds_gil=True, taken_at=0, loops=0)
        if depth == 0 and header.endswith(":"):
            inner = _inside(header, stand, begun)
            if inner is not None:
                blocks.append((indent, header, inner))
            header = ""
    return found


def _inside(header: str, stand: Stand, line: int) -> Stand | None:
    """Return where the body of a statement stands, None where it is as the statement."""
    if re.match(r"(cdef|def)\b(?! class| enum| struct)", header):
        name = re.search(r"(\w+)\(", header)
        is_free = re.search(r"\bnogil\s*:$", header) is not None
        return Stand(name[1] if name else "", holds_gil=not is_free, taken_at=0, loops=0)
    if re.match(r"with nogil\b", header):
        return Stand(stand.function, holds_gil=False, taken_at=0, loops=stand.loops)
    if re.match(r"with gil\b", header):
        return Stand(stand.function, holds_gil=True, taken_at=line, loops=stand.loops)
    if re.match(r"(for|while)\b", header):
        return Stand(stand.function, stand.holds_gil, stand.taken_at, stand.loops + 1)
    return None
