"""The malformed records of a CSV source as rows of their own: ``read_csv(..., on_bad_row="skip", bad_rows_path=...)``.

    data.csv ──┬─► CsvReader    rows, malformed records counted      ─► the program
               └─► CsvRejects   file, line, reason, record           ─► a CSV sink of the same job

Both read the same splits with the same parser, so what one leaves out the other has. It is a source and a sink like all
others: staged, published once when the job has finished, gone when it fails. The price is that the file is parsed twice
where rows are asked for.

Held by: tests/integration/test_bad_rows.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.csv.header import REST
from engine.csv.parse import UNCLOSED, unclosed_quote
from engine.csv.reader import CsvReader, count_lines
from engine.graph.source_spec import CsvSource, SourceSplit, SourceStatistics

REJECTS: Final = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("record", pa.string())]
)
_RECORD_MAX = 1 << 20


def rejects_source(spec: CsvSource, size_bytes: float) -> tuple[CsvSource, SourceStatistics]:
    """Return the source of the malformed records of a source."""
    rejects = msgspec.structs.replace(spec, is_rejects=True, bad_rows_path="", columns=tuple(REJECTS.names))
    return rejects, SourceStatistics(None, size_bytes, "malformed records")


class CsvRejects(CsvReader):
    """Reads splits of delimited text, and gives out what is malformed."""

    def __init__(self, spec: CsvSource, splits: Sequence[SourceSplit]) -> None:
        names = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc)).names
        columns = spec.named or tuple(name for name in names if name != REST)
        super().__init__(msgspec.structs.replace(spec, on_bad_row="skip", columns=columns), splits)
        self._rows: list[tuple[str, int, str, str]] = []
        #: file, position and the lines that end before it
        self._counted = ("", 0, 0)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each malformed record, in the order of the file."""
        yield from super().__iter__()
        yield from self._taken()

    def _parse(self, path: str, begin: int, data: memoryview, *, is_last: bool) -> Iterator[pa.RecordBatch]:
        for _ in super()._parse(path, begin, data, is_last=is_last):
            pass
        yield from self._taken()

    def _skip(self, path: str, position: int, record: bytes) -> None:
        unclosed = unclosed_quote(record, self._dialect) if record else (0, 0)
        if unclosed is None:
            reason = self._columns.parser.explain(record)
        else:
            position += unclosed[1]
            reason = UNCLOSED
        text = record[:_RECORD_MAX].decode(self._spec.encoding or "utf-8", errors="replace").rstrip("\r\n")
        self._rows.append((path, self._line(path, position), reason, text))

    def _line(self, path: str, position: int) -> int:
        """Return the line of a position, counting from the last one that was asked for."""
        if self._passed is not None:
            return self._line_ends_before(path, position) + 1
        last_path, last, lines = self._counted
        if path != last_path or position < last:
            last, lines = 0, 0
        lines += count_lines(path, last, position)
        self._counted = (path, position, lines)
        return lines + 1

    def _taken(self) -> Iterator[pa.RecordBatch]:
        rows, self._rows = self._rows, []
        if rows:
            columns = [
                pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), REJECTS, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=REJECTS)
