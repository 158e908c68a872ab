"""Digests are those of hashlib, encodings those of base64 and urllib, hash64 is XXH64 as Spark has it."""

import base64
import datetime
import hashlib
import struct
import zlib
from decimal import Decimal
from urllib.parse import quote, quote_plus, unquote_plus

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col, hash64, lit
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import TEXTS, by_duckdb, compute, values

X, Y = col("x"), col("y")
S = X.str
BYTES = st.lists(st.none() | st.binary(max_size=200), min_size=1, max_size=5)
MASK = 2**64 - 1
P1, P2, P3, P4, P5 = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)


def left(x, n):
    return (x << n | x >> (64 - n)) & MASK


def xxh64(data, seed=42):
    """XXH64 by its specification."""

    def turn(state, word):
        return left((state + word * P2) & MASK, 31) * P1 & MASK

    size, at = len(data), 0
    found = (seed + P5) & MASK
    if size >= 32:
        state = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed & MASK, (seed - P1) & MASK]
        while at + 32 <= size:
            state = [turn(one, word) for one, word in zip(state, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        found = sum(left(one, n) for one, n in zip(state, (1, 7, 12, 18), strict=True)) & MASK
        for one in state:
            found = ((found ^ turn(0, one)) * P1 + P4) & MASK
    found = (found + size) & MASK
    while at + 8 <= size:
        found = (left(found ^ turn(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= size:
        found = (left(found ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        found = left(found ^ byte * P5 & MASK, 11) * P1 & MASK
    found = (found ^ found >> 33) * P2 & MASK
    found = (found ^ found >> 29) * P3 & MASK
    return found ^ found >> 32


def signed(number):
    return number - 2**64 if number >= 2**63 else number


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@given(some=BYTES)
def test_digests_and_encodings_are_those_of_python(kind, some):
    column = pa.array([b"before", *some], kind).slice(1)
    for expression, function in (
        (X.md5(), lambda one: hashlib.md5(one, usedforsecurity=False).hexdigest()),
        (X.sha1(), lambda one: hashlib.sha1(one, usedforsecurity=False).hexdigest()),
        (X.sha256(), lambda one: hashlib.sha256(one).hexdigest()),
        (X.sha512(), lambda one: hashlib.sha512(one).hexdigest()),
        (X.crc32(), zlib.crc32),
        (S.encode("hex"), bytes.hex),
        (S.encode("base64"), lambda one: base64.b64encode(one).decode()),
    ):
        assert values(expression, x=column) == [None if one is None else function(one) for one in some]
    for encoding in ("hex", "base64"):
        assert values(S.encode(encoding).str.decode(encoding), x=column) == some
    hashes = [signed(42 if one is None else xxh64(one)) for one in some]
    assert values(hash64(X), x=column) == hashes


@pytest.mark.parametrize("size", [0, 55, 56, 63, 64, 119, 120, 128, 1000])
def test_digests_at_the_ends_of_blocks(size):
    data = bytes(range(256)) * 4
    assert values(X.sha256(), x=[data[:size]]) == [hashlib.sha256(data[:size]).hexdigest()]
    assert values(X.md5(), x=[data[:size]]) == [hashlib.md5(data[:size], usedforsecurity=False).hexdigest()]


def test_digests_of_texts_agree_with_duckdb():
    assert values(X.md5(), x=TEXTS) == by_duckdb("md5(x)", x=TEXTS)
    assert values(X.sha256(), x=TEXTS) == by_duckdb("sha256(x)", x=TEXTS)
    ascii_texts = [one for one in TEXTS if one is None or one.isascii()]
    assert values(S.levenshtein("a,c"), x=ascii_texts) == by_duckdb("levenshtein(x, 'a,c')", x=ascii_texts)


def test_distances_count_characters():
    assert values(S.levenshtein(Y), x=["añ😀", "", "日本", None], y=["an😀", "ab", "日", "a"]) == [1, 2, 1, None]


def test_the_hash_is_the_one_of_spark():
    # of Spark's documentation: SELECT xxhash64('Spark', array(123), 2); an array is hashed as its elements are
    known = hash64(X, lit(123, pa.int32()), lit(2, pa.int32()))
    assert values(known, x=["Spark"]) == [5602566077635097486]
    packed = {
        pa.int32(): (7, "<i", 7),
        pa.int8(): (-7, "<i", -7),
        pa.int64(): (7, "<q", 7),
        pa.uint64(): (2**64 - 1, "<q", -1),
        pa.bool_(): (True, "<i", 1),
        pa.float32(): (-0.0, "<f", 0.0),
        pa.float64(): (1.5, "<d", 1.5),
        pa.date32(): (datetime.date(1970, 1, 8), "<i", 7),
        pa.timestamp("ms"): (datetime.datetime(1970, 1, 1, 0, 0, 7), "<q", 7_000_000),
        pa.timestamp("s", "Europe/Berlin"): (datetime.datetime(1970, 1, 1, 0, 0, 7), "<q", 7_000_000),
        pa.decimal128(10, 2): (Decimal("-1.25"), "<q", -125),
    }
    for data_type, (value, form, word) in packed.items():
        found = values(hash64(X, "a"), x=pa.array([value, None], data_type))
        first = xxh64(struct.pack(form, word))
        assert found == [signed(xxh64(b"a", first)), signed(xxh64(b"a"))], data_type
    assert values(hash64(X), x=pa.array(["ab"], pa.large_string())) == values(hash64(X), x=["ab"])
    assert len(set(values(hash64(X), x=[float("nan"), -float("nan")]))) == 1


@given(st.lists(st.text(max_size=8), min_size=1))
def test_addresses_are_decoded(texts):
    assert values(S.url_decode(), x=[quote_plus(one) for one in texts]) == texts
    plain = [one.replace("%", "") for one in texts]
    assert values(S.url_decode(), x=plain) == [unquote_plus(one) for one in plain]


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        (S.decode("hex"), "abc"),
        (S.decode("hex"), "zz"),
        (S.decode("base64"), "abc"),
        (S.decode("base64"), "a=bc"),
        (S.url_decode(), "%4"),
        (S.url_decode(), "%zz"),
        (S.url_decode(), "%FF"),
    ],
)
def test_what_cannot_be_decoded_is_an_error_that_names_the_row(expression, wrong):
    with pytest.raises(DataError, match=f"in a row with x='{wrong}'"):
        values(expression, x=["", None, wrong])
    assert values(expression, x=["", None]) in ([b"", None], ["", None])


def test_what_has_no_hash_or_encoding_is_said_before_anything_runs():
    schema = pa.schema({"x": pa.list_(pa.int8()), "d": pa.decimal128(30, 2), "n": pa.int8()})
    with pytest.raises(SchemaError, match="lists, maps and structs have no hash"):
        infer_type(hash64(X).expression, schema)
    with pytest.raises(SchemaError, match="more than 18 digits"):
        infer_type(hash64(col("d")).expression, schema)
    with pytest.raises(SchemaError, match="it works on binary values and strings"):
        infer_type(col("n").md5().expression, schema)
    with pytest.raises(SchemaError, match="choose one of hex, base64, utf-8"):
        infer_type(lit("a").str.encode("rot13").expression, schema)
    assert compute(S.encode("utf-8"), x=["é"]).to_pylist() == ["é".encode()]


def test_urls_are_those_of_python():
    texts = [*TEXTS, "a b/c?d=é&~-._"]
    assert values(S.url_encode(), x=texts) == [None if one is None else quote(one, safe="") for one in texts]
    assert values(S.url_encode().str.url_decode(), x=texts) == texts
