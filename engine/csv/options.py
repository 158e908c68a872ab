"""CsvOptions: how a CSV file is written and what becomes of malformed records, as ``read_csv`` takes it from users.

Held by: tests/csv/test_source.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from engine.csv.written_dates import WrittenDates
from engine.csv.written_numbers import WrittenNumbers
from engine.errors import ConfigurationError
from engine.files.paths import PathLike
from engine.storage.store_options import StorageOptions

if TYPE_CHECKING:
    from engine.choices import RaggedRows, TextCompression

#: texts that are true and false in any case; 1 and 0 beside them are no truths
TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")
ON_BAD_ROW = ("fail", "skip")
RAGGED_ROWS = ("fail", "fill", "cut", "fit")


class CsvReadOptions(TypedDict, total=False):
    """Options of ``read_csv`` behind the usual ones, of the file (see ``CsvOptions``) and of any source of files."""

    encoding: str | None
    bad_rows_path: PathLike | None
    compression: TextCompression | None
    decimal: str
    thousands: str | None
    skip_rows: int
    comment: str | None
    date_format: str | Mapping[str, str] | None
    true_values: str | Sequence[str]
    false_values: str | Sequence[str]
    ragged_rows: RaggedRows
    infer_rows: int | None
    partitioning: Any
    file_name_column: str | None
    storage_options: StorageOptions
    rate_limit: float | None


def check_on_bad_row(value: str) -> None:
    """Raise ConfigurationError for what is no way to treat a malformed row."""
    if value not in ON_BAD_ROW:
        raise ConfigurationError(f"on_bad_row={value!r}: choose one of {', '.join(ON_BAD_ROW)}")


@dataclass(frozen=True)
class CsvOptions:
    """Options of one source; ConfigurationError for those that mean nothing."""

    header: bool = False
    delimiter: str = ","
    #: None: quotes mean nothing
    quote: str | None = '"'
    #: texts that are null, of all columns or by column; those that are not named have the empty field
    null_values: str | Sequence[str] | Mapping[str, str | Sequence[str]] = ("",)
    on_bad_row: str = "fail"
    #: None: UTF-8
    encoding: str | None = None
    bad_rows_path: PathLike | None = None
    #: None: by the ending of each file
    compression: str | None = None
    #: decimal mark, as in ``WrittenNumbers``
    decimal: str = "."
    thousands: str | None = None
    #: lines of each file that are passed over, before the header
    skip_rows: int = 0
    #: prefix of lines that are ignored; None: none
    comment: str | None = None
    #: formats of strptime, of all texts that are of it, or by column
    date_format: str | Mapping[str, str] | None = None

    #: texts that are true and false, beside true and false
    true_values: str | Sequence[str] = ()
    false_values: str | Sequence[str] = ()
    #: treatment of records with too few or too many fields: "fail" as malformed ones, "fill" the missing ones with
    #: nulls, "cut" those beyond the last column, or "fit": both
    ragged_rows: str = "fail"
    #: first rows from which types are inferred, 0: all columns are texts; None: a sample
    infer_rows: int | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        if not isinstance(self.header, bool):
            raise ConfigurationError(f"header={self.header!r}: choose True (the first record has names) or False")
        check_on_bad_row(self.on_bad_row)
        WrittenNumbers(self.decimal, self.thousands)
        if self.bad_rows_path is not None and self.on_bad_row != "skip":
            raise ConfigurationError(f"bad_rows_path={os.fspath(self.bad_rows_path)!r}: needs on_bad_row='skip'")
        if isinstance(self.skip_rows, bool) or not isinstance(self.skip_rows, int) or self.skip_rows < 0:
            raise ConfigurationError(f"skip_rows={self.skip_rows!r}: must be a number of lines, 0 or more")
        if self.ragged_rows not in RAGGED_ROWS:
            raise ConfigurationError(f"ragged_rows={self.ragged_rows!r}: choose one of {', '.join(RAGGED_ROWS)}")
        rows = self.infer_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 0):
            raise ConfigurationError(f"infer_rows={rows!r}: must be a number of rows, 0 for texts alone")
        self._check_comment()
        self.truths()
        self.nulls_of_all()
        self.nulls_by_column()
        if not isinstance(self.date_format, str | Mapping | None):
            raise ConfigurationError(f"date_format={self.date_format!r}: must be a format, or formats by column")
        WrittenDates(self.formats_by_column(), self.format_of_all())

    def _check_comment(self) -> None:
        mark = self.comment
        if mark is None:
            return
        if not isinstance(mark, str) or not mark or not mark.isascii() or any(each in mark for each in "\r\n\0"):
            raise ConfigurationError(f"comment={mark!r}: must be ASCII characters without a line end, such as '#'")
        if mark[0] in (self.delimiter, self.quote):
            raise ConfigurationError(f"comment={mark!r} begins as a record does, with the delimiter or the quote")

    def truths(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the texts that are true and false, beside the usual ones."""
        found = _texts(self.true_values, "true_values"), _texts(self.false_values, "false_values")
        both = sorted({*found[0], *TRUE, "1"} & {*found[1], *FALSE, "0"})
        if both:
            raise ConfigurationError(f"true_values= and false_values= both have {both[0]!r}; leave it out of one")
        return found

    def nulls_of_all(self) -> tuple[str, ...]:
        """Return the texts that are null in columns for which nothing else is said."""
        if isinstance(self.null_values, Mapping):
            return ("",)
        return _texts(self.null_values, "null_values")

    def nulls_by_column(self) -> dict[str, tuple[str, ...]]:
        """Return the texts that are null in columns of their own."""
        if not isinstance(self.null_values, Mapping):
            return {}
        return {name: _texts(each, f"null_values[{name!r}]") for name, each in self.null_values.items()}

    def format_of_all(self) -> str:
        """Return the format of all dates and times, "" for none."""
        return self.date_format if isinstance(self.date_format, str) else ""

    def formats_by_column(self) -> dict[str, str]:
        """Return the formats of columns of their own."""
        return dict(self.date_format) if isinstance(self.date_format, Mapping) else {}


def _texts(value: str | Sequence[str], what: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else (None,)
    if not all(isinstance(each, str) for each in texts):
        raise ConfigurationError(f"{what}={value!r}: must be a string, or a list of strings")
    return texts
