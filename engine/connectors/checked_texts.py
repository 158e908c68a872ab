"""CheckedTexts: a writer of texts that are to be read as the type that files beside them have.

    CheckedTexts(writer, "write_csv", types)      types: of columns of texts, as what is there was read

In CSV nothing tells a text from a number but its digits: ``12`` is read as one, whatever it was. Where files are added
to others, a text that is not of their type would make texts of all of them: it fails the job, and nothing is added.

Held by: tests/integration/test_appended_types.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from engine.connectors.json_types import values_of
from engine.errors import DataError
from engine.records.arrow_functions import pc

_SHOWN_MAX = 80


class CheckedTexts:
    """See the module's text."""

    def __init__(self, writer: Any, call: str, types: pa.Schema) -> None:
        self._writer = writer
        self._call = call
        self._types = types

    @property
    def is_full(self) -> bool:
        """Whether what follows belongs into another file."""
        return bool(self._writer.is_full)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch. Raises: DataError: a text is not of the type."""
        for field in self._types:
            texts = batch.column(field.name)
            if not _are_of(texts, field.type):
                wrong = next((text for text in texts if not _are_of(pa.array([text]), field.type)), texts[0])
                raise DataError(
                    f"{self._call}: column {field.name!r}: {str(wrong)[:_SHOWN_MAX]!r} is not {field.type}, as which"
                    " what is there is read; cast the column, or pass schema_mode='union', which adds texts as they are"
                )
        self._writer.write(batch)

    def finish(self) -> tuple[int, int, str]:
        """Complete the file."""
        found: tuple[int, int, str] = self._writer.finish()
        return found

    def abort(self) -> None:
        """Close and remove the file."""
        self._writer.abort()


def _are_of(texts: pa.Array, data_type: pa.DataType) -> bool:
    """Return whether texts are read beside a type: fractions are beside whole numbers, moments beside days."""
    types = pa.types
    candidates = [data_type]
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        candidates = [pa.float64()]
    elif types.is_date(data_type) or types.is_timestamp(data_type):
        zone = data_type.tz if types.is_timestamp(data_type) else None
        candidates = [pa.timestamp("us", zone), pa.timestamp("ns", zone)]
    for candidate in candidates:
        try:
            values_of(pa.chunked_array([pc.cast(texts, pa.string())]), candidate)
        except pa.ArrowInvalid:
            continue
        return True
    return False
