"""Rows and functions without a schema: type hints or the first rows decide, and the program's author is told."""

import datetime
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, Optional, TypedDict

import pyarrow as pa
import pytest

from engine import DreyWarning, Environment, JobExecutionError, PlanError, SchemaError
from engine.functions.schema_inference import schema_text

NOW = datetime.datetime(2024, 5, 1)

pytestmark = pytest.mark.usefixtures("one_zygote")


class Net(NamedTuple):
    id: int
    net: float
    day: datetime.date | None
    tags: list[str]


class Label(TypedDict):
    id: int
    label: Optional[str]  # noqa: UP045 - the older way is hinted too


@dataclass
class Person:
    name: str
    age: int


@pytest.fixture(scope="module")
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


@pytest.fixture
def data(env):
    return env.from_rows([(n, f"t{n}") for n in range(300)], pa.schema([("id", pa.int64()), ("text", pa.string())]))


def to_net(row) -> Net:
    return Net(row.id, row.id / 2, None, [row.text])


def to_labels(row) -> Iterator[Label]:
    yield {"id": row.id, "label": row.text}


def to_pair(row) -> tuple[int, str]:
    return row.id, row.text


NET = pa.schema([("id", pa.int64()), ("net", pa.float64()), ("day", pa.date32()), ("tags", pa.list_(pa.string()))])
LABEL = pa.schema([("id", pa.int64()), ("label", pa.string())])
PAIR = pa.schema([("column_0", pa.int64()), ("column_1", pa.string())])


