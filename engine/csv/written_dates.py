"""Dates and times in a format of the file's own: ``read_csv(..., date_format={"day": "%d.%m.%Y"})``.

    dates = WrittenDates({"day": "%d.%m.%Y"})            ConfigurationError for what is no format
    dates.are_texts(name, type)                          whether a column is read as text, for ``of_texts``
    dates.of_texts(name, array, type) -> array           pa.ArrowInvalid where one is not of the format
    dates.inferred(name, array) -> type                  None: no format, or some text is not of it

A format with hours, minutes or seconds makes timestamp[us], without a day time64[us], with %z a moment of UTC; any
other date32. Formats are
those of ``.str.to_date`` and ``.str.to_timestamp``. One format for all columns goes for those that a schema has as
dates and times, else for columns of texts that are all of it.

``moment_type(texts)``: the type of texts that all are dates or timestamps in ISO 8601: date32, or timestamps of
seconds, of microseconds, and of nanoseconds where one has more than six digits of a second.
``has_mixed_offsets(texts)``: of timestamps in ISO 8601 some have an offset from UTC and some have none: they are no
moments together, and Arrow infers text.

Held by: tests/integration/test_csv_options.py
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from engine.errors import ConfigurationError
from engine.expressions.binding import NoMatchError, Operand
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: directives of a time of day; %% is none
_TIME_DIRECTIVES: Final = "HIMSfpTRXcrLkls"
#: directives of a format without a day
_OF_A_DAY: Final = frozenset("HIMSfpPTRXrklnt")
_OFFSET: Final = "z"
#: types in the order in which they are tried; those of moments with a fraction have the years of microseconds
_MOMENT_TYPES: Final = (
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("s", "UTC"),
    *(_OF_FRACTIONS := (pa.timestamp("us"), pa.timestamp("us", "UTC"))),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ]|$)")
_MOMENT: Final = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:?\d{2}){0,2}([.,]\d+)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"
_WITH_OFFSET: Final = r"(Z|[T ].*[+-]\d{2}(:?\d{2})?)$"


class WrittenDates:
    """The formats of dates and times in a file; see the module's text."""

    def __init__(self, by_column: Mapping[str, str], of_all: str = "") -> None:
        self._parsers = {name: _Parser(text, f"date_format[{name!r}]") for name, text in by_column.items()}
        self._all = _Parser(of_all, "date_format") if of_all else None

    @property
    def names(self) -> list[str]:
        """Columns that have a format of their own."""
        return list(self._parsers)

    def are_texts(self, name: str, data_type: pa.DataType) -> bool:
        """Return whether a column of a type is read as text."""
        return self._of(name) is not None and (name in self._parsers or pa.types.is_temporal(data_type))

    def of_texts(self, name: str, texts: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
        """Return texts as dates or times of a type; pa.ArrowInvalid where one is not of the format."""
        parser = self._of(name)
        assert parser is not None, "a column without a format"
        return parser.parse(texts, data_type)

    def inferred(self, name: str, texts: pa.ChunkedArray) -> pa.DataType | None:
        """Return the type that texts have by their format; None: they have none."""
        parser = self._of(name)
        if parser is None or texts.null_count == len(texts):
            return None
        try:
            parser.parse(texts, parser.type)
        except pa.ArrowInvalid:
            return None
        return parser.type

    def format_of(self, name: str) -> str:
        """Return the format of a column, "" for none."""
        parser = self._of(name)
        return "" if parser is None else parser.text

    def _of(self, name: str) -> _Parser | None:
        return self._parsers.get(name, self._all)


class _Parser:
    """Reads texts of one format."""

    def __init__(self, text: Any, what: str) -> None:
        if not isinstance(text, str):
            raise ConfigurationError(f"{what}={text!r}: must be a format, such as '%d.%m.%Y'")
        self.text = text
        directives = text.replace("%%", "").split("%")[1:]
        letters = {each.lstrip("-_0^#:")[:1] for each in directives}
        has_offset = _OFFSET in letters
        self._is_moment = has_offset or not letters.isdisjoint(_TIME_DIRECTIVES)
        #: type that the kernel makes, and that of the column
        self._made = pa.timestamp("us", "UTC" if has_offset else None) if self._is_moment else pa.date32()
        self.type = pa.time64("us") if self._is_moment and letters <= _OF_A_DAY else self._made
        try:
            self._kernel  # noqa: B018 - what is no format is told now
        except NoMatchError as error:
            raise ConfigurationError(f"{what}={text!r}: {error}") from None

    @cached_property
    def _kernel(self) -> Callable[[pa.Array], pa.Array]:
        from engine.expressions.time_texts import parsing

        bind = parsing("timestamp" if self._is_moment else "date")
        kernel: Callable[[pa.Array], pa.Array] = bind(
            [Operand(pa.string(), lambda _: None)], {"format": self.text, "strict": True}
        ).kernel
        return kernel

    def parse(self, texts: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
        found = pa.chunked_array([self._kernel(chunk) for chunk in texts.chunks], self._made)
        if found.type == data_type:
            return found
        try:
            return pc.cast(found, data_type)
        except pa.ArrowNotImplementedError:
            raise ConfigurationError(
                f"date_format={self.text!r} makes {self._made}, which cannot be {data_type}"
            ) from None


def moment_type(texts: pa.ChunkedArray) -> pa.DataType | None:
    """Return the type that texts have, if all of them are dates or timestamps; or None."""
    return _first_type(texts, _MOMENT_TYPES)


def fraction_type(texts: pa.ChunkedArray) -> pa.DataType | None:
    """Return the type of timestamps with up to six digits of a second, of any year; or None."""
    return _first_type(texts, _OF_FRACTIONS)


def _first_type(texts: pa.ChunkedArray, data_types: Sequence[pa.DataType]) -> pa.DataType | None:
    first = next((text.as_py() for text in texts if text.is_valid), None)
    if first is None or _DAY.match(first) is None:
        return None
    for data_type in data_types:
        with contextlib.suppress(pa.ArrowInvalid):
            pc.cast(texts, data_type)
            return data_type
    return None


def has_mixed_offsets(texts: pa.ChunkedArray) -> bool:
    """Return whether texts are all timestamps, and some have an offset from UTC and some have none."""
    if not pc.all(pc.match_substring_regex(texts, pattern=_MOMENT)).as_py():
        return False
    with_offset = pc.match_substring_regex(texts, pattern=_WITH_OFFSET)
    return bool(pc.any(with_offset).as_py() and pc.any(pc.equal(with_offset, scalar_of(False))).as_py())
