"""CSV dialect: delimiter and quote, checked once, and Arrow's options for them.

Held by: tests/csv/test_source.py
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.csv as pacsv

from engine.errors import ConfigurationError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class CsvDialect:
    """Delimiter and quote as bytes; ``quote`` -1 when nothing is quoted."""

    delimiter: int
    quote: int

    @staticmethod
    def of(delimiter: str, quote: str | None) -> CsvDialect:
        """Return the dialect of two characters (``quote`` "" or None: no quoting), or raise ConfigurationError."""
        for name, character in (("delimiter", delimiter), ("quote", quote or '"')):
            if len(character) != 1 or not character.isascii() or character in "\n\r\0":
                raise ConfigurationError(f"{name}={character!r}: must be one ASCII character, no line end")
        if delimiter == quote:
            raise ConfigurationError(f"delimiter and quote are both {delimiter!r}")
        return CsvDialect(ord(delimiter), ord(quote) if quote else -1)

    def parse_options(self, column_count: int) -> pacsv.ParseOptions:
        """Return Arrow's parse options. With one column an empty line is an empty field, else it is nothing."""
        return pacsv.ParseOptions(
            delimiter=chr(self.delimiter),
            quote_char=chr(self.quote) if self.quote >= 0 else False,
            double_quote=True,
            newlines_in_values=self.quote >= 0,
            ignore_empty_lines=column_count != 1,
        )