@pytest.mark.quick
def test_the_return_type_of_a_function_is_its_schema_and_nothing_is_run(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert data.map(to_net).schema == NET
        assert data.flat_map(to_labels).schema == LABEL
        assert data.map(to_pair).schema == PAIR

        def net_of_group(rows) -> Iterator[Net]:
            yield from map(to_net, rows)

        assert data.map_partition(net_of_group).schema == NET
        assert data.group_by("id").reduce(net_of_group).schema == NET
        assert data.co_group(data, "id", lambda_of(Net)).schema == NET
    assert data.map(to_pair).count() == 300


def lambda_of(kind):
    def function(left, right) -> list[kind]:
        return []

    return function


@pytest.mark.parametrize(
    ("kind", "function", "schema", "text"),
    [
        (
            "map",
            lambda row: {"a": row.id, "b": row.text},
            [("a", pa.int64()), ("b", pa.string())],
            '("b", pa.string())',
        ),
        ("map", lambda row: (row.id * 0.5, None if row.id < 9 else Decimal("1.25")), None, "pa.decimal128(38, 2)"),
        ("map", lambda row: row, [("id", pa.int64()), ("text", pa.string())], '[("id", pa.int64())'),
        ("flat_map", lambda row: [(word,) for word in row.text], [("column_0", pa.string())], '("column_0", pa'),
    ],
)
def test_the_first_rows_decide_where_there_are_no_hints_and_it_is_told(data, kind, function, schema, text):
    schema = pa.schema(schema or [("column_0", pa.float64()), ("column_1", pa.decimal128(38, 2))])
    with pytest.warns(DreyWarning, match=rf"^{kind}\(.*no schema= was passed, .* first 100 rows") as told:
        made = getattr(data, kind)(function)
    assert made.schema == schema
    (message,) = [str(each.message) for each in told]
    assert text in message and f"pass schema={'pa.schema(['}" in message
    assert told[0].filename == __file__
    assert eval(message.partition("pass schema=")[2], {"pa": pa}) == schema
    assert made.count() >= 300


@pytest.mark.parametrize(
    ("function", "cause", "advice"),
    [
        (lambda row: row.id * 2, "map(<lambda>): 0 (int, row 0) is no row", "a row is a dict"),
        (
            lambda row: (row.id, None),
            "map(<lambda>): column 'column_1' is null in all of the first 100 rows",
            "schema=",
        ),
        (lambda row: ("x" if row.id else 1,), "map(<lambda>): column 'column_0' has values of no one type", "schema="),
        (lambda row: (row.id,) * (1 + row.id % 2), "map(<lambda>): row 1 has 2 values, the first one 1", "column_0"),
        (lambda row: row.price, "map(<lambda>): AttributeError: 'price'; the row has id, text", "Row(id=0"),
        (
            type("Rich", (), {"open": lambda *_: None, "map": lambda _, row: row})(),
            "map: schema= is missing",
            "NamedTu",
        ),
    ],
)
def test_functions_without_a_schema_say_why_there_is_none(data, function, cause, advice):
    with pytest.raises(SchemaError) as error:
        data.map(function)
    assert str(error.value).startswith(cause)
    assert advice in str(error.value)


def endless(row):
    while row.id == 2:
        pass
    return (row.id,)


def endless_words(row):
    yield endless(row)


@pytest.mark.parametrize(("kind", "function"), [("map", endless), ("flat_map", endless_words)])
def test_a_function_that_never_returns_is_ended_when_its_schema_is_inferred_too(kind, function):
    with Environment(config={"parallelism.default": 2, "functions.timeout": "1 s"}) as environment:
        data = environment.from_arrow(pa.table({"id": [1, 2, 3]}))
        with pytest.raises(JobExecutionError) as error:
            getattr(data, kind)(function)
    assert str(error.value).startswith(f"FunctionTimeoutError: {function.__name__} has been at work on one row for")
    assert "row: Row(id=2)" in str(error.value)


def test_the_row_that_fails_is_named_when_a_schema_is_inferred(data):
    with pytest.raises(SchemaError) as error:
        data.map(lambda row: (1 / (row.id - 7),))
    assert f"<lambda>): ZeroDivisionError: division by zero, raised in {__file__}, line" in str(error.value)
    assert "Row(id=7, text='t7')" in str(error.value)


def test_rows_that_may_fail_do_not_decide_a_schema(data):
    def inverse(row):
        return {"id": row.id, "share": 60 / (row.id % 6)}

    with pytest.warns(DreyWarning, match="first 100 rows"):
        skipped = data.map(inverse, on_error="skip")
    assert skipped.schema == pa.schema([("id", pa.int64()), ("share", pa.float64())])
    assert skipped.count() == 250
    with pytest.warns(DreyWarning, match="first 100 rows"):
        collected = data.flat_map(lambda row: [inverse(row)], on_error="collect")
        assert collected.schema.names == ["id", "share", "error", "error_place", "error_input"]


def test_a_function_that_fails_for_all_first_rows_is_told(data):
    with pytest.raises(SchemaError, match=r"ZeroDivisionError: .*Row\(id=\d+, .*one of the first rows"):
        data.map(lambda row: {"x": 1 / 0}, on_error="skip")


def test_the_first_rows_decide_for_functions_of_many_rows(data):
    def sizes(rows):
        group = list(rows)
        yield {
            "third": group[0].id % 3,
            "size": len(group),
            "share": len(group) / 300,
            "texts": [r.text for r in group],
        }

    groups = data.group_by((data["id"] % 3).alias("third"))
    with pytest.warns(DreyWarning, match=r"^reduce\(.*sizes\): no schema= was passed, .* first 100 rows"):
        made = groups.reduce(sizes)
    assert made.schema == pa.schema(
        [("third", pa.int64()), ("size", pa.int64()), ("share", pa.float64()), ("texts", pa.list_(pa.string()))]
    )
    assert [(row.third, row.size) for row in made.sort("third").collect()] == [(0, 100), (1, 100), (2, 100)]
    with pytest.warns(DreyWarning, match=r"^map_partition\("):
        total = data.map_partition(lambda rows: [(sum(row.id for row in rows),)])
    assert sum(row.column_0 for row in total.collect()) == sum(range(300))
    with pytest.warns(DreyWarning, match=r"^reduce\("):
        assert data.group_by().reduce(sizes).select("size").collect() == [(300,)]


def test_a_function_of_groups_that_fails_with_the_first_rows_is_told_with_a_row(data):
    with pytest.raises(
        SchemaError, match=r"^reduce\(.*: ZeroDivisionError: .*Row\(id=0, text='t0'\), one of the first"
    ):
        data.group_by("id").reduce(lambda rows: [(1 // next(rows).id,)])


def test_functions_of_groups_say_what_to_pass(data):
    with pytest.raises(SchemaError, match=r"^co_group: schema= is missing: pass the pyarrow.Schema .*a NamedTuple"):
        data.co_group(data, "id", lambda left, right: left)
    with pytest.raises(SchemaError, match=r"^map: expected a function"):
        data.map(5)
    with pytest.raises(SchemaError, match=r"there are no rows that a schema could be inferred from; pass schema="):
        data.filter(data["id"] < 0).map(lambda row: row)


@pytest.mark.parametrize(
    ("rows", "schema"),
    [
        ([{"a": 1, "b": "x"}, {"a": None, "b": "y"}], [("a", pa.int64()), ("b", pa.string())]),
        (
            [(1, 2.5, None), (2, 3, None)],
            [("column_0", pa.int64()), ("column_1", pa.float64()), ("column_2", pa.string())],
        ),
        ([Person("Ann", 7)], [("name", pa.string()), ("age", pa.int64())]),
        ([Net(1, 2.0, datetime.date(2024, 1, 2), ["x"])], list(zip(NET.names, NET.types, strict=True))),
    ],
)
def test_rows_without_a_schema_decide_it_and_it_is_told(env, rows, schema):
    with pytest.warns(
        DreyWarning, match=rf"^from_rows: no schema= was passed, {len(rows)} rows decided it; pass pa.sch"
    ):
        data = env.from_rows(iter(rows))
    assert data.schema == pa.schema(schema)
    assert data.count() == len(rows)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "from_rows: there are no rows that a schema could be inferred from; pass schema="),
        ([1, 2], "from_rows: 1 (int, row 0) is no row: a row is a dict"),
        ([(1,), (1, 2)], "from_rows: row 1 has 2 values, the first one 1: column_0"),
        ([{"a": 1}, {"b": 1}], "from_rows: row 0 has no b; give it as None, or call from_dicts"),
        ([(1,), ("x",)], "from_rows: column 'column_0' has values of no one type"),
        ([(2**70,)], "from_rows: column 'column_0' has values of no one type"),
        (
            [(NOW,), (NOW.replace(tzinfo=datetime.UTC),)],
            "from_rows: column 'column_0' has datetimes with a time zone and others",
        ),
    ],
)
def test_rows_that_have_no_schema_say_why(env, rows, message):
    with pytest.raises(SchemaError) as error:
        env.from_rows(rows)
    assert str(error.value).startswith(message)


def test_a_program_that_is_only_explained_runs_nothing_to_infer_a_schema(env, data, monkeypatch):
    monkeypatch.setattr("engine.targets.local.LocalExecutor.is_dry", True)
    with pytest.raises(PlanError, match=r"^a schema cannot be inferred from rows where nothing is run; pass schema="):
        data.map(lambda row: row)


class Untyped(NamedTuple):
    a: int
    b: str | None
    counts: dict[str, int]


@dataclass
class Priced:
    a: int
    price: Decimal


def test_a_return_type_that_does_not_say_all_types_is_told_with_the_column(data):
    def untyped(row) -> Untyped:
        return Untyped(1, None, {"x": 1})

    def priced(row) -> Priced:
        return Priced(1, Decimal("1.50"))

    with pytest.raises(SchemaError, match=r"'b' is null in all .*the column 'counts' is: dict\[str, int\]\)"):
        data.map(untyped)
    with pytest.warns(DreyWarning, match=r"not say of which type the column 'price' is: Decimal\); pass"):
        found = data.map(priced)
    assert found.schema == pa.schema([("a", pa.int64()), ("price", pa.decimal128(38, 2))])


@pytest.mark.quick
def test_the_text_of_a_schema_is_the_call_that_makes_it():
    kinds = [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(), pa.uuid()]
    kinds += [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3), pa.date32(), pa.date64()]
    kinds += [
        pa.timestamp("ns"),
        pa.timestamp("s", "Europe/Berlin"),
        pa.time32("ms"),
        pa.time64("us"),
        pa.duration("s"),
    ]
    kinds += [pa.decimal128(5, 2), pa.decimal256(50, 2), pa.list_(pa.date32()), pa.large_list(pa.int8())]
    kinds += [pa.list_(pa.float32(), 2), pa.map_(pa.string(), pa.list_(pa.time64("ns")))]
    kinds.append(pa.struct([("a", pa.struct([("b", kinds[-1])])), ("c", pa.bool_())]))
    schema = pa.schema([(f"c{index}", kind) for index, kind in enumerate(kinds)])
    assert eval(schema_text(schema), {"pa": pa}) == schema
