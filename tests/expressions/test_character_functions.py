"""Characters, codes and digits agree with plain Python over texts of every width, nulls and bounds of integers."""

import unicodedata
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col, format_
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import INTEGERS, TEXTS, values

X = col("x")
S = X.str
SOME = st.lists(st.none() | st.text(max_size=6), min_size=1, max_size=5)


def of_each(function, some):
    return [None if one is None else function(one) for one in some]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@given(some=SOME)
def test_texts_are_those_of_python(kind, some):
    column = pa.array(["before", *some, *TEXTS], kind).slice(1)
    some = [*some, *TEXTS]
    assert values(S.translate("aé😀b", "é€"), x=column) == of_each(
        lambda one: one.translate(str.maketrans({"a": "é", "é": "€", "😀": None, "b": None})), some
    )
    assert values(S.len_bytes(), x=column) == of_each(lambda one: len(one.encode()), some)
    assert values(S.ascii(), x=column) == of_each(lambda one: ord(one[0]) if one else 0, some)
    assert values(S.ascii().chr(), x=column) == of_each(lambda one: one[0] if one else "\0", some)
    for form in ("NFC", "NFD", "NFKC"):
        texts = pa.array(TEXTS)
        assert values(S.normalize(form), x=texts) == of_each(partial(unicodedata.normalize, form), TEXTS)


@given(numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))
def test_digits_are_those_of_python(numbers):
    numbers += INTEGERS
    column = pa.array([7, *numbers], pa.int64()).slice(1)
    assert values(X.to_hex(), x=column) == of_each(lambda one: f"{one % 2**64:X}", numbers)
    assert values(X.to_bin(), x=column) == of_each(lambda one: f"{one % 2**64:b}", numbers)
    assert values(X.bit_count(), x=column) == of_each(lambda one: (one % 2**64).bit_count(), numbers)
    for base, write in ((16, "{:x}"), (2, "{:b}"), (10, "{}")):
        texts = of_each(write.format, numbers)
        assert values(S.to_integer(base), x=pa.array(texts, pa.string())) == numbers


def test_what_is_no_integer_fails_or_is_null():
    wrong = ["", "-", "g", "8000000000000000", "-8000000000000001", " 1", "1_0", "é"]
    assert values(S.to_integer(16, strict=False), x=[*wrong, "+Ff"]) == [None] * len(wrong) + [255]
    for one in wrong:
        with pytest.raises(DataError, match="is no integer of base 16"):
            values(S.to_integer(16), x=[one])
    with pytest.raises(SchemaError, match="base 1: from 2 to 36"):
        infer_type(S.to_integer(1).expression, pa.schema({"x": pa.string()}))


@pytest.mark.parametrize("code", [-1, 0xD800, 0x110000, 2**40])
def test_what_is_the_code_of_no_character_fails(code):
    with pytest.raises(DataError, match=f"{code} is the code of no character"):
        values(X.chr(), x=[97, code])


def test_groups_of_a_pattern_are_a_struct():
    found = values(S.extract_groups("(?P<a>[a-z])(-)?([0-9])?"), x=["x-1", "y", "-", None])
    assert found == [{"a": "x", "2": "-", "3": "1"}, {"a": "y", "2": "", "3": ""}, None, None]
    found = values(S.extract_groups(r"\Q(?<a>\E?(?<b>[a-z])[(](?P<c>\d)(?:x)?(y)?"), x=["(?<aq(1"])
    assert found == [{"b": "q", "c": "1", "3": ""}]
    twice = ("(?<a>x)(?P<a>y)", "two groups that are called 'a'")
    for pattern, message in (("a", "has no group"), ("(", "missing"), twice):
        with pytest.raises(SchemaError, match=message):
            infer_type(S.extract_groups(pattern).expression, pa.schema({"x": pa.string()}))
    with pytest.raises(SchemaError, match="choose one of NFC"):
        infer_type(S.normalize("NF").expression, pa.schema({"x": pa.string()}))


def test_values_are_written_into_texts():
    found = values(format_("{{{}}} of {}: {}", X, 3, col("t")), x=[1, None], t=["a", "b"])
    assert found == ["{1} of 3: a", None]
    assert values(format_("{}", X), x=[1.5]) == ["1.5"]
    assert values(format_("plain") + X, x=["a"]) == ["plaina"]
    for pattern in ("{} {}", "{:.2f}", "{", "no place"):
        with pytest.raises(SchemaError, match="at the place of each of the 1 values"):
            format_(pattern, X)
