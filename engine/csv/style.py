"""CsvStyle: the form of values in CSV that is written, as ``write_csv`` takes it from users.

    style = checked_style({"decimal": ",", "quoting": "all"}, ";")     ConfigurationError for what means nothing
    style_of(SinkSpec("csv", ..., options=style.text)) -> style        what tasks and rows that are added read

    null_text         None          ``""``, the empty field; a value of the same text is quoted
    decimal           12,5          of doubles, floats and decimals
    quoting           minimal       what has the delimiter, a quote or a line end; the empty text; the text of nulls
                      all           every value; non_numeric: every value that is no number
                      none          nothing; a value that needs quotes fails the job
    date_format       "%d.%m.%Y"    of dates, by the directives of ``.dt.strftime``
    timestamp_format  "%d.%m.%Y %H:%M"
    encoding          "cp1252"      by Python's name; UTF-8 without it

A null is never in quotes, so that it reads back as one.

Held by: tests/csv/test_style.py
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypedDict

import msgspec
import pyarrow as pa

from engine.csv.encoding import checked_encoding
from engine.errors import ConfigurationError
from engine.expressions.binding import NoMatchError, Operand
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    from engine.choices import CsvQuoting, DecimalMark

QUOTING: Final = ("minimal", "all", "non_numeric", "none")
_MARKS: Final = ".,"
#: UTF-8 behind a byte order mark, which Excel looks for
_WITH_MARK: Final = "utf-8-sig"


class CsvWriteOptions(TypedDict, total=False):
    """Options of ``write_csv`` about the form of values; each may be left out."""

    null_text: str
    decimal: DecimalMark
    quoting: CsvQuoting
    date_format: str | None
    timestamp_format: str | None
    encoding: str | None


class CsvStyle(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """See the module's text; "" stands for what is left out."""

    null_text: str = ""
    decimal: str = "."
    quoting: str = "minimal"
    date_format: str = ""
    timestamp_format: str = ""
    encoding: str = ""

    @property
    def text(self) -> str:
        """The style as JSON, "" for the usual one."""
        return "" if self == CsvStyle() else msgspec.json.encode(self).decode()

    @cached_property
    def _formats(self) -> list[tuple[Callable[[Any], bool], Callable[[pa.Array], pa.Array]]]:
        kinds = ((pa.types.is_date, "date_format"), (pa.types.is_timestamp, "timestamp_format"))
        return [(is_of, _writer(getattr(self, name), name)) for is_of, name in kinds if getattr(self, name)]

    def moments(self, column: pa.Array) -> pa.Array | None:
        """Return the texts of dates or timestamps that have a format; None for other columns."""
        return next((write(column) for is_of, write in self._formats if is_of(column.type)), None)


def _writer(written: str, name: str) -> Callable[[pa.Array], pa.Array]:
    """Return the function from dates or timestamps to texts. Raises: ConfigurationError."""
    from engine.expressions.time_texts import bind_strftime

    def texts(moments: pa.Array) -> pa.Array:
        if pa.types.is_date64(moments.type):
            moments = moments.cast(pa.date32())
        found: pa.Array = bind_strftime([Operand(moments.type, lambda _: None)], {"format": written}).kernel(moments)
        return found

    try:
        texts(pa.nulls(0, pa.date32() if name == "date_format" else pa.timestamp("us")))
    except NoMatchError as error:
        raise ConfigurationError(f"write_csv: {name}={written!r}: {error}") from None
    return texts


def style_of(spec: SinkSpec) -> CsvStyle:
    """Return the style of a sink of CSV."""
    return msgspec.json.decode(spec.options, type=CsvStyle) if spec.options else CsvStyle()


def checked_style(options: CsvWriteOptions, delimiter: str) -> CsvStyle:
    """Return the style that options say. Raises: ConfigurationError."""
    for name, value in options.items():
        is_left_out = value is None and name in ("date_format", "timestamp_format", "encoding")
        if not isinstance(value, str) and not is_left_out:
            raise ConfigurationError(f"write_csv: {name}={value!r}: must be a text")
    style = CsvStyle(**{name: str(value or "") for name, value in options.items()})
    if style.decimal not in tuple(_MARKS):
        raise ConfigurationError(f"write_csv: decimal={style.decimal!r}: choose '.' or ','")
    if style.decimal == delimiter:
        raise ConfigurationError(
            f"write_csv: decimal and delimiter are both {delimiter!r}; pass delimiter=';' beside decimal=','"
        )
    if style.quoting not in QUOTING:
        raise ConfigurationError(f"write_csv: quoting={style.quoting!r}: choose one of {', '.join(QUOTING)}")
    if any(mark in style.null_text for mark in (delimiter, '"', "\n", "\r", "\0")):
        raise ConfigurationError(
            f"write_csv: null_text={style.null_text!r} would need quotes, and what is in quotes is no null; choose a"
            " text without the delimiter, quotes and line ends"
        )
    style._formats  # noqa: B018 - what is no format is told now
    if options.get("encoding") is None:
        return style
    name = checked_encoding(style.encoding, delimiter, '"').name
    if codecs.lookup(style.encoding).name == _WITH_MARK:
        name = _WITH_MARK
    elif name:
        try:
            codecs.getincrementalencoder(name)().encode(f'{delimiter}"\n0')
        except UnicodeError:
            raise ConfigurationError(
                f"write_csv: encoding={style.encoding!r} has no delimiter, quote or line end; choose another, such as"
                " 'utf-8' or 'cp1252'"
            ) from None
    return msgspec.structs.replace(style, encoding=name)
