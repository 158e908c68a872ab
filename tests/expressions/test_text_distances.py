"""Distances of texts agree with DuckDB where characters are bytes, and count characters elsewhere."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine import col
from tests.expressions.function_oracle import by_duckdb, same, values

X, Y = col("x"), col("y")
WORDS = st.text("abc", max_size=9)


@given(rows=st.lists(st.tuples(WORDS, WORDS | st.none()), min_size=1, max_size=8))
def test_similarities_are_those_of_duckdb(rows):
    columns = {name: pa.array(one, pa.string()) for name, one in zip("xy", zip(*rows, strict=True), strict=True)}
    same(values(X.str.jaro(Y), **columns), by_duckdb("jaro_similarity(x, y)", **columns), 1e-12)
    same(values(X.str.jaro_winkler(Y), **columns), by_duckdb("jaro_winkler_similarity(x, y)", **columns), 1e-12)
    assert values(X.str.levenshtein(Y), **columns) == by_duckdb("levenshtein(x, y)", **columns)


def test_characters_count_whatever_their_bytes():
    column = pa.array(["martha", "mürthä", "日本語x", None], pa.large_string())
    found = values(X.str.jaro_winkler(Y), x=column, y=["marhta", "mürhtä", "日本語y", "a"])
    assert [None if one is None else round(one, 4) for one in found] == [0.9611, 0.9611, 0.8833, None]
    assert values(X.str.levenshtein("日本"), x=column) == [6, 6, 2, None]
