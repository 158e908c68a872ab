"""Bad rows of an export, with reasons: those that do not parse, and those for which a check does not hold.

    checks        SQL conditions on the columns of a row: "amount > 0", "kind IN ('a', 'b')"
    not_null      columns that must have a value
    unique        columns, alone or several as one key, whose values occur once; all rows of a value that occurs twice
                  are bad, and of rows that are added those whose value is there already. Rows that are bad for a
                  reason before are in no data set and take no key from others.
    references    column=PATH:COLUMN, a value that must be in a column of another data set; null is left alone

The first reason that applies is the row's. Checks of one row cost nothing but themselves, ``unique`` and ``references``
a shuffle each.

Held by: tests/spark/test_export_checks.py
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812

from engine.connectors.records_manifest import read_manifest
from engine.errors import PlanError
from engine.spark.column_names import column_of, columns_of
from engine.spark.failures import first_line
from engine.spark.file_urls import url_to_read
from engine.storage.file_systems import LOCAL, is_file

#: prefix of internal columns; drawn for each process, so that no column of the data has it
_OWN: Final = f"__drey_{uuid.uuid4().hex[:12]}_"
#: column with the text of a row of CSV or JSON that does not parse
CORRUPT: Final = f"{_OWN}corrupt"
#: column with the file of a row, if any
SOURCE: Final = f"{_OWN}source"
#: column with the reason why a row is bad; null for good ones
REASON: Final = f"{_OWN}reason"
#: columns that do not belong to the row
MARKS: Final = frozenset({CORRUPT, SOURCE, REASON})
DOES_NOT_PARSE: Final = "does not parse"
_KEY: Final = f"{_OWN}key"
_UNKNOWN_COLUMN = re.compile(r" with name (`.+?`) cannot be resolved")


@dataclass(frozen=True)
class Checks:
    """Conditions that rows must meet; see above. ``unique``: keys, each of one column or several."""

    conditions: Sequence[str] = ()
    not_null: Sequence[str] = ()
    unique: Sequence[Sequence[str]] = ()
    references: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The reasons there may be, in the order in which they apply."""
        return [
            DOES_NOT_PARSE,
            *(f"no value: {name}" for name in self.not_null),
            *(f"check failed: {text}" for text in self.conditions),
            *(f"not in the other data set: {text}" for text in self.references),
            *(f"not unique: {', '.join(names)}" for names in self.unique),
        ]

    def __bool__(self) -> bool:
        return bool(self.conditions or self.not_null or self.unique or self.references)


def clean(data: DataFrame, checks: Checks, *, trim: bool, there: DataFrame | None = None) -> DataFrame:
    """Return the data trimmed; where rows can be bad, with a column that says why, and is null for good ones.

    there: rows to which these are added: their keys are taken.

    Raises:
        PlanError: a check that Spark does not understand, a column that is not there.
    """
    fields = [field for field in data.schema.fields if field.name not in MARKS]
    columns = [column_of(field.name) for field in fields]
    if trim:
        columns = [
            F.trim(column).alias(field.name) if isinstance(field.dataType, T.StringType) else column
            for field, column in zip(fields, columns, strict=True)
        ]
    marker, source = ([F.col(mark)] if mark in data.columns else [] for mark in (CORRUPT, SOURCE))
    if not marker and not checks:
        return data.select(*columns) if trim or source else data
    cleaned = data.select(*columns, *marker, *source)
    names = [field.name for field in fields]
    found: list[tuple[str, Column]] = []
    if marker:
        found.append((DOES_NOT_PARSE, marker[0].isNotNull()))
    found.extend((f"no value: {name}", _known(names, name).isNull()) for name in checks.not_null)
    for text in checks.conditions:
        _try_check(cleaned, text)
        found.append((f"check failed: {text}", ~F.coalesce(F.expr(text), F.lit(False))))
    for number, text in enumerate(checks.references):
        cleaned, is_there = _with_reference(cleaned, names, text, f"{_OWN}found{number}")
        found.append((f"not in the other data set: {text}", ~is_there))
    for number, key in enumerate(checks.unique):
        columns = [_known(names, name) for name in key]
        has_value = reduce(and_, (column.isNotNull() for column in columns))
        rows = F.count(F.when(_first_reason(found).isNull(), 1)).over(Window.partitionBy(*columns))
        # a column of its own: the next key counts the rows that this one leaves
        cleaned = cleaned.withColumn(f"{_OWN}rows{number}", rows)
        is_double = F.col(f"{_OWN}rows{number}") > 1
        if there is not None:
            cleaned, is_taken = _with_keys(cleaned, columns, there.select(*columns_of(key)), f"{_OWN}taken{number}")
            is_double = is_double | is_taken
        found.append((f"not unique: {', '.join(key)}", has_value & is_double))
    return cleaned.select(*columns_of(names), *source, _first_reason(found).alias(REASON))


