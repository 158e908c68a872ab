"""Strings within nested values of rows: UTF-8, or an error; Python's own decoder says which."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from engine.errors import DataError
from engine.records.row_codec import RowCodec

#: bytes on either side of every limit of table 3-7 of the Unicode standard
EDGES = bytes.fromhex("00 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 ed ef f0 f4 f5 ff")
LATER = bytes.fromhex("7f 80 8f 90 9f a0 bf c0")


def read_as_text(values: list[bytes]) -> list[str] | None:
    """Write lists of binary, read the rows as lists of strings; None: refused."""
    batch = pa.record_batch({"list": pa.array([values], pa.list_(pa.binary()))})
    rows = RowCodec(batch.schema).to_rows(batch)
    try:
        found = RowCodec(pa.schema([("list", pa.list_(pa.string()))])).from_rows(rows)
    except DataError as error:
        assert "column 'list': a string within a nested value is not UTF-8" in str(error)
        return None
    found.validate(full=True)
    texts: list[str] = found.column(0)[0].as_py()
    return texts


def texts_of(values: list[bytes]) -> list[str] | None:
    try:
        return [value.decode() for value in values]
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_sequence_at_the_limits_is_judged_as_python_does(length: int) -> None:
    for sequence in itertools.product(EDGES, repeat=length):
        value = bytes(sequence)
        assert read_as_text([value]) == texts_of([value]), value


def test_sequences_of_four_bytes_too() -> None:
    seen = set()
    for sequence in itertools.product(b"\xf0\xf1\xf4\xf5", LATER, LATER, LATER):
        value = b"a" + bytes(sequence) + b"z"
        assert read_as_text([value]) == texts_of([value]), value
        seen.add(texts_of([value]) is None)
    assert seen == {True, False}


@pytest.mark.parametrize("character", ["é", "€", "𝄞"])
def test_values_that_are_text_only_together_are_refused(character: str) -> None:
    encoded = character.encode()
    for cut in range(1, len(encoded)):
        assert read_as_text([b"x" + encoded[:cut], encoded[cut:] + b"y"]) is None
    assert read_as_text([b"", encoded, b"", encoded, b""]) == ["", character, "", character, ""]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 4095, 4096, 4097, 9000])
def test_one_bad_byte_anywhere_in_long_text_is_found(size: int) -> None:
    chance = random.Random(size)
    text = "".join(chance.choice("abcdefgh é€𝄞") for _ in range(size)).encode() if size % 2 else b"a" * size
    assert read_as_text([text]) == [text.decode()]
    for position in {0, size // 2, max(0, size - 1)}:
        assert read_as_text([text[:position] + b"\xff" + text[position:]]) is None


@pytest.mark.parametrize(
    ("binary", "text"),
    [
        (pa.struct([("s", pa.large_binary())]), pa.struct([("s", pa.large_string())])),
        (pa.map_(pa.binary(), pa.int8()), pa.map_(pa.string(), pa.int8())),
        (pa.map_(pa.int8(), pa.list_(pa.binary())), pa.map_(pa.int8(), pa.list_(pa.string()))),
        (pa.list_(pa.binary(), 1), pa.list_(pa.string(), 1)),
    ],
    ids=str,
)
def test_strings_are_found_wherever_they_are(binary: pa.DataType, text: pa.DataType) -> None:
    for value, is_sound in ((b"sound", True), (b"\xc3(", False)):
        made = {"struct": {"s": value}, "map<bi": [(value, 1)], "map<in": [(1, [value])], "fixed_": [value]}
        batch = pa.record_batch({"n": pa.array([made[str(binary)[:6]], None], binary)})
        codec = RowCodec(pa.schema([("n", text)]))
        rows = RowCodec(batch.schema).to_rows(batch)
        if is_sound:
            codec.from_rows(rows).validate(full=True)
        else:
            with pytest.raises(DataError, match="column 'n'"):
                codec.from_rows(rows)


def test_binary_within_nested_values_is_anything() -> None:
    batch = pa.record_batch({"list": pa.array([[b"\xff\xfe"]], pa.list_(pa.binary()))})
    codec = RowCodec(batch.schema)
    assert codec.from_rows(codec.to_rows(batch)).equals(batch)
