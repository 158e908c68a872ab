"""Functions of texts agree with Python and DuckDB: empty texts, characters of many bytes, patterns of all kinds."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col
from engine.expressions.infer import infer_type
from engine.expressions.text_patterns import named_groups
from tests.expressions.function_oracle import TEXTS, by_duckdb, compute, values

X = col("x")
S = X.str
MORE = [*TEXTS, "aXbXc", "XX", "Xa", "aaa", "a%b", "a_b", "\ufdd0a1\ufdd1", "ab12cd345", "\\E", "ǅ", "i̇"]
#: ours, and Python's for one text
AS_PYTHON = {
    "reverse": (S.reverse(), lambda text: text[::-1]),
    "repeat": (S.repeat(2), lambda text: text * 2),
    "repeat_never": (S.repeat(-1), lambda _: ""),
    "left": (S.left(2), lambda text: text[:2]),
    "left_negative": (S.left(-1), lambda text: text[:-1]),
    "right": (S.right(2), lambda text: text[-2:]),
    "right_none": (S.right(0), lambda _: ""),
    "right_negative": (S.right(-1), lambda text: text[1:]),
    "pad_left": (S.pad_left(4, "é"), lambda text: text.rjust(4, "é")),
    "pad_right": (S.pad_right(4), lambda text: text.ljust(4)),
    "strip_prefix": (S.strip_prefix("a"), lambda text: text.removeprefix("a")),
    "strip_suffix": (S.strip_suffix("😀"), lambda text: text.removesuffix("😀")),
    "strip_nothing": (S.strip_suffix(""), lambda text: text),
    "find": (S.find("b"), lambda text: text.find("b")),
    "find_wide": (S.find("😀"), lambda text: text.find("😀")),
    "find_quote": (S.find("\\E"), lambda text: text.find("\\E")),
    "find_nothing": (S.find(""), lambda text: text.find("")),
    "split": (S.split("X"), lambda text: text.split("X")),
    "split_regex": (S.split("[0-9]+", regex=True), lambda text: re.split("[0-9]+", text)),
    "count": (S.count_matches("a"), lambda text: text.count("a")),
    "count_regex": (S.count_matches("[a-c]", regex=True), lambda text: len(re.findall("[a-c]", text))),
    "matches": (S.matches("^a.*c$"), lambda text: bool(re.search("^a.*c$", text))),
    "extract_all": (S.extract_all("[0-9]"), lambda text: re.findall("[0-9]", text)),
    "extract_all_groups": (S.extract_all("([0-9])([0-9])"), lambda text: re.findall("[0-9][0-9]", text)),
    "extract_all_ends": (S.extract_all("^[a-zA-Z]|c$"), lambda text: re.findall("^[a-zA-Z]|c$", text)),
    "replace_all": (S.replace_all("a", ""), lambda text: text.replace("a", "")),
}


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("function", AS_PYTHON)
def test_functions_of_texts_are_those_of_python(function, data_type):
    expression, expected = AS_PYTHON[function]
    column = pa.array(MORE, data_type)
    wanted = [None if text is None else expected(text) for text in MORE]
    assert values(expression, x=column) == wanted
    assert values(expression, x=column.slice(3, 9)) == wanted[3:12]
    assert values(expression, x=column.slice(0, 0)) == []


AS_DUCKDB = {
    "like": (S.like("a%"), "x LIKE 'a%'"),
    "like_one": (S.like("a_b"), "x LIKE 'a_b'"),
    "like_line": (S.like("a_b%"), "x LIKE 'a_b%'"),
    "like_escape": (S.like("a\\%b"), "x LIKE 'a\\%b' ESCAPE '\\'"),
    "ilike": (S.ilike("%AB%"), "x ILIKE '%AB%'"),
    "split_part": (S.split_part("X", 2), "split_part(x, 'X', 2)"),
    "split_part_back": (S.split_part(",", -1), "split_part(x, ',', -1)"),
    "split_part_beyond": (S.split_part(",", 9), "split_part(x, ',', 9)"),
    "concat_ws": (S.concat_ws("-", None, col("x")), "concat_ws('-', x, NULL, x)"),
    "extract": (
        S.extract("([a-z]+)([0-9])", 2),
        "CASE WHEN regexp_matches(x, '([a-z]+)([0-9])') THEN regexp_extract(x, '([a-z]+)([0-9])', 2) END",
    ),
}


@pytest.mark.parametrize("function", AS_DUCKDB)
def test_functions_of_texts_agree_with_duckdb(function):
    expression, query = AS_DUCKDB[function]
    assert values(expression, x=MORE) == by_duckdb(query, x=MORE)


@given(
    texts=st.lists(st.none() | st.text(alphabet="ab1é\n\ufdd0", max_size=8), min_size=1),
    pattern=st.sampled_from(["a+", "b?", "[a1]", "(a|b)1", "(?i)A", "é", "\\n", "a*?b"]),
)
def test_all_matches_are_those_of_python(texts, pattern):
    if pattern == "b?":
        pattern = "b"  # Python and RE2 differ in where nothing matches
    wanted = [None if text is None else [each.group() for each in re.finditer(pattern, text)] for text in texts]
    assert values(S.extract_all(pattern), x=pa.array(texts, pa.string())) == wanted
    first = [None if not one else one[0] for one in wanted]
    assert values(S.extract(pattern, 0), x=pa.array(texts, pa.string())) == first


def test_groups_are_counted_where_they_are_groups():
    written = {
        "(a)(?:b)(c)": ("(?P<g0>(?P<g1>a)(?:b)(?P<g2>c))", 2),
        r"\((a)[(](b)": (r"(?P<g0>\((?P<g1>a)[(](?P<g2>b))", 2),
        "[](](x)": ("(?P<g0>[](](?P<g1>x))", 1),
        "(?P<year>[0-9])(?i)x": ("(?P<g0>(?P<g1>[0-9])(?i)x)", 1),
        r"\Q(a)\E(b)": (r"(?P<g0>\Q(a)\E(?P<g1>b))", 1),
    }
    assert {pattern: named_groups(pattern) for pattern in written} == written
    assert values(S.extract("(?P<year>[0-9]{4})-([0-9]+)", 2), x=["2024-12"]) == ["12"]


def test_titles_begin_words():
    assert values(S.title(), x=["new york", "ÉTÉ à", "", None]) == ["New York", "Été À", "", None]
    assert values(S.capitalize(), x=["new YORK", "éTÉ", "", None]) == ["New york", "Été", "", None]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (S.split(""), "the separator of split must not be empty"),
        (S.count_matches(""), "give count_matches a pattern"),
        (S.matches("(a"), "missing \\)"),
        (S.extract("a", 1), "there is no group 1: the pattern has 0"),
        (S.extract_all("(a"), "missing \\)"),
        (S.like(col("n")), "the pattern of like must be a constant string"),
        (col("n").str.reverse(), r"reverse\(n\): n is int64; .str works on strings; cast"),
        (S.repeat("a"), "it works on integers"),
    ],
)
def test_patterns_that_are_none_are_said_before_anything_runs(expression, message):
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, pa.schema({"x": pa.string(), "n": pa.int64()}))


@pytest.mark.parametrize(
    "wrong",
    [lambda: S.pad_left(3, "ab"), lambda: S.split_part("a", 0), lambda: S.extract("a", "b"), lambda: S.right("a")],
)
def test_arguments_of_the_wrong_kind_are_refused_where_they_are_written(wrong):
    with pytest.raises(SchemaError):
        wrong()


def test_what_is_repeated_too_often_is_an_error_that_names_the_row():
    assert values(S.repeat(col("n")), x=["ab", "", None, "a"], n=[2, 2**62, 1, None]) == ["abab", "", None, None]
    with pytest.raises(DataError, match=r"more than 1 GiB; in a row with x='ab', n=4611686018427387904"):
        values(S.repeat(col("n")), x=["a", "ab"], n=[1, 2**62])


def test_bytes_that_are_no_text_are_an_error_that_shows_them():
    column = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    with pytest.raises(DataError, match="UTF8"):
        compute(S.title(), x=column)
