"""CsvOptions: how a CSV file is written and what becomes of malformed records, as ``read_csv`` takes it from users.

Held by: tests/csv/test_source.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from engine.csv.written_numbers import WrittenNumbers
from engine.errors import ConfigurationError
from engine.files.paths import PathLike

ON_BAD_ROW = ("fail", "skip")


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
    null_values: Sequence[str] = ("",)
    on_bad_row: str = "fail"
    #: None: UTF-8
    encoding: str | None = None
    bad_rows_path: PathLike | None = None
    #: None: by the ending of each file
    compression: str | None = None
    #: as ``WrittenNumbers`` takes them
    decimal: str = "."
    thousands: str | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        check_on_bad_row(self.on_bad_row)
        WrittenNumbers(self.decimal, self.thousands)
        if self.bad_rows_path is not None and self.on_bad_row != "skip":
            raise ConfigurationError(f"bad_rows_path={os.fspath(self.bad_rows_path)!r}: needs on_bad_row='skip'")
        if isinstance(self.null_values, str):
            raise ConfigurationError(f"null_values={self.null_values!r}: must be a list of strings")