def _first_reason(found: Sequence[tuple[str, Column]]) -> Column:
    """Return the first reason that applies to a row, null where none does."""
    reason = F.lit(None).cast("string")
    for why, is_bad in reversed(found):
        words = F.concat(F.lit(f"{why}: "), F.col(CORRUPT)) if why == DOES_NOT_PARSE else F.lit(why)
        reason = F.when(is_bad, words).otherwise(reason)
    return reason


class BadRows:
    """Counts rows that are bad, by reason, while the others are written.

    Args: marked: rows with a reason or null; reasons: in the order in which they apply.
    """

    def __init__(self, marked: DataFrame, reasons: Sequence[str]) -> None:
        self._marked = marked
        self._reasons = list(reasons)
        self._counts = [F.count(F.when(_is_for(name), 1)).alias(f"bad{at}") for at, name in enumerate(reasons)]
        self._seen = Observation()

    @property
    def others(self) -> DataFrame:
        """Rows that are not bad, to be written once."""
        seen = self._marked.observe(self._seen, *self._counts)
        return seen.where(F.col(REASON).isNull()).drop(REASON, SOURCE)

    def counts(self) -> dict[str, int]:
        """Return the number of rows there are of each reason that there is, when the others are written."""
        found: dict[str, int] = {}
        # Spark counts nothing on the way where it knows beforehand that no row is left.
        with suppress(Py4JError, PySparkException):
            found = self._seen.get
        if len(found) < len(self._counts):
            (row,) = self._marked.agg(*self._counts).collect()
            found = row.asDict()
        counts = {name: int(found[f"bad{at}"]) for at, name in enumerate(self._reasons)}
        return {name: count for name, count in counts.items() if count}


def _is_for(name: str) -> Column:
    """Return whether a row's reason is this one; that of a row which does not parse has its text behind it."""
    return F.col(REASON).startswith(name) if name == DOES_NOT_PARSE else F.col(REASON) == F.lit(name)


def _known(names: Sequence[str], name: str) -> Column:
    if name not in names:
        raise PlanError(f"check: no column {name!r}. There are: {', '.join(names)}")
    return column_of(name)


def _with_reference(data: DataFrame, names: Sequence[str], text: str, found: str) -> tuple[DataFrame, Column]:
    """Return the data beside whether the other data set has a row's value, and that as a column."""
    name, _, place = text.partition("=")
    path, _, other = place.rpartition(":")
    if not (name and path and other):
        raise PlanError(f"reference {text!r}: expected COLUMN=PATH:COLUMN, as in customer=records/customers:id")
    folder = Path(LOCAL.folders.resolved(path))
    if LOCAL.find(path) is None:
        raise PlanError(f"reference {text!r}: {path} does not exist")
    keys = data.sparkSession.read.parquet(*map(url_to_read, parts_of(folder) or [folder]))
    if other not in keys.columns:
        raise PlanError(f"reference {text!r}: {path} has no column {other!r}. There are: {', '.join(keys.columns)}")
    column = _known(names, name)
    joined, is_there = _with_keys(data, [column], keys.select(column_of(other)), found)
    return joined, column.isNull() | is_there


def _with_keys(data: DataFrame, columns: Sequence[Column], keys: DataFrame, found: str) -> tuple[DataFrame, Column]:
    """Return the data beside whether columns of a row are among keys, and that as a column; nulls never are."""
    names = [f"{_KEY}{found}{number}" for number in range(len(columns))]
    distinct = keys.toDF(*names).distinct().withColumn(found, F.lit(True))
    are_equal = reduce(and_, (column == F.col(name) for column, name in zip(columns, names, strict=True)))
    return data.join(distinct, are_equal, "left"), F.col(found).isNotNull()


def parts_of(folder: Path) -> list[Path]:
    """Return the parts of a record data set; none for other folders and files."""
    if not is_file(os.fspath(folder / "_manifest.json")):
        return []
    return [folder / file.name for file in read_manifest(folder).files]


def _try_check(data: DataFrame, check: str) -> None:
    """Raise PlanError where a check is no condition on the columns."""
    try:
        data.where(check).schema  # noqa: B018 - has Spark look at it
    except AnalysisException as error:
        raise PlanError(f"check {check!r}: {_why(error, data)}") from None


def _why(error: AnalysisException, data: DataFrame) -> str:
    """Return the reason why Spark rejects a condition; in this project's words where a column does not exist."""
    line = first_line(error)
    unknown = _UNKNOWN_COLUMN.search(line)
    if unknown is None:
        return line
    names = [name for name in data.columns if name not in MARKS]
    return f"no column {unknown[1].replace('`', '')!r}. There are: {', '.join(names)}"
