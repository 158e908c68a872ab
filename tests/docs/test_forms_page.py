"""The page of forms says what the engine does, and of other engines what they do."""

import re

import duckdb
import pandas as pd
import polars as pl
import pytest

from docs.generators.forms_page import PATTERNS, VALUES, decimals, forms_page, patterns, sorts
from engine import Environment

pytestmark = pytest.mark.integration


@pytest.fixture
def env():
    with Environment({"parallelism.default": 1}) as environment:
        yield environment


def test_nulls_of_sorts_lie_where_the_page_says(env):
    places = {name: found for name, *found in sorts(env)}
    assert places == {
        "`sort`": ["first", "first"],
        "`over(order_by=)`": ["first", "first"],
        "SQL `ORDER BY`": ["last", "first"],
    }
    for descending in (False, True):
        assert pl.Series([1, None, 2]).sort(descending=descending)[0] is None
        assert pd.Series([1, None, 2]).sort_values(ascending=not descending).isna().iloc[-1]
        word = "DESC" if descending else "ASC"
        assert duckdb.sql(f"SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x {word}").fetchall()[-1] == (None,)


def test_patterns_find_what_re2_finds_in_duckdb(env):
    for pattern, found in patterns(env).items():
        try:
            query = duckdb.execute("SELECT regexp_extract_all('Ab1 äb2', $1)", [pattern])
            ((expected,),) = query.fetchall()
            assert found == (", ".join(f"`{text}`" for text in expected) or "nothing"), pattern
        except duckdb.Error:
            assert found == "refused", pattern
    assert {"refused"} < set(patterns(env).values())


def test_a_result_of_decimals_has_at_most_38_digits(env):
    for text, kind in decimals(env).items():
        digits = re.match(r"decimal128\((\d+), \d+\)", kind)
        assert kind == "double" or int(digits[1]) <= 38, text


def test_the_page_has_a_row_of_each_pattern_and_value():
    page = forms_page()
    assert all(f"| `{pattern}` |" in page for pattern in PATTERNS)
    assert all(f"\n| {name} | " in page for name in VALUES)
    assert '| empty text | `""` | `{"x":""}` |' in page
