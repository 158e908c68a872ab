"""More calls of Environment that make data sets: of sheets of Excel, text of fixed widths, frames, and dicts.

Held by: tests/connectors/test_excel.py
Held by: tests/api/test_fixed_widths.py
Held by: tests/integration/test_looking_calls.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from engine.api.other_options import with_other_options
from engine.api.source_calls import Paths, SourceCalls
from engine.connectors.path_source import PathOptions
from engine.connectors.row_source import columns_to_table, filled_dicts, without_index
from engine.errors import ConfigurationError, SchemaError
from engine.graph.plan import Source
from engine.graph.source_spec import TextSource
from engine.storage.store_options import StorageOptions

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.connectors.fixed_widths import FwfOptions


@with_other_options
class FileCalls(SourceCalls):
    """Base of Environment with all of its sources."""

    def read_excel(
        self,
        path: Paths,
        sheet: str | int = 1,
        schema: pa.Schema | None = None,
        *,
        header: bool = True,
        skip_rows: int = 0,
        file_name_column: str | None = None,
        rate_limit: float | None = None,
        storage_options: StorageOptions = None,
    ) -> DataSet:
        """Read a sheet of Excel or OpenDocument files (the extra ``excel``): a file, a folder, a glob, or a list.

        ``sheet``: its name, or its number from 1 on. ``skip_rows``: rows above the header, which is the first of the
        others that is not empty; without ``header`` columns are those of the schema, by position, or are called
        column_0, column_1 and so on. Without ``schema`` all cells decide the types: numbers that are all whole are
        int64, numbers and texts in one column are text, with a warning. Empty cells, and errors such as #N/A, are null;
        a cell that is not of its type fails the job with its name, such as B7. A file is read by one subtask, and its
        cells are Python objects on their way.
        """
        options = {"sheet": sheet, "header": header, "skip_rows": skip_rows}
        in_paths = PathOptions(None, file_name_column, storage_options=storage_options)
        return self._read("excel", path, in_paths, rate_limit, schema, options)

    def read_fwf(
        self,
        path: Paths,
        widths: Sequence[int] | None = None,
        schema: pa.Schema | None = None,
        *,
        colspecs: Sequence[tuple[int, int | None]] | None = None,
        skip_rows: int = 0,
        null_values: str | Sequence[str] = (),
        **options: Unpack[FwfOptions],
    ) -> DataSet:
        r"""Read text whose columns have fixed widths: a file, a folder, a glob, or a list of those.

        ``widths``: characters of each column, one behind the other; or ``colspecs``: begin and end of each, from 0 on,
        ``(10, None)`` up to the end of the line. Spaces around values are left out; an empty value, and one of
        ``null_values``, is null, and so is what a short line has not. Characters that are in no column are not read,
        and blank lines are no rows. ``schema``: names and types; without it columns are called column_0 and so on, and
        types are inferred from a sample as those of ``read_csv`` are, or from ``infer_rows`` first rows, 0: all are
        texts. A value that is not of its type fails the job. ``skip_rows``: lines of each file above the first row.

        ``options``: ``infer_rows``, and ``encoding compression storage_options`` as in ``read_csv``.

        >>> from pathlib import Path
        >>> _ = Path("towns.txt").write_text("Bern   134000\nChur    38000\n")
        >>> env.read_fwf("towns.txt", [7, 6], pa.schema([("town", pa.string()), ("people", pa.int64())])).collect()
        [Row(town='Bern', people=134000), Row(town='Chur', people=38000)]
        """
        from engine.column_expressions.expressions import col
        from engine.connectors.fixed_widths import check_infer_rows, inferred_types

        in_file: dict[str, Any] = dict(options)
        infer_rows = in_file.pop("infer_rows", None)
        check_infer_rows(infer_rows)
        spans = _spans(widths, colspecs)
        if schema is not None and not isinstance(schema, pa.Schema):
            raise SchemaError(f"read_fwf: schema={schema!r}: expected a pyarrow.Schema")
        if schema is not None and len(schema) != len(spans):
            raise SchemaError(f"read_fwf: schema= has {len(schema)} columns, and {len(spans)} have a width")
        nulls = (null_values,) if isinstance(null_values, str) else tuple(null_values)
        lines = self.read_text(path, skip_rows=skip_rows, **in_file)
        if schema is None:
            types = [pa.string()] * len(spans)
            if infer_rows != 0:
                types = inferred_types(_text_source(lines), spans, nulls, infer_rows)
            schema = pa.schema([(f"column_{index}", each) for index, each in enumerate(types)])
        columns = []
        for (begin, end), field in zip(spans, schema, strict=True):
            value: Any = col("line").str.slice(begin, end).str.strip()
            for null in ("", *nulls):
                value = value.nullif(null)
            columns.append((value if pa.types.is_string(field.type) else value.cast(field.type)).alias(field.name))
        of_folders = [name for name in lines.schema.names if name != "line"]
        return lines.filter(col("line").str.strip() != "").select(*columns, *of_folders)

    def from_dicts(self, rows: Iterable[Any], schema: pa.Schema | None = None) -> DataSet:
        """Take dicts, a row each; a key that a dict has not is null in its row.

        Without ``schema`` the rows decide names and types, and a warning says which.
        """
        return self._of_rows(filled_dicts(rows, schema), schema, "from_dicts")

    def from_dict(self, columns: Mapping[str, Any], schema: pa.Schema | None = None) -> DataSet:
        """Take columns by name: lists, or arrays of pyarrow or NumPy."""
        return self.from_arrow(columns_to_table(columns, schema))

    def from_pandas(self, frame: Any) -> DataSet:
        """Take the columns of a pandas frame.

        An index with a name, or of other values than integers, is an error: ``reset_index()`` makes it a column.
        """
        return self.from_arrow(without_index(frame))

    def from_polars(self, frame: Any) -> DataSet:
        """Take a Polars DataFrame, or the rows of a LazyFrame, which is collected."""
        return self.from_arrow(frame.collect() if hasattr(frame, "collect") else frame)


def _text_source(lines: DataSet) -> TextSource:
    """Return the source of lines, without the columns of their folders."""
    operator = lines._node.operator
    assert isinstance(operator, Source), "lines of files"
    spec = getattr(operator.spec, "inner", operator.spec)
    assert isinstance(spec, TextSource), "lines of files"
    return spec


def _spans(widths: Any, colspecs: Any) -> list[tuple[int, int | None]]:
    """Return begin and end of each column. Raises: ConfigurationError."""
    if (widths is None) == (colspecs is None):
        raise ConfigurationError("read_fwf: pass widths=[7, 6], or colspecs=[(0, 7), (7, None)]")
    if widths is not None:
        found, begin = list[tuple[int, int | None]](), 0
        for width in widths:
            if isinstance(width, bool) or not isinstance(width, int) or width < 1:
                raise ConfigurationError(f"read_fwf: widths= has {width!r}, which is no number of characters")
            found.append((begin, begin + width))
            begin += width
    else:
        found = [_checked_span(each) for each in colspecs]
    if not found:
        raise ConfigurationError("read_fwf: there is no column; pass widths=[7, 6]")
    return found


def _checked_span(span: Any) -> tuple[int, int | None]:
    match span:
        case (int() as begin, (int() | None) as end) if begin >= 0 and (end is None or begin < end):
            return begin, end
    raise ConfigurationError(f"read_fwf: colspecs= has {span!r}: expected begin and end, from 0 on, as (0, 7)")
