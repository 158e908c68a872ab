"""Options that others call otherwise say what to write, each call knows its own, and what is advised is there."""

import inspect
import re

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.api.data_set import DataSet
from engine.api.other_options import OTHER_OPTIONS
from engine.csv.options import CsvReadOptions
from engine.outputs.sink_options import CsvSinkOptions, IcebergOptions, SinkOptions


@pytest.fixture
def rows(env):
    return env.from_arrow(pa.table({"a": [1], "b": ["x"]}))


MISTAKES = [
    (lambda e, d: e.read_csv("a", sep=";"), "read_csv() has no option sep=: write delimiter="),
    (lambda e, d: e.read_csv("a", skiprows=1), "read_csv() has no option skiprows=: write skip_rows="),
    (lambda e, d: e.read_csv("a", na_values="-"), "read_csv() has no option na_values=: write null_values="),
    (lambda e, d: e.read_csv("a", date_formats={}), "read_csv() has no option date_formats=: write date_format="),
    (lambda e, d: e.read_csv("a", delimeter=";"), "read_csv() has no option delimeter=: did you mean delimiter=?"),
    (lambda e, d: e.read_json("a", bad_rows_path="b"), "read_json() has no option bad_rows_path=: write on_bad_row="),
    (lambda e, d: e.read_parquet("a", columns=["a"]), "read_parquet() has no option columns=: write .select(names)"),
    (lambda e, d: d.write_csv("a", sep=";"), "write_csv() has no option sep=: write delimiter="),
    (lambda e, d: d.write_csv("a", na_rep="-"), "write_csv() has no option na_rep=: write null_text="),
    (lambda e, d: d.write_csv("a", quote_style="x"), "write_csv() has no option quote_style=: write quoting="),
    (lambda e, d: d.write_parquet("a", partition_cols="a"), "write_parquet() has no option partition_cols=: write"),
    (
        lambda e, d: d.write_json("a", partitionby="a"),
        "write_json() has no option partitionby=: did you mean partition_by",
    ),
    (lambda e, d: d.write_records("a", sort_by="a"), "write_records() has no option sort_by=: write sort(by)"),
    (lambda e, d: d.write_iceberg("a.b", propertys={}), "write_iceberg() has no option propertys=: did you mean prop"),
    (lambda e, d: d.sort("a", ascending=False), "sort() has no option ascending=: write descending="),
    (lambda e, d: d.join(d, on="a", suffixes="x"), "join() has no option suffixes=: write suffix="),
    (lambda e, d: d.head(n=2), "head() has no option n=: it has count"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[message.partition(":")[0] for _, message in MISTAKES])
def test_an_option_of_another_name_says_what_to_write(env, rows, mistake, message):
    with pytest.raises(TypeError) as error:
        mistake(env, rows)
    assert str(error.value).startswith(message)


def test_names_of_columns_are_no_options(rows):
    assert rows.select(c=col("a")).with_columns(sep=col("c") + 1).columns == ["c", "sep"]


def options_of(call):
    found = getattr(Environment if call.startswith("read_") else DataSet, call)
    names = set(inspect.signature(found).parameters)
    others = {"read_csv": CsvReadOptions, "write_csv": CsvSinkOptions, "write_iceberg": IcebergOptions}
    more = others.get(call, SinkOptions)
    return names | set(more.__annotations__) if "options" in names else names


def test_no_name_is_an_option_and_all_that_are_advised_are():
    everywhere = set().union(*map(options_of, [*OTHER_OPTIONS, "read_csv"]))
    for call, names in OTHER_OPTIONS.items():
        own = options_of(call)
        for name, advice in names.items():
            assert name not in own, f"{call}: {name} is an option"
            for option in re.findall(r"(\w+)=", advice):
                assert option in everywhere, f"{call}: {option} is no option"


def test_calls_keep_their_names_signatures_and_docs():
    assert list(inspect.signature(Environment.read_csv).parameters)[:3] == ["self", "path", "schema"]
    assert Environment.read_csv.__name__ == "read_csv"
    assert DataSet.sort.__doc__.startswith("Return the rows in total order")


def test_arguments_that_are_missing_are_told_of_the_call_as_it_is_written(env):
    data = env.from_rows([(1,)], pa.schema([("a", pa.int64())]))
    with pytest.raises(TypeError, match=r"^write_csv\(\) missing 1 required positional argument: 'path'"):
        data.write_csv()
