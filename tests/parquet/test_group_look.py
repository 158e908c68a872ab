"""A look at a row group has the rows that streams of its columns have, and notes how wide they were."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.column_expressions.expressions import col
from engine.errors import DataError
from engine.graph.source_spec import joined_split
from engine.memory.budget import Budget
from engine.parquet.file_scan import FileScan
from engine.parquet.group_look import GroupLook
from engine.parquet.open_file import OpenFile
from engine.parquet.pages import first_page
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from engine.records.side_by_side import SideBySide
from engine.records.wide_rows import average_width

#: row groups are large enough for codes
ROWS, GROUPS = 20_000, 4
#: kinds: numbers, decimals, few texts, which come as codes, and many texts; the nullable ones have nulls
TABLE = pa.table(
    {
        "n": pa.array([index * 7919 % 1000 for index in range(ROWS)], pa.int32()),
        "few": pa.array([None if index % 11 == 0 else "abc"[index % 3] * 9 for index in range(ROWS)]),
        "many": pa.array([f"row {index}" * (index % 4) for index in range(ROWS)], pa.string()),
        "price": pa.array([index % 500 for index in range(ROWS)], pa.int64()).cast(pa.decimal128(21, 2)),
        "flag": pa.array([None if index % 5 == 0 else index % 3 == 0 for index in range(ROWS)]),
    }
)
#: filters over columns of each kind, and the same for pyarrow
FILTERS = {
    "none": (None, None),
    "number": (col("n") < 300, pc.field("n") < 300),
    "no row": (col("n") > 9000, pc.field("n") > 9000),
    "every row": (col("n") > -1, pc.field("n") > -1),
    "code": (col("few") == "aaaaaaaaa", pc.field("few") == "aaaaaaaaa"),
    "text": (col("many").str.starts_with("row 1"), pc.starts_with(pc.field("many"), "row 1")),
    "several": ((col("n") < 700) & col("flag"), (pc.field("n") < 700) & pc.field("flag")),
}


@pytest.fixture(autouse=True)
def plenty(monkeypatch):
    """What jobs of other tests have left of the memory is not looked at."""
    monkeypatch.setattr("engine.parquet.scan_memory.process_budget", Budget())


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=ROWS // GROUPS, store_schema=False)
    return str(path)


def read(path, predicate=None, columns=None, joined=1):
    """The rows of a file, of which so many row groups are a split."""
    spec, _, schema = parquet_source(path)
    columns = schema.names if columns is None else columns
    expression = None if predicate is None else predicate.expression
    splits = [joined_split(spec.splits[first : first + joined]) for first in range(0, len(spec.splits), joined)]
    reader = ParquetReader(msgspec.structs.replace(spec, predicate=expression, columns=tuple(columns)), splits)
    try:
        return pa.Table.from_batches(reader, pa.schema([schema.field(name) for name in columns]))
    finally:
        reader.close()


@pytest.mark.parametrize("columns", [None, ["n"], ["many", "few"], ["price", "n"]], ids=str)
@pytest.mark.parametrize("name", FILTERS)
def test_rows_are_those_of_the_file_and_only_the_first_row_group_of_texts_is_not_one_look(
    path, monkeypatch, name, columns
):
    streamed = []
    stream = FileScan.streamed
    monkeypatch.setattr(
        FileScan, "streamed", lambda scan, group, *rest: streamed.append(group) or stream(scan, group, *rest)
    )
    predicate, by_arrow = FILTERS[name]
    wanted = TABLE if by_arrow is None else TABLE.filter(by_arrow)
    assert read(path, predicate, columns).equals(wanted.select(columns or TABLE.column_names))
    has_texts = name == "text" or "many" in (columns or TABLE.column_names)
    assert streamed == ([0] if has_texts and name != "no row" else [])


def test_the_width_of_rows_is_that_of_the_batches(path):
    file = OpenFile(path, TABLE.column_names)
    assert file.coded == {"few"}
    plan = file.plan(1, ["n", "few"], ["many", "price", "flag"])
    readers = [file.reader(names, 5) for names in (("n", "few"), ("many", "price", "flag"))]
    masks = []

    def mask(batch):
        masks.append(pc.less(batch.column("n"), 500))
        return masks[-1]

    look = GroupLook(*readers, mask, SideBySide(TABLE.column_names), TABLE.column_names)
    found = look.read(file.source(1), [plan], 1, ROWS)
    rows = TABLE.slice(ROWS // GROUPS, ROWS // GROUPS)
    assert pa.Table.from_batches([found]).cast(TABLE.schema).equals(rows.filter(masks[0]))
    streams = [file.columns(1, names, ROWS) for names in (["n", "few"], ["many", "price", "flag"])]
    assert look.width == pytest.approx(average_width(streams[0].read()), rel=0.01)
    assert look.width_of_others == pytest.approx(average_width(streams[1].read(masks[0])), rel=0.01)
    file.close()


def test_a_mask_of_other_rows_is_refused(path):
    file = OpenFile(path, ["n"])
    plan = file.plan(0, ["n"], [])
    look = GroupLook(file.reader(("n",), 1), None, lambda _: pa.array([True]), SideBySide(["n"]), ["n"])
    with pytest.raises(pa.ArrowInvalid, match="a mask of 1 rows for 5000"):
        look.read(file.source(0), [plan], 1, ROWS)
    file.close()


def test_a_damaged_page_is_named(path):
    chunk = pq.read_metadata(path).row_group(2).column(2)
    with Path(path).open("r+b") as file:
        file.seek(first_page(chunk) + chunk.total_compressed_size // 2)
        file.write(bytes(2000))
    with pytest.raises(DataError, match=r"t\.parquet, row groups 2 to 3: column 'many': the page at byte \d+ "):
        read(path)


def test_a_row_group_with_a_column_that_is_not_decoded_here_has_no_plan(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, use_dictionary=False, column_encoding={"many": "DELTA_BYTE_ARRAY"})
    file = OpenFile(str(path), ["n", "many"])
    assert file.plan(0, ["n"], ["many"]) is None
    assert file.plan(0, ["many"], []) is None
    file.close()
    assert read(str(path)).equals(TABLE)
