"""What a data set's manifest and bounds prove of its order, and what the optimizer leaves out for it."""

import datetime

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, avg, col, count, row_number, sum_
from engine.connectors.records_layout import proven_order
from engine.connectors.records_manifest import read_manifest, write_manifest
from engine.connectors.records_parts import merged_manifest
from engine.connectors.records_writer import written_parts
from engine.graph.sort_key import SortKey

DAY = datetime.date(2024, 1, 1)


def write(folder, parts, *, sorted_by=(), partitioned_by=(), row_group_size=100):
    """Write tables as the parts of a data set whose manifest makes these promises."""
    folder.mkdir()
    paths = []
    for index, part in enumerate(parts):
        paths.append(folder / f"part-{index:05d}.parquet")
        pq.write_table(part, paths[-1], row_group_size=row_group_size)
    schema = parts[0].schema
    manifest = merged_manifest(schema.serialize().to_pybytes(), written_parts(paths, schema))
    write_manifest(folder, msgspec.structs.replace(manifest, sorted_by=sorted_by, partitioned_by=partitioned_by))
    return folder


def order_of(folder):
    manifest = read_manifest(folder)
    schema = pa.ipc.read_schema(pa.py_buffer(manifest.schema))
    return proven_order(manifest, [f"{folder}/{file.name}" for file in manifest.files], schema)


def table(first, second=None):
    return pa.table({"a": first, "b": second if second is not None else list(range(len(first)))})


@pytest.mark.parametrize(
    ("parts", "sorted_by", "expected"),
    [
        ([table([1, 2]), table([3, 4])], ("a",), ("a",)),
        ([table([1, 2]), table([3, 4])], ("a", "b"), ("a", "b")),
        ([table([1, 2]), table([2, 4])], ("a", "b"), ("a",)),
        ([table([1, 1, 1, 2])], ("a", "b"), ("a", "b")),
        ([table([3, 4]), table([1, 2])], ("a",), ()),
        ([table([1, 3]), table([2, 4])], ("a",), ()),
        ([table([1, 2])], (), ()),
        ([table([1, 2])], ("gone",), ()),
        ([table([1, None])], ("a",), ()),
        ([table([1, 2], [None, 1])], ("a", "b"), ("a",)),
        ([table([1.0, 2.0])], ("a",), ()),
        ([table(["a", "b"]), table(["ba", "ö"])], ("a",), ("a",)),
        ([table([DAY, DAY]), table([DAY, datetime.date(2024, 1, 2)])], ("a",), ("a",)),
    ],
)
def test_the_order_is_what_manifest_and_bounds_prove(tmp_path, parts, sorted_by, expected):
    folder = write(tmp_path / "data", parts, sorted_by=sorted_by)
    assert order_of(folder) == tuple(SortKey(name) for name in expected)


def test_a_manifest_that_lies_about_row_groups_proves_nothing(tmp_path):
    folder = write(tmp_path / "data", [table([3, 4, 1, 2])], sorted_by=("a",), row_group_size=2)
    assert order_of(folder) == ()


@pytest.fixture
def ordered(tmp_path):
    """20 customers in ranges, the rows of each in order of ``at``."""
    customers = [list(range(start, start + 5)) for start in range(0, 20, 5)]
    parts = []
    for some in customers:
        rows = [(customer, at, (customer * 7 + at * 3) % 11) for customer in some for at in range(200)]
        columns = zip(*rows, strict=True)
        parts.append(pa.table(dict(zip(("customer", "at", "amount"), map(list, columns), strict=True))))
    return write(tmp_path / "ordered", parts, sorted_by=("customer", "at"), partitioned_by=("customer",))


@pytest.fixture
def plain(ordered, tmp_path):
    """The same parts, of which nothing is said; of one row group each, which are too few to read in runs."""
    parts = [pq.read_table(path) for path in sorted(ordered.glob("*.parquet"))]
    return write(tmp_path / "plain", parts, row_group_size=1000)


PROGRAMS = {
    "sort": lambda data: data.sort(["customer", "at"]),
    "sort by a prefix": lambda data: data.sort("customer"),
    "filter, then sort": lambda data: data.filter(col("amount") > 4).select("at", "customer").sort("customer"),
    "first rows": lambda data: data.sort(["customer", "at"]).limit(7),
    "groups": lambda data: data.group_by("customer").agg(n=count(), total=sum_("amount")),
    "groups of more columns": lambda data: data.group_by("customer", "amount").agg(mean=avg("at")),
    "window": lambda data: data.with_columns(n=row_number().over(partition_by="customer", order_by="at")),
}
ORDERED = {"sort", "sort by a prefix", "filter, then sort", "first rows"}


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rows_are_those_without_promises(ordered, plain, name, parallelism):
    with Environment(config={"parallelism.default": parallelism}) as env:
        found = [PROGRAMS[name](env.read_records(folder)).to_arrow() for folder in (ordered, plain)]
    if name == "sort by a prefix":
        assert found[0]["customer"] == found[1]["customer"]
    if name not in ORDERED or name.startswith("sort by") or name.startswith("filter"):
        found = [each.sort_by([(column, "ascending") for column in sorted(each.column_names)]) for each in found]
    assert found[0].to_pylist() == found[1].to_pylist()


@pytest.mark.parametrize(
    ("name", "gone"),
    [("sort", "SORT"), ("first rows", "LOCAL_TOP"), ("groups", "PARTITION_HASH"), ("window", "PARTITION_HASH")],
)
def test_the_plan_has_less_to_do(ordered, plain, name, gone):
    with Environment(config={"parallelism.default": 2}) as env:
        promised, unknown = (PROGRAMS[name](env.read_records(folder)).explain() for folder in (ordered, plain))
    assert gone in unknown
    assert gone not in promised
    assert "rows lie in order of customer, at" in promised


def test_a_window_over_ordered_rows_needs_neither_sort_nor_exchange(ordered):
    with Environment(config={"parallelism.default": 2}) as env:
        text = PROGRAMS["window"](env.read_records(ordered)).explain()
    assert "WHOLE_FILES" in text
    assert "sort for" not in text


def test_columns_that_are_not_read_prove_nothing(ordered):
    with Environment(config={"parallelism.default": 2}) as env:
        data = env.read_records(ordered).select("at", "amount").sort("at")
        assert "SORT" in data.explain()
        assert data.to_arrow()["at"].to_pylist() == sorted(list(range(200)) * 20)
