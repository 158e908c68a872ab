"""LIKE and plain regular expressions by native steps find what Arrow's do."""

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import SchemaError, col
from engine.expressions.compile import compile_operand
from engine.expressions.evaluate import LOWERINGS, evaluate
from engine.expressions.program_builder import build_program

LETTERS = st.text("ab\nß", max_size=6)
LONG = st.lists(st.sampled_from(["special", "requests", "s", "spec", " ", "\n", "ß" * 9]), max_size=12).map("".join)
TEXTS = st.lists(st.none() | LETTERS | LONG, max_size=70)
WORDS = ["a", "ab", "s", "ß", "special"]
TYPES = st.sampled_from([pa.string(), pa.large_string()])


def is_native(expression, data_type):
    operand = compile_operand(expression.expression, pa.schema([("t", data_type)]))
    return build_program([operand], LOWERINGS)[0] is not None


@given(
    st.lists(st.none() | LETTERS | LONG, max_size=70),
    st.lists(st.sampled_from(["a", "ab", "%", "s", "ß", "special"])),
    TYPES,
)
def test_like_finds_what_arrow_finds(texts, parts, data_type):
    pattern = "".join(parts)
    batch = pa.record_batch({"t": pa.array(texts, data_type)})
    assert evaluate(col("t").str.like(pattern).expression, batch).equals(pc.match_like(batch["t"], pattern))


@given(
    st.lists(st.none() | LETTERS | LONG, max_size=70),
    st.lists(st.sampled_from(["a", "ab", "s", "ß", "special"]), min_size=1),
    TYPES,
)
def test_words_in_order_are_found_within_a_line(texts, words, data_type):
    pattern = ".*".join(words)
    batch = pa.record_batch({"t": pa.array(texts, data_type)})
    found = evaluate(col("t").str.contains(pattern, regex=True).expression, batch)
    assert found.equals(pc.match_substring_regex(batch["t"], pattern))


@given(st.lists(LONG, max_size=70), st.sampled_from(["s", "sp", "specials", "requests" * 3, "special requests"]))
def test_parts_are_found_wherever_they_stand(texts, part):
    batch = pa.record_batch({"t": pa.array(texts, pa.string())})
    assert evaluate(col("t").str.contains(part).expression, batch).to_pylist() == [part in text for text in texts]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("t").str.like("%special%requests%"), True),
        (col("t").str.like("spec_al"), False),
        (col("t").str.like("100\\%"), False),
        (col("t").str.ilike("%a%"), False),
        (col("t").str.like("%".join("a" * 20)), False),
        (col("t").str.contains("special.*requests", regex=True), True),
        (col("t").str.contains("special.+requests", regex=True), False),
        (col("t").str.contains("^special", regex=True), False),
        (col("t").str.contains("a|b", regex=True), False),
        (col("t").str.contains("100%", regex=True), False),
    ],
    ids=str,
)
def test_patterns_that_say_more_are_left_to_arrow(expression, expected):
    assert is_native(expression, pa.string()) == expected
    texts = ["special requests", "special\nrequests", "100%", "specal", "a", ""]
    batch = pa.record_batch({"t": pa.array(texts, pa.string())})
    assert len(evaluate(expression.expression, batch)) == len(texts)


@given(st.lists(st.none() | st.text("ab\\%_\n.(é", max_size=5), max_size=20), st.text("ab\\%_\n.(é", max_size=5), TYPES)
def test_patterns_with_a_backslash_mean_what_they_mean_in_duckdb(texts, pattern, data_type):
    pattern += "\\" * (len(pattern) - len(pattern.rstrip("\\")) & 1)  # at the end it is written twice
    batch = pa.record_batch({"t": pa.array(texts, data_type)})
    with duckdb.connect() as oracle:
        oracle.register("t", pa.table({"t": pa.array(texts, pa.string()), "i": range(len(texts))}))
        for name in ("like", "ilike"):
            rows = oracle.execute(f"SELECT t {name} ? ESCAPE '\\' FROM t ORDER BY i", [pattern]).fetchall()
            assert evaluate(getattr(col("t").str, name)(pattern).expression, batch).to_pylist() == [x for (x,) in rows]


def test_a_pattern_does_not_end_with_its_escape():
    with pytest.raises(SchemaError, match="ends with its escape; a backslash is written twice in it"):
        evaluate(col("t").str.like("a\\").expression, pa.record_batch({"t": ["a"]}))
