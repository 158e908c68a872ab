"""reduce and co_group against plain Python: key types, nulls, skew, little memory, functions that read as they like."""

import itertools

import pyarrow as pa
import pytest

from engine import JobExecutionError, SchemaError, col
from tests.integration.conftest import MODES
from tests.integration.row_oracle import KEY_VALUES, assert_same_rows, key_table, plain, rows_of

pytestmark = pytest.mark.usefixtures("one_zygote")

ONE = pa.schema([("a", pa.int64())])
KEY_AND_NUMBER = pa.schema([("k", pa.int64()), ("n", pa.int64())])

#: enough for the region of a reduce: one sort and nothing else
SIX_PAGES = {"taskmanager.memory.managed.size": "768kb", "taskmanager.memory.segment-size": "32kb"}


@pytest.fixture(scope="module")
def spilling(open_environment):
    return open_environment(**MODES["spilling"])


def groups_of(rows, key=0):
    """Return rows by key as the contract compares keys."""
    found = {}
    for row in rows:
        found.setdefault(plain(row[key]), []).append(row)
    return found


def sums(rows):
    count = total = 0
    key = None
    for row in rows:
        key, count, total = row.k, count + 1, total + (row.n or 0)
    yield key, count, total


@pytest.mark.parametrize("data_type", KEY_VALUES, ids=str)
def test_reduce_sees_each_group_once_for_keys_of_every_type(spilling, data_type):
    table = key_table(data_type, 500)
    schema = pa.schema([("k", data_type), ("count", pa.int64()), ("total", pa.int64())])
    result = spilling.from_arrow(table).group_by("k").reduce(sums, schema).to_arrow()
    assert result.schema.equals(schema)
    expected = [(rows[0][0], len(rows), sum(n or 0 for _, n in rows)) for rows in groups_of(rows_of(table)).values()]
    assert_same_rows(rows_of(result), expected)


def co_sums(left, right):
    key = None
    count = [0, 0]
    for side, rows in enumerate((left, right)):
        for row in rows:
            key = row.k
            count[side] += 1
    yield key, *count


@pytest.mark.parametrize("data_type", KEY_VALUES, ids=str)
def test_co_group_pairs_the_groups_of_both_sides_for_keys_of_every_type(spilling, data_type):
    left, right = key_table(data_type, 300), key_table(data_type, 5, seed=2).rename_columns(["k", "other"])
    schema = pa.schema([("k", data_type), ("left", pa.int64()), ("right", pa.int64())])
    env = spilling
    result = env.from_arrow(left).co_group(env.from_arrow(right), "k", co_sums, schema).collect()
    lefts, rights = groups_of(rows_of(left)), groups_of(rows_of(right))
    expected = [
        ((lefts.get(key) or rights.get(key))[0][0], len(lefts.get(key, ())), len(rights.get(key, ())))
        for key in lefts.keys() | rights.keys()
    ]
    assert_same_rows(result, expected)


@pytest.mark.quick
def test_reduce_by_two_keys_with_nulls_in_each(any_environment):
    rows = [(a, b, n) for n, (a, b) in enumerate(itertools.product((None, 1, 2), (None, "x", "")))] * 30
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("n", pa.int64())])
    data = any_environment.from_rows(rows, schema)
    count = data.group_by("a", "b").reduce(lambda rows: [(len({row.n for row in rows}),)], ONE)
    assert_same_rows(count.collect(), [(1,)] * 9)
    by_expression = data.group_by((col("n") % 2).alias("odd")).reduce(lambda rows: [(sum(1 for _ in rows),)], ONE)
    assert_same_rows(by_expression.collect(), [(150,), (120,)])


READERS = {
    "nothing": lambda rows: [(-1, -1)],
    "first": lambda rows: [next(rows)],
    "three": lambda rows: list(itertools.islice(rows, 3)),
    "all": lambda rows: rows,
    "generator": lambda rows: (row for row in rows),
    "no row": lambda rows: [],
    "dicts": lambda rows: ({"n": row.n, "k": row["k"]} for row in rows),
    "kept": lambda rows: reversed(list(rows)),
}


@pytest.mark.sample("values")
@pytest.mark.parametrize("reader", READERS)
def test_a_function_may_read_as_much_of_a_group_as_it_likes(two_environments, reader):
    rows = [(n % 13, n) for n in range(3000)]
    data = two_environments.from_rows(rows, KEY_AND_NUMBER)
    result = data.group_by("k").reduce(READERS[reader], KEY_AND_NUMBER).collect()
    if reader in ("first", "three"):
        size = 1 if reader == "first" else 3
        assert {k: sum(1 for row in result if row.k == k) for k in range(13)} == dict.fromkeys(range(13), size)
        assert set(result) <= set(rows)
    else:
        expected = {"nothing": [(-1, -1)] * 13, "no row": []}.get(reader, rows)
        assert_same_rows(result, expected)


def test_rows_of_a_group_are_not_those_of_the_next_one(environment):
    kept = []

    def late(rows):
        kept.append(rows)
        for old in kept[:-1]:
            yield from old

    data = environment.from_rows([(n % 5, n) for n in range(100)], KEY_AND_NUMBER)
    assert data.group_by("k").reduce(late, KEY_AND_NUMBER).collect() == []


def test_reduce_without_keys_is_one_group_also_of_nothing(any_environment):
    data = any_environment.from_arrow(pa.table({"a": range(5000)}))
    assert data.group_by().reduce(lambda rows: [(sum(row.a for row in rows),)], ONE).collect() == [(12_497_500,)]
    nothing = data.filter(col("a") < 0)
    assert nothing.group_by().reduce(lambda rows: [(len(list(rows)),)], ONE).collect() == [(0,)]
    assert nothing.group_by("a").reduce(lambda rows: [(1,)], ONE).collect() == []
    assert nothing.co_group(nothing, "a", lambda left, right: [(1,)], ONE).collect() == []


