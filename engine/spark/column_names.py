"""Names of columns in texts: of options, and for Spark.

    "user, amount"  "`a,b`, `c``d`"    names with a comma or a backtick, or blanks at an end, stand between backticks

Held by: tests/spark/test_column_names.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.errors import PlanError

_NAME: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]*[^,`\s]))\s*(?:,|\Z)|\s*(?:,|\Z)")


def listed_names(what: str, text: str) -> tuple[str, ...]:
    """Return the names that a text lists, apart by commas; PlanError for one that stands there twice.

    what: the option that has the text.
    """
    names: list[str] = []
    position = 0
    while position < len(text):
        found = _NAME.match(text, position)
        if found is None:
            raise PlanError(f"{what}: {text!r}: a name with a comma or a backtick stands between backticks: `a,b`")
        position = found.end()
        name = found[1].replace("``", "`") if found[1] else found[2]
        if name in names:
            raise PlanError(f"{what}: column {name!r} is listed twice")
        if name:
            names.append(name)
    return tuple(names)


def column_of(name: str) -> Column:
    """Return a column of Spark by its name, whatever characters that has."""
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def columns_of(names: Sequence[str]) -> list[Column]:
    """Return several."""
    return [column_of(name) for name in names]
