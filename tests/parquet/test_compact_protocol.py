"""Structs of Thrift's compact protocol, written by hand and damaged."""

import random

import pyarrow as pa
import pytest

from engine.parquet.compact_protocol import CompactReader

#: 1: 3, 2: -2, 5: {1: 300, 3: True}, 6: list of two bools, 40: 7; the last by its number, not by a step
STRUCT = bytes([0x15, 6, 0x15, 3, 0x3C, 0x15, 0xD8, 0x04, 0x21, 0, 0x19, 0x21, 1, 2, 0x05, 80, 14, 0])


def test_fields_have_numbers_values_and_structs_of_their_own():
    reader = CompactReader(STRUCT + b"more")
    assert reader.struct() == {1: 3, 2: -2, 5: {1: 300, 3: True}, 6: None, 40: 7}
    assert reader.position == len(STRUCT)


def test_who_wants_the_first_fields_needs_no_more_bytes():
    fields = CompactReader(STRUCT[:4]).fields()
    assert [next(fields), next(fields)] == [(1, 3), (2, -2)]
    with pytest.raises(IndexError):
        next(fields)


def test_what_is_cut_off_says_that_there_may_be_more():
    for size in range(len(STRUCT)):
        with pytest.raises(IndexError):
            CompactReader(STRUCT[:size]).struct()


def test_damaged_bytes_are_an_error_or_other_numbers():
    # Not a walk without end: of a list of 2**60 bools that took no bytes, say.
    chosen = random.Random(11)
    for _ in range(3000):
        data = bytearray(STRUCT * 40)
        for _ in range(chosen.randint(1, 6)):
            data[chosen.randrange(40)] = chosen.randrange(256)
        try:
            CompactReader(bytes(data)).struct()
        except (IndexError, pa.ArrowInvalid):
            continue


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x1c" * 5000, id="structs in structs"),
        pytest.param(b"\x19" * 5000, id="lists in lists"),
        pytest.param(b"\x15" + b"\xff" * 40 + b"\x01\x00", id="a number of 280 bits"),
        pytest.param(b"\x1e\x00", id="no such kind"),
    ],
)
def test_what_cannot_be_right_is_refused(data):
    with pytest.raises(pa.ArrowInvalid):
        CompactReader(data).struct()