def test_rows_of_a_group_come_in_the_order_of_a_sort_before_it(any_environment):
    rows = [((n * 7919) % 10, (n * 104_729) % 1000) for n in range(2000)]
    data = any_environment.from_rows(rows, KEY_AND_NUMBER).sort("n", descending=True)

    def is_ordered(rows):
        numbers = [row.n for row in rows]
        return [(int(numbers == sorted(numbers, reverse=True)),)]

    assert_same_rows(data.group_by("k").reduce(is_ordered, ONE).collect(), [(1,)] * 10)


def both(left, right):
    yield from ((row.k, row.n) for row in left)
    yield from ((row.k, row.m) for row in right)


def right_first(left, right):
    yield from ((row.k, row.m) for row in right)
    yield from ((row.k, row.n) for row in left)


def in_turn(left, right):
    for one, other in itertools.zip_longest(left, right):
        if one is not None:
            yield one.k, one.n
        if other is not None:
            yield other.k, other.m


def left_after_a_look(left, right):
    first = next(left, None)
    rights = [(row.k, row.m) for row in right]
    yield from rights
    if first is not None:
        yield tuple(first)
    yield from left


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("reader", [both, right_first, in_turn, left_after_a_look])
def test_co_group_sides_may_be_read_in_any_order(two_environments, reader):
    left = [(n % 17 or None, n) for n in range(2000)]
    right = [(n % 23 or None, -n) for n in range(900)]
    env = two_environments
    others = env.from_rows(right, pa.schema([("k", pa.int32()), ("m", pa.int64())]))
    data = env.from_rows(left, KEY_AND_NUMBER).co_group(others, "k", reader, KEY_AND_NUMBER)
    assert_same_rows(data.collect(), left + right)


def test_co_group_widens_keys_and_keeps_names(environment):
    left = environment.from_rows([(1, "l"), (2, "m")], pa.schema([("k", pa.int8()), ("text", pa.string())]))
    right = environment.from_rows([(2.0, "r"), (2.5, "s")], pa.schema([("k", pa.float64()), ("text", pa.string())]))
    schema = pa.schema([("k", pa.float64()), ("t", pa.string())])

    def join(lefts, rights):
        rows = [*lefts, *rights]
        yield rows[0].k, "".join(row["text"] for row in rows)

    assert_same_rows(left.co_group(right, "k", join, schema).collect(), [(1.0, "l"), (2.0, "mr"), (2.5, "s")])
    with pytest.raises(SchemaError, match="no common type"):
        left.co_group(right.select("text", col("text").alias("k")), "k", join, schema)
    with pytest.raises(SchemaError, match="'nothing'"):
        left.co_group(right, "nothing", join, schema)
    with pytest.raises(SchemaError, match="schema"):
        left.group_by("k").reduce(join, None)
    assert "co_group" in left.co_group(right, "k", join, schema).explain()


def test_a_data_set_may_be_co_grouped_with_itself(any_environment):
    data = any_environment.from_rows([(n % 7, n) for n in range(400)], KEY_AND_NUMBER)

    def sizes(left, right):
        yield sum(1 for _ in left) * 1000 + sum(1 for _ in right), 0

    expected = [(len(range(k, 400, 7)) * 1001, 0) for k in range(7)]
    assert_same_rows(data.co_group(data, "k", sizes, KEY_AND_NUMBER).collect(), expected)


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_group_with_nearly_all_rows_streams_through_six_pages(open_environment, mode):
    env = open_environment(**{**SIX_PAGES, "python.execution-mode": mode})
    table = pa.table({"k": [0 if n % 100 else n for n in range(60_000)], "n": range(60_000), "t": ["x" * 50] * 60_000})
    data = env.from_arrow(table)
    schema = pa.schema([("k", pa.int64()), ("count", pa.int64()), ("total", pa.int64())])
    numbers = rows_of(table)
    expected = [(rows[0][0], len(rows), sum(row[1] for row in rows)) for rows in groups_of(numbers).values()]
    assert_same_rows(data.group_by("k").reduce(sums, schema).collect(), expected)

    def count_right_first(left, right):
        rights = sum(1 for _ in right)
        yield sum(1 for _ in left), rights

    sides = data.co_group(data.filter(col("k") > 50_000), "k", count_right_first, KEY_AND_NUMBER).collect()
    assert sum(row.k for row in sides) == 60_000
    assert sum(row.n for row in sides) == 99
    assert max(row.k for row in sides) == 59_401


def test_an_error_in_a_group_names_function_place_and_row(environment):
    def fails(rows):
        for row in rows:
            if row.n == 57:
                raise ValueError("no such group")
            yield row.k, row.n

    data = environment.from_rows([(n % 5, n) for n in range(100)], KEY_AND_NUMBER)
    with pytest.raises(JobExecutionError) as caught:
        data.group_by("k").reduce(fails, KEY_AND_NUMBER).collect()
    text = str(caught.value)
    assert text.splitlines()[0] == "ValueError: no such group"
    assert "fails" in text
    assert f"test_group_functions.py, line {fails.__code__.co_firstlineno + 3})" in text
    assert "n=57" in text
    with pytest.raises(JobExecutionError, match="reduce must return an iterable of rows, not NoneType"):
        data.group_by("k").reduce(lambda rows: None, KEY_AND_NUMBER).collect()
    with pytest.raises(JobExecutionError, match=r"returned .x. .str. for column 'n' of type int64"):
        data.group_by("k").reduce(lambda rows: [(1, "x")], KEY_AND_NUMBER).collect()
