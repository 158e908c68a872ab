"""Functions whose constants are columns give each row what they give with its constant."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from engine import DataError, SchemaError, col
from engine.expressions.evaluate import compile_expression, evaluate
from engine.expressions.text import expression_text

TEXTS = ["", "a", "ab", "a.b,c", "Abc", "äöü", "aaa", None]
PATTERNS = ["a", "b", ",", "%", "a%", ".", None]
NUMBERS = [-2, -1, 0, 1, 2, 7, None]
#: text -> call over it, a pattern and a number
CALLS = {
    "like": lambda s, p, _n: s.str.like(p),
    "ilike": lambda s, p, _n: s.str.ilike(p),
    "matches": lambda s, p, _n: s.str.matches(p),
    "contains": lambda s, p, _n: s.str.contains(p),
    "starts_with": lambda s, p, _n: s.str.starts_with(p),
    "find": lambda s, p, _n: s.str.find(p),
    "count_matches": lambda s, p, _n: s.str.count_matches(p),
    "extract": lambda s, p, _n: s.str.extract(p, 0),
    "extract_all": lambda s, p, _n: s.str.extract_all(p),
    "split": lambda s, p, _n: s.str.split(p),
    "replace": lambda s, p, _n: s.str.replace(p, p + p),
    "strip": lambda s, p, _n: s.str.strip(p),
    "slice": lambda s, _p, n: s.call("str_slice", start=n, stop=None),
    "slice to": lambda s, _p, n: s.call("str_slice", start=0, stop=n),
    "concat_ws": lambda s, p, _n: s.str.concat_ws(p, s),
}


def table(rows: int) -> pa.RecordBatch:
    chance = random.Random(rows)
    columns = [[chance.choice(values) for _ in range(rows)] for values in (TEXTS, PATTERNS, NUMBERS)]
    types = (pa.string(), pa.string(), pa.int64())
    return pa.record_batch(dict(zip("spn", map(pa.array, columns, types), strict=True)))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_each_row_has_the_value_that_its_constant_gives(name: str, rows: int) -> None:
    batch = table(rows)
    varying = evaluate(CALLS[name](col("s"), col("p"), col("n")).expression, batch)
    wanted = []
    for row in range(rows):
        one = batch.slice(row, 1)
        pattern, number = one["p"][0].as_py(), one["n"][0].as_py()
        call = CALLS[name](col("s"), pattern or "-", number or 0)
        read = col("p") if name not in ("slice", "slice to") else col("n")
        is_null = evaluate(read.is_null().expression, one)[0].as_py()
        wanted.append(None if is_null else evaluate(call.expression, one)[0].as_py())
    assert varying.to_pylist() == wanted
    assert varying.type == compile_expression(CALLS[name](col("s"), "a", 1).expression, batch.schema).type


def test_a_part_between_separators_that_are_columns() -> None:
    batch = pa.record_batch({"s": ["a,b", "a.b", None], "p": [",", ".", ","], "n": [2, -2, 1]})
    found = evaluate(col("s").call("str_split_part", col("p"), n=col("n")).expression, batch)
    assert found.to_pylist() == ["b", "a", None]


def test_dictionaries_are_read_as_their_values() -> None:
    batch = pa.record_batch({"s": pa.array(["ab", "b", "ab"]), "p": pa.array(["a%", "a%", "b"])})
    coded = pa.record_batch([column.dictionary_encode() for column in batch.columns], names=["s", "p"])
    compiled = compile_expression(col("s").str.like(col("p")).expression, batch.schema)
    assert compiled(coded).to_pylist() == compiled(batch).to_pylist() == [True, False, False]


def test_a_row_whose_pattern_is_none_is_in_the_error() -> None:
    batch = pa.record_batch({"s": ["a", "b"], "p": ["a", "("]})
    with pytest.raises(DataError, match=r"matches\(s, p\): .*missing \).*in a row with s='b', p='\('"):
        evaluate(col("s").str.matches(col("p")).expression, batch)


def test_constants_of_other_types_are_refused_when_it_is_planned() -> None:
    schema = pa.schema([("s", pa.string()), ("f", pa.float64())])
    with pytest.raises(SchemaError, match="a column in the place of a constant is one of texts or of integers"):
        compile_expression(col("s").str.like(col("f")).expression, schema)


def test_it_is_shown_as_it_was_written() -> None:
    assert expression_text(col("s").str.like(col("p")).expression) == "like(s, p)"


def test_an_empty_separator_parts_nothing() -> None:
    batch = pa.record_batch({"s": ["ab", "a.b", "ab", None], "p": ["", ".", "", ""], "n": [1, 2, 2, -1]})
    found = evaluate(col("s").call("str_split_part", col("p"), n=col("n")).expression, batch)
    assert found.to_pylist() == ["ab", "b", "", None]


def test_an_error_names_no_columns_of_its_own() -> None:
    batch = pa.record_batch({"s": ["a", "b"], "p": [",", ""]})
    with pytest.raises(
        DataError, match=r"^split\(s, p\): the separator of split must not be empty; in a row with s='b'"
    ):
        evaluate(col("s").str.split(col("p")).expression, batch)
