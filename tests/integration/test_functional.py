"""Functions over batches in every format and over whole subtasks, against plain Python."""

import itertools
import struct
import textwrap

import pyarrow as pa
import pytest

from engine import JobExecutionError, SchemaError
from tests.integration.conftest import wait_until
from tests.integration.row_oracle import KEY_VALUES, assert_same_rows, rows_of

pytestmark = pytest.mark.usefixtures("one_zygote")

ONE = pa.schema([("a", pa.int64())])


def arrow_twice(batch):
    yield batch
    yield batch


def add_one(values):
    values["a"] = values["a"] + 1
    return values


@pytest.mark.thorough
@pytest.mark.parametrize("parallelism", [1, 3])
def test_map_batches_gives_what_plain_python_does(open_environment, parallelism):
    env = open_environment()
    data = env.from_arrow(pa.table({"a": range(20_000)})).set_parallelism(parallelism)
    assert_same_rows(data.map_batches(arrow_twice, ONE).collect(), [(n,) for n in range(20_000)] * 2)
    for kind in ("pandas", "numpy"):
        result = data.map_batches(add_one if kind == "pandas" else lambda d: {"a": d["a"] + 1}, ONE, format=kind)
        assert result.to_arrow().schema.equals(ONE)
        assert_same_rows(result.collect(), [(n + 1,) for n in range(20_000)])


def test_a_table_may_be_returned_for_a_batch(open_environment):
    data = open_environment().from_arrow(pa.table({"a": [1, 2]}))

    def tables(batch):
        column = batch.column(0)
        yield pa.table({"b": pa.chunked_array([column, column]), "a": pa.chunked_array([column, column])})
        yield pa.table({"a": pa.chunked_array([], pa.int64()), "b": pa.chunked_array([], pa.int8())})

    schema = pa.schema([("a", pa.int32()), ("b", pa.int64())])
    assert data.map_batches(tables, schema).to_arrow().to_pydict() == {"a": [1, 2, 1, 2], "b": [1, 2, 1, 2]}


def over_foreign_bytes(batch):
    ends = pa.py_buffer(struct.pack("<3i", 0, 900_000_000, 5))
    return pa.record_batch({"s": pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"hello")])})


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_returned_batch_whose_offsets_lead_outside_is_an_error_and_no_crash(open_environment, mode):
    data = open_environment(**{"python.execution-mode": mode}).from_arrow(pa.table({"a": [1, 2]}))
    with pytest.raises(JobExecutionError, match=r"(?s)out of bounds.*over_foreign_bytes"):
        data.map_batches(over_foreign_bytes, pa.schema([("s", pa.string())])).sort("s").collect()


@pytest.mark.quick
def test_a_failing_or_unfitting_batch_names_the_function(open_environment):
    data = open_environment().from_arrow(pa.table({"a": range(5)}))

    def fails(batch):
        raise ValueError("no such batch")

    def wrong(batch):
        return 7

    with pytest.raises(JobExecutionError, match=r"(?s)ValueError: no such batch.*fails.*test_functional.py"):
        data.map_batches(fails, ONE).collect()
    with pytest.raises(
        JobExecutionError, match=r"(?s)TypeError.*wrong returned int, which is no batch of format arrow"
    ):
        data.map_batches(wrong, ONE).collect()
    with pytest.raises(SchemaError, match="format 'csv'"):
        data.map_batches(fails, ONE, format="csv")


def test_a_batch_at_fault_is_told_by_its_rows(environment):
    def fails(batch):
        if 79_000 in batch.column("a").to_pylist():
            raise ValueError("found it")
        return batch

    with pytest.raises(JobExecutionError, match=r"rows 32768 to 47231 of this subtask"):
        environment.from_arrow(pa.table({"a": range(80_000)})).map_batches(fails, ONE).collect()


def as_arrow(batch):
    return batch


def as_columns(columns):
    return {name: values.tolist() for name, values in columns.items()}


