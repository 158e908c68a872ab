"""Comments and docstrings of sources, as text: what the rules of language read.

prose_of(tokens)      -> (line, text) of comments and docstrings; whole lines of comments that follow are one text
remarks_of(path)      -> Remark * : comments of fields (``#:``), and the first paragraphs of docstrings
"""

import bisect
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Remark(NamedTuple):
    """A comment of a field, or the first paragraph of a docstring."""

    kind: str
    line: int
    text: str
    #: code that follows a comment of a field, "" where a blank line or another comment does
    code: str = ""


def tokens_of(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a source of Python or Cython."""
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


#: comments, strings and brackets; Cython's sources have the same
_SAID = re.compile(
    r'''(?P<comment>\#[^\n]*)|(?P<string>[bfru]{0,2}(?:"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|'''
    r"""'''(?:\\.|[^\\])*?'''|'(?:\\.|[^'\\\n])*'))|[(\[{]|(?P<end>[)\]}])""",
    re.DOTALL | re.IGNORECASE,
)


def said_in(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield comments and strings alone, a tenth of the work; before a string what tells whether it begins a line."""
    begins = [0, *(match.end() for match in re.finditer("\n", text))]
    lines, depth = text.splitlines(keepends=True), 0
    for match in _SAID.finditer(text):
        number = bisect.bisect_right(begins, match.start())
        start = (number, match.start() - begins[number - 1])
        if match["comment"]:
            yield tokenize.TokenInfo(tokenize.COMMENT, match[0], start, start, lines[number - 1])
        elif match["string"]:
            is_continued = number > 1 and lines[number - 2].endswith("\\\n")
            is_first = not depth and not is_continued and not lines[number - 1][: start[1]].strip()
            yield tokenize.TokenInfo(tokenize.NEWLINE if is_first else tokenize.NAME, "", start, start, "")
            yield tokenize.TokenInfo(tokenize.STRING, match[0], start, start, lines[number - 1])
        else:
            depth += -1 if match["end"] else 1


def prose_of(tokens: Sequence[tokenize.TokenInfo]) -> list[tuple[int, str]]:
    """Return comments and docstrings with their first lines."""
    found: list[tuple[int, str]] = []
    before, last = tokenize.NEWLINE, -1
    for token in tokens:
        if token.type == tokenize.COMMENT:
            is_next = last == token.start[0] - 1 and token.line.lstrip().startswith("#")
            line, text = found.pop() if is_next else (token.start[0], "")
            found.append((line, f"{text} {token.string.lstrip('#: ')}"))
            last = token.start[0]
        elif token.type == tokenize.STRING and before in _STARTS:
            found.append((token.start[0], token.string))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
    return [(line, " ".join(text.split())) for line, text in found]


_STARTS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def remarks_of(text: str, tokens: Sequence[tokenize.TokenInfo]) -> Iterator[Remark]:
    """Yield the comments of fields and the first paragraphs of docstrings of a source."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#:") and not lines[number - 2].lstrip().startswith("#:"):
            yield _comment(lines, number)
    before = tokenize.NEWLINE
    for token in tokens:
        if token.type == tokenize.COMMENT and token.string.startswith("#:") and not token.line.lstrip().startswith("#"):
            yield Remark("comment", token.start[0], token.string[2:].strip(), token.line)
        elif token.type == tokenize.STRING and before in _STARTS and '"""' in token.string:
            paragraph = token.string.partition('"""')[2].removesuffix('"""').split("\n\n")[0]
            kind = "module" if token.start[1] == 0 and token.start[0] < 3 else "docstring"
            yield Remark(kind, token.start[0], " ".join(paragraph.split()))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def _comment(lines: Sequence[str], number: int) -> Remark:
    end, said = number - 1, []
    while end < len(lines) and lines[end].lstrip().startswith("#:"):
        said.append(lines[end].lstrip()[2:].strip())
        end += 1
    code = lines[end].strip() if end < len(lines) else ""
    return Remark("comment", number, " ".join(said), "" if code.startswith("#") else code)
