"""Source specifications with their splits, and sink specifications, as data.

A source lists its splits (where each begins and how many bytes it is worth) when the plan is built, in the client:
the JobMaster only assigns them to subtasks, by bytes, and needs no Arrow for that. The connectors open them.

Held by: tests/rpc/test_codec.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.exact import Exact
from engine.graph.expression import Expression
from engine.graph.sort_key import SortKey


class SourceSplit(Exact, frozen=True, gc=False):
    """A piece of a source that one subtask reads: a text and numbers, at which no collector has to look.

    CSV: bytes [start, end) of the file, both on record boundaries. Parquet: row groups [start, end). Arrow IPC file:
    record batches [start, end). Text: bytes [start, end) wherever they lie. Of a compressed file all bytes are one.
    ``size_bytes`` weighs it; ``row_count`` is -1 when unknown.
    """

    path: str
    start: int
    end: int
    size_bytes: int
    row_count: int = -1


def joined_split(pieces: Sequence[SourceSplit]) -> SourceSplit:
    """Return one split of several of a file, which follow one another."""
    rows = size = 0
    for piece in pieces:
        rows += piece.row_count
        size += piece.size_bytes
    return SourceSplit(pieces[0].path, pieces[0].start, pieces[-1].end, size, rows)


class StoredFile(Exact, frozen=True, array_like=True):
    """An object of a store as it was when a plan was made; it is read as such, or not at all."""

    path: str
    size_bytes: int
    modified_ns: int
    tag: str | None


class CsvSource(Exact, frozen=True, tag="csv"):
    """Delimited text. The schema of all columns in the file is ``file_schema_ipc``; ``columns`` are those wanted."""

    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    file_schema_ipc: bytes
    columns: tuple[str, ...]
    header: bool = False
    delimiter: str = ","
    quote: str = '"'
    null_values: tuple[str, ...] = ("",)
    on_bad_row: str = "fail"
    #: encoding by Python's name; "": UTF-8 without conversion
    encoding: str = ""
    #: absolute path for malformed records that are skipped, "": they are not written
    bad_rows_path: str = ""
    #: True if the rows are the malformed records (``csv.rejects``)
    is_rejects: bool = False
    #: codec of all files, "none" for none, "": by each file's ending; behind a blank an encoding, if they have one of
    #: their own (``files.compression.stored_as``)
    compression: str = ""
    #: decimal mark, and separator of groups of three digits; "": none
    decimal: str = "."
    thousands: str = ""
    #: lines skipped at the begin of each file, before the header
    skip_rows: int = 0
    #: prefix of lines that are ignored; "": none are
    comment: str = ""
    #: texts that mean null, by column, where they differ from ``null_values``
    column_nulls: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    #: formats of dates and times, by column; ``date_format`` is that of all others
    date_formats: dict[str, str] = msgspec.field(default_factory=dict)
    date_format: str = ""
    #: texts that are true and false, beside true, True and TRUE, false, False and FALSE
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()
    #: records with other numbers of fields: fail, fill, cut, or fit
    ragged_rows: str = "fail"
    #: first rows from which types are inferred; -1: a sample
    infer_rows: int = -1
    #: columns that each file must have; its header may have others. (): exactly those of ``file_schema_ipc``
    named: tuple[str, ...] = ()


class ParquetSource(Exact, frozen=True, tag="parquet"):
    """Parquet files (also those of an export or record data set); ``columns`` are those wanted."""

    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    columns: tuple[str, ...]
    #: types of columns where a file's own differ, as an Arrow IPC schema; b"": files have these types
    types_ipc: bytes = b""
    #: filter over any columns of the files; other rows are not read
    predicate: Expression | None = None
    #: row groups that are no splits because no row of theirs is wanted; None: not determined
    pruned_groups: int | None = None
    #: sort keys of all rows in the order of splits; ``records_layout`` proves it
    sorted_by: tuple[SortKey, ...] = ()
    #: columns whose equal values are in one file
    grouped_by: tuple[str, ...] = ()
    #: True if splits are whole files, of which only the first one's footer was read (``engine.parquet.unread_files``)
    is_unread: bool = False
    #: files that are objects of stores
    stored: tuple[StoredFile, ...] = ()


class ArrowSource(Exact, frozen=True, tag="arrow"):
    """Arrow IPC files: either the bytes of one inline (small data) or files that the client wrote (``paths``)."""

    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    columns: tuple[str, ...]
    inline: bytes | None = None


class TextSource(Exact, frozen=True, tag="text"):
    """Lines of text. Splits are cut anywhere: a line is read by the split in which it begins."""

    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    columns: tuple[str, ...]
    #: compression, as in ``CsvSource``
    compression: str = ""
    #: first lines of each file that are passed over
    skip_rows: int = 0


class JsonSource(Exact, frozen=True, tag="json"):
    """JSON lines, split as text is. ``file_schema_ipc`` is the schema of all columns, ``columns`` are those wanted."""

    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    file_schema_ipc: bytes
    columns: tuple[str, ...]
    #: compression, as in ``CsvSource``
    compression: str = ""
    #: handling of bad rows, as in ``CsvSource``
    on_bad_row: str = "fail"
    #: True if the schema comes from a sample of the members, which warnings mention
    is_inferred: bool = False


class FormatSource(Exact, frozen=True, tag="format"):
    """A source of a format that has no struct of its own; ``format`` names its entry (``engine.formats``).

    Of ipc, orc and avro splits are blocks [start, end), or [0, 0) for a whole file.
    """

    format: str
    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    file_schema_ipc: bytes
    columns: tuple[str, ...]
    #: rows for which it is not true are not wanted; over any columns of ``file_schema_ipc``
    predicate: Expression | None = None
    #: options that the format's reader needs
    options: dict[str, str | int | float | bool | None] = msgspec.field(default_factory=dict)
    #: facts about single files that the format's reader needs, a row each, as an Arrow IPC stream
    files_ipc: bytes = b""


FileSource = CsvSource | ParquetSource | TextSource | JsonSource | FormatSource


class PathSource(Exact, frozen=True, tag="paths"):
    """Another source and columns that the paths of its files say; ``paths`` and ``splits`` are those of ``inner``."""

    inner: FileSource
    paths: tuple[str, ...]
    splits: tuple[SourceSplit, ...]
    columns: tuple[str, ...]
    #: schema of the columns that paths give, as IPC
    path_schema_ipc: bytes
    #: values of those columns for each path, as texts that cast to their types
    values: dict[str, tuple[str | None, ...]]
    #: columns that some files lack, by file, and types of all columns where there are any
    absent: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    absent_schema_ipc: bytes = b""


SourceSpec = FileSource | ArrowSource | PathSource


class ColumnStatistics(msgspec.Struct, frozen=True):
    """The statistics of one column; None: unknown.

    ``heavy_keys``: (text that Arrow casts to the value, share of rows), the heaviest first; ``heavy_origin`` says where
    they come from.
    """

    distinct_count: float | None = None
    null_fraction: float | None = None
    average_width_bytes: float | None = None
    minimum: bool | int | float | str | None = None
    maximum: bool | int | float | str | None = None
    heavy_keys: tuple[tuple[str, float], ...] = ()
    heavy_origin: str = "sample"
    #: the source that the values are from, and how many of its rows there may be: columns of one source have no more
    #: combinations of values; -1: unknown. Both are of a plan, set where its sources are estimated
    relation: int = -1
    relation_rows: float = 0.0


class ComputedStatistics(msgspec.Struct, frozen=True):
    """The statistics of an expression over the columns of a source."""

    expression: Expression
    statistics: ColumnStatistics

    @property
    def is_met_by_none(self) -> bool:
        """Whether all rows were looked at, and none meets this condition (see ``statistics.predicate_shares``)."""
        return self.statistics.heavy_keys == (("true", 0.0),)


class SourceStatistics(msgspec.Struct, frozen=True):
    """Size of a source and where the numbers come from ("parquet metadata", "sample of 1024 rows", "manifest")."""

    row_count: float | None
    size_bytes: float | None
    origin: str
    is_exact: bool = False
    columns: dict[str, ColumnStatistics] = {}
    #: statistics of expressions that joins compare
    computed: tuple[ComputedStatistics, ...] = ()


class SinkSpec(Exact, frozen=True):
    """A sink: ``path`` is a folder in which rows are written, or the one file of them.

    ``format``: csv parquet records text json ipc ipc_stream orc; arrow and stream for results of the client, discard
    for none.
    ``schema_ipc``: for records, the Arrow IPC schema message that goes into the manifest.
    """

    format: str
    path: str
    overwrite: bool = False
    header: bool = False
    delimiter: str = ","
    schema_ipc: bytes = b""
    #: codec of each file; "": the format's default
    compression: str = ""
    #: compression level of Parquet's codec; None: the codec's default
    compression_level: int | None = None
    #: write mode for an existing target: append, overwrite_partitions; "": it is made, or replaced
    mode: str = ""
    #: columns whose values name folders; rows are sorted by them
    partition_by: tuple[str, ...] = ()
    #: size after which a new file begins; 0: the format decides
    target_file_bytes: int = 0
    #: schema of appended rows: strict, or union, which allows what readers take with ``schema_mode="union"``
    schema_mode: str = "strict"
    #: columns of texts, and the types as which readers take them, as an Arrow IPC schema; b"": any text
    text_types_ipc: bytes = b""
    #: True if ``path`` is a file, which one subtask writes
    is_single_file: bool = False
    #: options of the format and of its target, as JSON that the format's entry reads; no secret is in it
    options: str = ""
