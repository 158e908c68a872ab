"""The pages of all names of Polars, PySpark and pandas: what is written here for each, or why there is nothing.

    names_page("Polars") -> Markdown

Held by: tests/docs/test_names_pages.py
"""

from __future__ import annotations

from typing import Final

from engine.foreign_names import NAMES

#: path of the page of each library
PAGES: Final = {library: f"coming-from/names-{library.lower()}.md" for library in NAMES}
_HEAD: Final = """# Every name of {library}

All public names of {parts}, and what is written here. A test runs each piece of code below, and looks for names of
{library} that are missing.

`x` and `y` are columns, such as `col("x")`; `ds` and `other` are data sets, `env` is their environment, and `f` is a
function of your own. Texts in the place of a column are names of columns. The page of [{library}]({page}) has what is
used most, and [traps](traps.md) has the names that mean something else.

"""
_MODULES: Final = {"functions": "pyspark.sql.functions", "selectors": "polars.selectors", "groupby": "groupby(...)"}


def names_page(library: str) -> str:
    """Return the page of a library, in Markdown."""
    parts = NAMES[library]
    shown = {part: _MODULES.get(part, part) for part in parts}
    head = _HEAD.format(
        library=library, parts=", ".join(f"`{part}`" for part in shown.values()), page=f"{library.lower()}.md"
    )
    lines = [head]
    for part, answers in parts.items():
        lines += [f"## `{shown[part]}`", "", "| name | here |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(answer)} |" for name, answer in sorted(answers.items(), key=_by_letters)]
        lines.append("")
    return "\n".join(lines)


def _by_letters(row: tuple[str, str]) -> tuple[str, str]:
    return row[0].lower(), row[0]


def _cell(answer: str) -> str:
    """Return an answer as a cell; a reason stands behind a dash."""
    text = answer.removeprefix("no: ").replace("|", "\\|")
    return f"– {text}" if answer.startswith("no: ") else text
