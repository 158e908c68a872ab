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
from engine.parquet.group_runs import KEPT_ROWS_MAX, GroupRuns, run_plan
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


def look_at(path, groups, looked_at, others, mask=None):
    """What a look has read of row groups together."""
    file = OpenFile(path, [*looked_at, *others])
    assert file.coded == {"few"} & {*looked_at, *others}
    plan = run_plan([file.plan(group, looked_at, others) for group in groups])
    names = [name for name in TABLE.column_names if name in {*looked_at, *others}]
    beside = file.reader(tuple(others), 5) if others else None
    look = GroupLook(file.reader(tuple(looked_at), 5), beside, mask, SideBySide(names), names)
    try:
        return look.read(file.source(groups[0]), plan.looked_at, plan.others, plan.pages.row_count)
    finally:
        file.close()


def rows_of(groups, names):
    return pa.concat_tables(TABLE.slice(group * PER_GROUP, PER_GROUP) for group in groups).select(names)


def plain(batch):
    return pa.Table.from_batches([batch]).cast(TABLE.select(batch.schema.names).schema)


@pytest.mark.parametrize("groups", [(0, 1), (3, 4, 5, 6, 7, 8, 9, 10), (2, 7, 11)], ids=str)
def test_all_rows_come_in_order_and_texts_have_one_dictionary(path, groups):
    found = look_at(path, groups, TABLE.column_names, [])
    assert plain(found).equals(rows_of(groups, TABLE.column_names))
    texts = found.column("few").dictionary.to_pylist()
    assert len(texts) == len({*texts})
    assert {*texts} == {*rows_of(groups, ["few"])["few"].drop_null().to_pylist()}


@pytest.mark.parametrize("kept", ["some", "none of the second", "the last row alone", "one group alone"])
def test_a_mask_leaves_its_rows_and_skips_row_groups(path, kept):
    rows = 4 * PER_GROUP
    wanted = {
        "some": lambda row: row % 3 == 0,
        "none of the second": lambda row: row // PER_GROUP != 1 and row % 7 < 3,
        "the last row alone": lambda row: row == rows - 1,
        "one group alone": lambda row: row // PER_GROUP == 2,
    }[kept]
    mask = pa.array([wanted(row) for row in range(rows)])
    found = look_at(path, (4, 5, 6, 7), ["n"], ["few", "many", "price", "flag"], lambda _: mask)
    assert plain(found).equals(rows_of((4, 5, 6, 7), TABLE.column_names).filter(mask))


def test_several_row_groups_are_one_batch(path):
    file = OpenFile(path, ["n"])
    plan = run_plan([file.plan(group, ["n"], []) for group in (0, 1)])
    reader = file.reader(("n",), 1)
    reader.begin(file.source(0), plan.looked_at)
    with pytest.raises(ValueError, match=f"100 rows of row groups of {2 * PER_GROUP}"):
        reader.read(100)
    with pytest.raises(ValueError, match="beside"):
        GroupChunks.of_run([(plan.looked_at, 1), (plan.looked_at, 1)])
    file.close()


def test_what_is_held_is_that_of_the_largest_row_group(path):
    file = OpenFile(path, TABLE.column_names)
    plans = [file.plan(group, TABLE.column_names, []) for group in range(3)]
    pages = run_plan(plans).pages
    assert pages.row_count == 3 * PER_GROUP
    assert pages.held_bytes == sum(max(plan.pages.held[name] for plan in plans) for name in TABLE.column_names)
    assert min(plan.pages.row_bytes for plan in plans) <= pages.row_bytes <= max(plan.pages.row_bytes for plan in plans)
    file.close()


@pytest.fixture
def looks(monkeypatch):
    """The row groups of each look."""
    seen = []
    look_at = FileScan._look_at
    monkeypatch.setattr(
        FileScan, "_look_at", lambda scan, group, end, plan: seen.append(end - group) or look_at(scan, group, end, plan)
    )
    return seen


@pytest.mark.parametrize("columns", [None, ["n"], ["many", "few"], ["price", "n"]], ids=str)
@pytest.mark.parametrize("name", FILTERS)
def test_a_reader_of_joined_splits_returns_the_rows_of_the_file(path, looks, name, columns):
    predicate, by_arrow = FILTERS[name]
    wanted = TABLE if by_arrow is None else TABLE.filter(by_arrow)
    found = read(path, predicate, columns, joined=GROUPS)
    assert found.equals(wanted.select(columns or TABLE.column_names))
    assert name == "no row" or max(looks) > 1


def test_little_memory_reads_row_groups_one_by_one(path, budget, looks):
    budget.set_limit(Kind.ARROW, 4 << 20)
    assert read(path, FILTERS["number"][0], joined=GROUPS).equals(TABLE.filter(pc.field("n") < 300))
    assert set(looks) <= {1}


def test_runs_grow_where_few_rows_are_left_and_shrink_where_many_are():
    runs = GroupRuns()
    lengths = []
    for _ in range(5):
        lengths.append(runs.wanted)
        runs.note(runs.wanted, 1000.0 * runs.wanted, 10 * runs.wanted, 100.0 * runs.wanted)
    assert lengths == [1, 2, 4, 8, 8]
    runs.note(8, 8000.0, 8 * KEPT_ROWS_MAX, 800.0)
    assert runs.wanted == 1
    runs.note(1, 4 << 20, 0, 0.0)
    assert runs.wanted == 1
    runs.note(1, 2 << 20, 0, 0.0)
    assert runs.wanted == 2


def test_runs_that_were_refused_are_not_asked_for_again():
    runs = GroupRuns()
    runs.refuse(4)
    runs.note(2, 0.0, 0, 0.0)
    assert runs.wanted == 2
