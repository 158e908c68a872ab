"""Row groups that are read together have the rows that they have one by one."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.memory.budget import Budget, Kind
from engine.parquet.file_scan import FileScan
from engine.parquet.group_look import GroupLook
from engine.parquet.group_reader import GroupChunks
from engine.parquet.group_runs import KEPT_ROWS_MAX, GroupRuns
from engine.parquet.open_file import OpenFile
from engine.records.side_by_side import SideBySide
from tests.parquet.test_group_look import FILTERS, read

ROWS, GROUPS = 60_000, 12
#: the texts of a row group, in its own order, some of them in a few row groups only
_SEEDS = [
    random.Random(group).sample([f"text {number}" * (number % 4) for number in range(300)], 40)
    for group in range(GROUPS)
]
PER_GROUP = ROWS // GROUPS
TABLE = pa.table(
    {
        "n": pa.array([index * 7919 % 1000 for index in range(ROWS)], pa.int32()),
        "few": pa.array(
            [None if index % 11 == 0 else _SEEDS[index // PER_GROUP][index * 31 % 40] for index in range(ROWS)]
        ),
        "many": pa.array([f"row {index}" * (index % 4) for index in range(ROWS)], pa.string()),
        "price": pa.array([index % 500 for index in range(ROWS)], pa.int64()).cast(pa.decimal128(21, 2)),
        "flag": pa.array([None if index % 5 == 0 else index % 3 == 0 for index in range(ROWS)]),
    }
)


@pytest.fixture(autouse=True)
def budget(monkeypatch):
    """What jobs of other tests have left of the memory is not looked at."""
    found = Budget()
    monkeypatch.setattr("engine.parquet.scan_memory.process_budget", found)
    return found


@pytest.fixture(params=["snappy", "zstd"])
def path(request, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=PER_GROUP, store_schema=False, compression=request.param)
    return str(path)


def look_at(path, groups, looked_at, others, mask=None, together=ROWS, kept_max=ROWS):
    """What a look has read of row groups, and how many of them."""
    file = OpenFile(path, [*looked_at, *others])
    assert file.coded == {"few"} & {*looked_at, *others}
    plans = [file.plan(group, looked_at, others) for group in groups]
    names = [name for name in TABLE.column_names if name in {*looked_at, *others}]
    beside = file.reader(tuple(others), 5) if others else None
    look = GroupLook(file.reader(tuple(looked_at), 5), beside, mask, SideBySide(names), names)
    try:
        return look.read(file.source(groups[0]), plans, together, kept_max), look.groups_read
    finally:
        file.close()


def part_by_part(whole):
    """A mask that is asked for parts of the rows, one after the other."""
    begins = iter(range(len(whole)))

    def mask(batch):
        start = next(begins)
        for _ in range(batch.num_rows - 1):
            next(begins)
        return whole.slice(start, batch.num_rows)

    return mask


def rows_of(groups, names):
    return pa.concat_tables(TABLE.slice(group * PER_GROUP, PER_GROUP) for group in groups).select(names)


def plain(batch):
    return pa.Table.from_batches([batch]).cast(TABLE.select(batch.schema.names).schema)


@pytest.mark.parametrize("groups", [(0, 1), (3, 4, 5, 6, 7, 8, 9, 10), (2, 7, 11)], ids=str)
def test_all_rows_come_in_order_and_texts_have_one_dictionary(path, groups):
    found, read_groups = look_at(path, groups, TABLE.column_names, [])
    assert read_groups == len(groups)
    assert plain(found).equals(rows_of(groups, TABLE.column_names))
    texts = found.column("few").dictionary.to_pylist()
    assert len(texts) == len({*texts})
    assert {*texts} == {*rows_of(groups, ["few"])["few"].drop_null().to_pylist()}


@pytest.mark.parametrize("columns", [["n"], ["few"], ["n", "few"], ["n", "few", "many", "price", "flag"]], ids=str)
@pytest.mark.parametrize("together", [1, 2 * PER_GROUP, len(TABLE)])
@pytest.mark.parametrize("kept", ["some", "none of the second", "the last row alone", "one group alone", "all"])
def test_a_mask_leaves_its_rows_and_skips_row_groups(path, kept, together, columns):
    rows = 4 * PER_GROUP
    wanted = {
        "some": lambda row: row % 3 == 0,
        "none of the second": lambda row: row // PER_GROUP != 1 and row % 7 < 3,
        "the last row alone": lambda row: row == rows - 1,
        "one group alone": lambda row: row // PER_GROUP == 2,
        "all": lambda row: True,
    }[kept]
    mask = pa.array([wanted(row) for row in range(rows)])
    others = [name for name in TABLE.column_names if name not in columns]
    found, _ = look_at(path, (4, 5, 6, 7), columns, others, part_by_part(mask), together)
    assert plain(found).equals(rows_of((4, 5, 6, 7), TABLE.column_names).filter(mask))


def test_columns_of_a_filter_that_do_not_come_out_are_left_out(path):
    file = OpenFile(path, ["n", "few", "price"])
    plans = [file.plan(group, ["n", "few"], ["price"]) for group in range(3)]
    readers = [file.reader(names, 3) for names in (("n", "few"), ("price",))]
    mask = pa.array([row % 5 == 0 for row in range(3 * PER_GROUP)])
    look = GroupLook(*readers, part_by_part(mask), SideBySide(["price"]), ["price"])
    assert plain(look.read(file.source(0), plans, 1, len(TABLE))).equals(rows_of(range(3), ["price"]).filter(mask))
    file.close()


def test_a_look_ends_where_the_rows_of_a_batch_are_kept(path):
    few, of_three = pa.array([row % 100 == 0 for row in range(len(TABLE))]), 3 * PER_GROUP // 100
    found, read_groups = look_at(path, range(GROUPS), ["n"], ["price"], part_by_part(few), 1, of_three)
    assert (read_groups, found.num_rows) == (3, of_three)
    found, read_groups = look_at(path, range(GROUPS), ["n"], ["price"], lambda _: None, 1, kept_max=PER_GROUP)
    assert (read_groups, found.num_rows) == (1, PER_GROUP)
    nothing = pa.array([False] * len(TABLE))
    assert look_at(path, range(GROUPS), ["n"], ["price"], part_by_part(nothing), 1, kept_max=1) == (None, GROUPS)


def test_what_was_looked_at_is_gone_before_more_of_it_is_decoded(path):
    nothing, allocated = pa.array([False] * PER_GROUP), []

    def mask(batch):
        allocated.append(pa.total_allocated_bytes())
        return nothing

    look_at(path, range(GROUPS), ["n", "price"], ["flag"], mask, 1)
    assert len(allocated) == GROUPS
    assert max(allocated) - allocated[0] < PER_GROUP * 10


def test_several_row_groups_are_one_batch(path):
    file = OpenFile(path, ["n"])
    chunks = [file.plan(group, ["n"], []).looked_at for group in (0, 1)]
    run = GroupChunks.of_run([(one, PER_GROUP) for one in chunks])
    reader = file.reader(("n",), 1)
    reader.begin(file.source(0), run)
    with pytest.raises(ValueError, match=f"100 rows of row groups of {2 * PER_GROUP}"):
        reader.read(100)
    with pytest.raises(ValueError, match="beside"):
        GroupChunks.of_run([(run, 1), (run, 1)])
    file.close()


@pytest.fixture
def looks(monkeypatch):
    """The row groups of each look."""
    seen = []
    rows = FileScan.rows

    def noted(scan, group, end=None):
        for batch in rows(scan, group, end):
            seen.append(scan._looks.runs.groups_read)
            yield batch
        if scan._looks is not None:
            seen.append(scan._looks.runs.groups_read)

    monkeypatch.setattr(FileScan, "rows", noted)
    return seen


@pytest.mark.parametrize("columns", [None, ["n"], ["many", "few"], ["price", "n"]], ids=str)
@pytest.mark.parametrize("name", FILTERS)
def test_a_reader_of_joined_splits_returns_the_rows_of_the_file(path, looks, name, columns):
    predicate, by_arrow = FILTERS[name]
    wanted = TABLE if by_arrow is None else TABLE.filter(by_arrow)
    found = read(path, predicate, columns, joined=GROUPS)
    assert found.equals(wanted.select(columns or TABLE.column_names))
    assert name == "no row" or max(looks) > 1


def test_with_little_memory_a_look_ends_early(path, budget, looks):
    budget.set_limit(Kind.ARROW, 4 << 20)
    assert read(path, FILTERS["number"][0], joined=GROUPS).equals(TABLE.filter(pc.field("n") < 300))
    little = max(looks)
    looks.clear()
    budget.set_limit(Kind.ARROW, 1 << 30)
    read(path, FILTERS["number"][0], joined=GROUPS)
    assert little < max(looks)


def test_rows_that_are_looked_at_together_follow_from_what_was_left():
    runs = GroupRuns()
    assert (runs.groups_max, runs.rows_together(1e9)) == (1, 1)
    runs.note(1, 100_000, 8.0, 1_000, 60.0)
    assert runs.groups_max > 8
    assert runs.rows_together(1e9) == (6 << 20) // 8
    assert runs.rows_together(5.5) == 5
    runs.note(1, 100_000, 8.0, 50_000, 60.0)
    assert runs.rows_together(1e9) == 2 * runs.kept_max(60.0)
    runs.note(1, 100_000, 0.0, 0, 0.0)
    assert runs.rows_together(1e9) == 8 * (6 << 20)


def test_a_batch_has_rows_of_some_megabytes():
    assert GroupRuns.kept_max(1.0) == KEPT_ROWS_MAX
    assert GroupRuns.kept_max(96.0) == 1 << 16


def test_runs_that_were_refused_are_not_asked_for_again():
    runs = GroupRuns()
    runs.note(1, 10, 1.0, 0, 1.0)
    runs.refuse()
    runs.note(1, 10, 1.0, 0, 1.0)
    assert runs.groups_max == 1
