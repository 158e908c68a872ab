"""Texts of a small dictionary by their numbers, against Arrow's take."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.records.plain_types import plain_array
from engine.records.text_gather import check_codes, gathered_texts

TEXTS = {
    "short": ["", "a", "5-LOW", "4-NOT SPECIFIED", "x" * 16],
    "longer": ["", "y" * 17, "z" * 32],
    "one": ["only"],
    "letters": ["R", "A", "N"],
    "as long": ["xy", "yz", "zx"],
    "empty": [""],
    "many": [f"text {number}" for number in range(1024)],
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("data_type", [pa.string(), pa.binary()])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("offset", [0, 8])
def test_texts_are_those_that_arrow_takes(name, data_type, nulls, offset):
    chosen = random.Random(7)
    dictionary = pa.array(["sliced off", *TEXTS[name], "too"]).cast(data_type).slice(1, len(TEXTS[name]))
    numbers = [chosen.randrange(len(dictionary)) for _ in range(5000)]
    mask = [chosen.random() < 0.3 for _ in numbers] if nulls else None
    indices = pa.array([None if mask and mask[row] else n for row, n in enumerate(numbers)], pa.int32()).slice(offset)
    found = gathered_texts(dictionary, indices)
    found.validate(full=True)
    assert found.equals(pc.take(dictionary, indices))
    assert found.null_count == indices.null_count


@pytest.mark.parametrize(
    ("dictionary", "indices"),
    [
        (pa.array(["x" * 33]), pa.array([0] * 10, pa.int32())),
        (pa.array(["x"] * 1025), pa.array([0] * 10_000, pa.int32())),
        (pa.array(["x", "y"]), pa.array([0] * 7, pa.int32())),
        (pa.array(["x", None]), pa.array([0] * 100, pa.int32())),
        (pa.array(["x"]), pa.array([0] * 100, pa.int64())),
        (pa.array(["x"], pa.large_string()), pa.array([0] * 100, pa.int32())),
        (pa.array([1]), pa.array([0] * 100, pa.int32())),
        (pa.array(["x"]), pa.array([], pa.int32())),
        (pa.array([], pa.string()), pa.array([None] * 9, pa.int32())),
        (pa.array(["x"]), pa.array([None, *[0] * 100], pa.int32()).slice(1)),
        (pa.array(["x"]), pa.array([0, None] * 50, pa.int32()).slice(1)),
    ],
)
def test_what_is_not_of_this_kind_is_left_to_arrow(dictionary, indices):
    found = gathered_texts(dictionary, indices)
    assert found is None or found.equals(pc.take(dictionary, indices))
    coded = pa.DictionaryArray.from_arrays(indices, dictionary)
    assert plain_array(coded, dictionary.type).equals(pc.take(dictionary, indices))


@pytest.mark.parametrize("wrong", [2, -1, 1 << 30])
@pytest.mark.parametrize("text", ["x", "x" * 100])
def test_a_number_that_the_dictionary_does_not_have_is_an_error(wrong, text):
    indices = pa.array([0, 1] * 50 + [wrong], pa.int32())
    with pytest.raises(pa.ArrowInvalid, match="in a dictionary of 2 go beyond it"):
        gathered_texts(pa.array([text, "y"]), indices)
    masked = pa.array([0, 1] * 50 + [wrong], pa.int32(), mask=[False] * 100 + [True])
    assert gathered_texts(pa.array(["x", "y"]), masked).to_pylist()[-3:] == ["x", "y", None]


def test_an_empty_dictionary_has_no_number():
    with pytest.raises(pa.ArrowInvalid, match="in a dictionary of 0 go beyond it"):
        gathered_texts(pa.array([], pa.string()), pa.array([0], pa.int32()))


@pytest.mark.parametrize("offset", [0, 3])
def test_codes_are_looked_at_but_for_nulls(offset):
    def array(codes, texts):
        indices = pa.array([99] * offset + codes, pa.int32()).slice(offset)
        return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string()), safe=False)

    check_codes(array([0, 1, 1], ["a", "b"]))
    check_codes(array([0, None, 1], ["a", "b"]))
    check_codes(array([None], []))
    check_codes(array([], []))
    for codes, texts in (([0, 2], ["a", "b"]), ([0, -1], ["a"]), ([None, 7], ["a"]), ([0], [])):
        with pytest.raises(pa.ArrowInvalid, match="go beyond it"):
            check_codes(array(codes, texts))
