"""The pages of the documentation, and the blocks of code on them.

    <!-- not run: reason -->      before a block: it is read by nobody but people
    ```python                     blocks of a page run in order, in one namespace
    ```text  right behind it      is what it printed

README.md, CONTRIBUTING.md and CHANGELOG.md are pages too.
"""

import re
from pathlib import Path
from typing import NamedTuple

from docs.generators.example_pages import example_pages
from tests.tidy.imports import ROOT

FOLDER = ROOT / "docs" / "pages"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(FOLDER.rglob("*.md"))]
#: what generators write while the pages are built: they have no file to look into
GENERATED = {
    FOLDER / name
    for name in (
        "coming-from/traps.md",
        "coming-from/names-pandas.md",
        "coming-from/names-polars.md",
        "coming-from/names-pyspark.md",
        "reference/api.md",
        "reference/cli.md",
        "reference/configuration.md",
        "reference/errors.md",
        "reference/forms.md",
        "reference/functions.md",
        "reference/rest.md",
        "reference/sql.md",
        "reference/types.md",
        "reference/dialects.md",
        "reference/openapi.json",
        "how-it-works/map.md",
        "operating/skewed-job.html",
        "operating/skewed-job.svg",
        "how-it-works/rooms.md",
        "changelog.md",
        "contributing.md",
        *(f"examples/{name}.md" for name in example_pages()),
    )
}
_BLOCK = re.compile(
    r"^(?P<mark><!-- not run: (?P<reason>[^\n]+?) -->\n\n?)?^```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$"
    r"(?:\n\n?```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A block of code; ``line`` is its first one in the file."""

    language: str
    code: str
    line: int
    reason: str
    output: str | None


def blocks_of(text: str, language: str) -> list[Block]:
    """Return the blocks of a page in one language."""
    return [
        Block(
            found["language"],
            found["code"],
            text.count("\n", 0, found.start("code")) + 1,
            found["reason"] or "",
            found["output"],
        )
        for found in _BLOCK.finditer(text)
        if found["language"] == language
    ]


def without_code(text: str) -> str:
    """Return a page without what stands in blocks and between backquotes."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^```.*?^```$", "", text))


def anchors_of(path: Path) -> set[str]:
    """Return the anchors of a page: its headings, as the builder names them."""
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))):
        plain = re.sub(r"[^\w\s-]", "", re.sub(r"[`*]", "", heading)).strip().lower()
        found.add(re.sub(r"[\s-]+", "-", plain))
    return found


def relative(path: Path) -> str:
    """Return the name of a page."""
    return str(path.relative_to(ROOT))
