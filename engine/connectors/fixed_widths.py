"""Types of text whose columns have fixed widths, inferred as those of CSV are, from a sample of its lines.

    inferred_types(source, spans, nulls, infer_rows) -> [int64, string, date32, ...]      a type for each span

The sample is the begin of the first file, those of some others, and blocks from all over the files; or so many first
lines as are asked for. Its values go to the inference of CSV as records (``engine.csv.inference``), so that 007 stays
text here, too. So do times of day.

Held by: tests/api/test_fixed_widths.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

import pyarrow as pa

from engine.choices import TextCompression
from engine.connectors.text_lines import lines_of
from engine.connectors.text_source import spread_blocks
from engine.csv.dialect import BYTE_ORDER_MARK, CsvDialect
from engine.csv.inference import infer_file_schema
from engine.csv.sample import HEAD_BYTES, Head
from engine.errors import ConfigurationError, DataError
from engine.files.compression import codec_of, heads, open_text, text_sizes
from engine.graph.source_spec import CsvSource, TextSource
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.storage.store_options import StorageOptions

_CALL: Final = "read_fwf"
#: mark between the values of a record, which no text has
_MARK: Final = "\x1f"
#: characters at which a record would break
_BREAKS: Final = f"[{_MARK}\r]"
_BEGIN_BYTES: Final = 64 << 10
_BEGINS: Final = 32


class FwfOptions(TypedDict, total=False):
    """Options of ``read_fwf`` behind the usual ones."""

    infer_rows: int | None
    encoding: str | None
    compression: TextCompression | None
    storage_options: StorageOptions


def check_infer_rows(infer_rows: int | None) -> None:
    """Raise ConfigurationError for what is no number of rows."""
    is_number = isinstance(infer_rows, int) and not isinstance(infer_rows, bool) and infer_rows >= 0
    if infer_rows is not None and not is_number:
        raise ConfigurationError(f"{_CALL}: infer_rows={infer_rows!r}: must be a number of rows, 0 for texts alone")


def inferred_types(
    source: TextSource, spans: Sequence[tuple[int, int | None]], nulls: Sequence[str], infer_rows: int | None
) -> list[pa.DataType]:
    """Return the types of columns, each the characters of a span. Raises: ConfigurationError, DataError."""
    lines = pa.chunked_array([_lines(source, block) for block in _blocks(source, infer_rows)], pa.string())
    lines = lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
    lines = lines if infer_rows is None else lines[:infer_rows]
    if not len(lines):
        return [pa.string()] * len(spans)
    columns = [
        pc.replace_substring_regex(pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(lines, begin, end)), _BREAKS, " ")
        for begin, end in spans
    ]
    records = pc.binary_join_element_wise(*columns, scalar_of(_MARK))
    body = "".join(f"{record}\n" for record in records.to_pylist()).encode()
    spec = CsvSource(
        source.paths[:1], (), b"", (), delimiter=_MARK, quote="", null_values=("", *nulls), on_bad_row="fail"
    )
    head = Head(source.paths[0], body, 0, is_whole=True)
    schema, _, _ = infer_file_schema(head, spec, CsvDialect.of(_MARK, None), _CALL)
    # A text is not cast to a time of day.
    return [pa.string() if pa.types.is_time(each) else each for each in schema.types]


def _blocks(source: TextSource, infer_rows: int | None) -> list[bytes]:
    """Return lines of the files, those of begins without the lines that are passed over."""
    paths, codec = source.paths, source.compression
    if infer_rows is not None:
        with open_text(paths[0], codec_of(paths[0], codec)) as file:
            text = b""
            while text.count(b"\n") < infer_rows + source.skip_rows and (piece := file.read(HEAD_BYTES)):
                text += piece
        return [_behind(text, source.skip_rows, is_whole=True)]
    (first,) = heads(paths[:1], codec, HEAD_BYTES, 1)
    others = heads(paths[1:], codec, _BEGIN_BYTES, _BEGINS - 1) if paths[1:] else []
    found = [_behind(first, source.skip_rows, is_whole=len(first) < HEAD_BYTES)]
    found += [_behind(each, source.skip_rows, is_whole=len(each) < _BEGIN_BYTES) for each in others]
    if any(codec_of(path, codec) for path in paths) or len(first) < HEAD_BYTES:
        return found
    return [*found, *spread_blocks(paths, text_sizes(paths, codec).sizes)[1:]]


def _behind(text: bytes, skip_rows: int, *, is_whole: bool) -> bytes:
    """Return the whole lines behind the mark of the encoding, and behind the first lines."""
    text = text if is_whole else text[: text.rfind(b"\n") + 1]
    parts = text.removeprefix(BYTE_ORDER_MARK).split(b"\n", skip_rows)
    return parts[-1] if len(parts) > skip_rows else b""


def _lines(source: TextSource, block: bytes) -> pa.Array:
    try:
        return lines_of(block)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{_CALL}({source.paths[0]!r}): a line of the files is not UTF-8 ({error}); pass encoding='cp1252' or the"
            " one that they have"
        ) from None
