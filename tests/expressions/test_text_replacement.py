"""The first match of a regular expression in each text, replaced."""

from itertools import product

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, col
from tests.expressions.function_oracle import compute

#: all short texts of some letters, of which one takes two bytes, and what is longer
TEXTS = ["".join(letters) for size in range(5) for letters in product("ab1é,", repeat=size)]
TEXTS += [None, "a" * 70, "(ab)1", "a\nb", None]
#: patterns without groups, and with one at least
PLAIN = ["a+", "^a", "b$", r"\Bb", r"(?:a\b)", "[[:alpha:](]b", "é|1", "a??b", "^", "x", r"\Q,a\E", "(?m)^b"]
GROUPED = [r"(a)(b)?", "(?:a|(b))(1)", r"(?P<one>[^ab])", r"(?:a\b|(a))", "(^|,),?a", "(?:(1)|(b))+"]
CASES = [(pattern, new) for pattern in PLAIN for new in ("", "<>", r"[\0]", r"\\", r"\\1é", r"\0\0")]
CASES += [(pattern, new) for pattern in GROUPED for new in (r"[\1]", r"\1\0-\1", "é")]


def replaced(texts, pattern, replacement):
    return compute(col("x").call("str_replace", pattern, replacement, regex=True, first=True), x=texts)


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()])
def test_the_first_match_is_replaced_as_duckdb_replaces_it(data_type):
    texts = pa.array(TEXTS, data_type)
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"x": texts}))
        for number, (pattern, replacement) in enumerate(CASES):
            skipped = number % 4
            found = replaced(texts.slice(skipped), pattern, replacement)
            found.validate(full=True)
            assert found.type == data_type
            query = connection.execute("SELECT regexp_replace(x, ?, ?) FROM rows", [pattern, replacement])
            wanted = [row[0] for row in query.fetchall()][skipped:]
            assert found.to_pylist() == wanted, (pattern, replacement)


def test_what_stands_around_a_match_decides_about_it():
    assert replaced(pa.array(["ab", "a", "ba"]), r"(?:a\b|(a))", r"[\1]").to_pylist() == ["[a]b", "[]", "b[]"]
    assert replaced(pa.array(["a,x"]), "(^|,),?x", r"<\1>").to_pylist() == ["a<,>"]
    assert replaced(pa.array(["ax"]), r"\Bx", "y").to_pylist() == ["ay"]


def test_groups_are_those_of_the_pattern_where_only_some_are_used():
    pattern = r"([a-z]+)\((\d+)(?:,(\d+))?\)"
    assert replaced(pa.array(["f(1,2)", "g(3)"]), pattern, r"\3/\1").to_pylist() == ["2/f", "/g"]


def test_nulls_and_constants_have_a_replacement_too():
    assert replaced(pa.nulls(2, pa.string()), "a", "b").to_pylist() == [None, None]
    assert replaced(pa.array([], pa.string()), "a", "b").to_pylist() == []
    with Environment() as env:
        constants = env.sql(
            "SELECT regexp_replace('xay', '(a)', '<\\1>') AS one, regexp_replace(NULL, 'a', '') AS other"
        )
        assert constants.to_arrow().to_pylist() == [{"one": "x<a>y", "other": None}]