@pytest.mark.quick
def test_batches_carry_nulls_of_every_type_in_both_directions(two_environments):
    columns = {f"c{i}": pa.array([values[0], None, values[-1]], t) for i, (t, values) in enumerate(KEY_VALUES.items())}
    table = pa.table({**columns, "l": pa.array([[1], None, []], pa.list_(pa.int64()))})
    data = two_environments.from_arrow(table).sort("c4")
    result = data.map_batches(as_arrow, table.schema).to_arrow()
    assert result.schema.equals(table.schema)
    assert_same_rows(rows_of(result), rows_of(table))
    words = pa.table({"t": ["a", None, "", "b"], "n": [1.5, None, 2.5, None]})
    for kind, function in (("pandas", as_arrow), ("numpy", as_columns)):
        counted = two_environments.from_arrow(words).map_batches(function, words.schema, format=kind).to_arrow()
        assert counted.column("t").null_count == 1


def count_rows(rows):
    yield (sum(1 for _ in rows),)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["process", "thread"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_map_partition_is_called_once_in_each_subtask_with_all_its_rows(open_environment, parallelism, mode):
    env = open_environment(**{"parallelism.default": parallelism, "python.execution-mode": mode})
    data = env.from_arrow(pa.table({"a": range(20_000)})).rebalance()
    counts = data.map_partition(count_rows, ONE).collect()
    assert len(counts) == parallelism
    assert sum(row.a for row in counts) == 20_000
    assert_same_rows(data.map_partition(lambda rows: rows, ONE).collect(), [(n,) for n in range(20_000)])
    nothing = data.filter(lambda row: False).map_partition(count_rows, ONE).collect()
    assert nothing == [(0,)] * parallelism
    started = data.map_partition(lambda rows: [tuple(row) for row in itertools.islice(rows, 5)], ONE)
    assert len(started.collect()) == 5 * parallelism


def test_map_partition_between_blocking_operators_and_behind_itself(any_environment):
    rows = [(n % 10, n) for n in range(5000)]
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])

    def running_total(rows):
        total = 0
        for row in rows:
            total += row.n
            yield row.k, total

    data = any_environment.from_rows(rows, schema).sort("n").map_partition(running_total, schema)
    again = data.map_partition(lambda rows: (row for row in rows if row.k == 3), schema)
    subtasks = any_environment.from_rows(rows, schema).sort("n").map_partition(lambda rows: [(0, 0)], schema).count()
    assert again.count() == 500
    if subtasks == 1:
        assert max(row.n for row in again.collect()) == sum(range(4994))


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_limit_behind_an_endless_partition_ends_it(open_environment, mode):
    env = open_environment(**{"python.execution-mode": mode})
    endless = env.from_rows([(1,)], ONE).map_partition(lambda rows: ((n,) for n in itertools.count()), ONE)
    assert endless.limit(10_000).count() == 10_000


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda rows: None, "map_partition must return an iterable of rows, not NoneType"),
        (lambda rows: {"a": 1}, "map_partition must return an iterable of rows, not dict"),
        (lambda rows: [None], "returned NoneType; expected a tuple, a dict or a row"),
        (lambda rows: [("x",)], "returned 'x' (str) for column 'a' of type int64"),
        (lambda rows: [(row.b,) for row in rows], "'b'; the row has a"),
    ],
    ids=["none", "dict", "no row", "type", "name"],
)
def test_what_a_partition_function_must_not_return(environment, function, text):
    with pytest.raises(JobExecutionError) as caught:
        environment.from_rows([(1,)], ONE).map_partition(function, ONE).collect()
    assert text in str(caught.value)
    assert "test_functional.py" in str(caught.value)


ENDLESS = """
import pyarrow as pa
from engine import Environment
ONE = pa.schema([("a", pa.int64())])
def endless(rows):
    for row in rows:
        open("entered", "w").close()
        while True:
            pass
def endless_batch(batch):
    return endless([batch])
env = Environment()
data = env.from_arrow(pa.table({"a": range(10)}))
KIND
env.execute()
"""


@pytest.mark.parametrize(
    "call", ["map_partition(endless, ONE)", "map_batches(endless_batch, ONE)", "group_by('a').reduce(endless, ONE)"]
)
def test_an_endless_function_is_cancelled_by_ctrl_c(start, tmp_path, call):
    (tmp_path / "job.py").write_text(textwrap.dedent(ENDLESS).replace("KIND", f'data.{call}.write_csv("out")'))
    process = start("job.py")
    assert wait_until(lambda: (tmp_path / "entered").exists() or process.poll() is not None, 60)
    assert process.poll() is None, process.communicate()
    process.send_signal(2)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entered", "job.py", "spill"]
