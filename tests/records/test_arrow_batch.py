"""batch_bytes: what Arrow says, for batches as they are and for parts of them; used_bytes: of dictionaries a part."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.records.arrow_batch import batch_bytes, used_bytes

VALUES = {
    "numbers": pa.array([1, None, 3, 4, 5, 6, 7, 8, 9, 10], pa.int64()),
    "flags": pa.array([True, None, False, True, True, False, True, True, True, False]),
    "texts": pa.array(["a", "", None, "long enough", "e", "f", "g", "hh", "i", "j"]),
    "large": pa.array([b"a", b"", None, b"abc", b"e", b"f", b"g", b"hh", b"i", b"j"], pa.large_binary()),
    "decimals": pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, None], pa.decimal128(12, 2)),
    "fixed": pa.array([b"abc"] * 10, pa.binary(3)),
    "nothing": pa.nulls(10),
    "lists": pa.array([[1], [], None, [1, 2, 3], [4], [5, 6], [], [7], [8], [9]], pa.list_(pa.int16())),
    "large_lists": pa.array([["x"], [], None, ["yy", "z"], [], [], [None], [], [], ["w"]], pa.large_list(pa.string())),
    "pairs": pa.array([[1, 2]] * 5 + [None] * 5, pa.list_(pa.int32(), 2)),
    "structs": pa.array([{"n": 1, "t": "abc"}, None] * 5, pa.struct([("n", pa.int8()), ("t", pa.string())])),
    "maps": pa.array([[("k", [True])], []] * 5, pa.map_(pa.string(), pa.list_(pa.bool_()))),
    "dictionaries": pa.array(["a", "b"] * 5).dictionary_encode(),
}


@pytest.mark.parametrize("name", VALUES)
def test_it_is_what_arrow_says_of_any_part(name: str) -> None:
    """Whole, from a bit within a byte on, and of several rows at any place; Arrow forgets the bits of structs."""
    unequal = 2 if pa.types.is_nested(VALUES[name].type) else 0
    batch = pa.RecordBatch.from_arrays([VALUES[name]], names=[name])

    for begin in range(10):
        for count in range(1, 11 - begin):
            part = batch.slice(begin, count)
            assert abs(batch_bytes(part) - part.nbytes) <= unequal, (begin, count)


def test_columns_add_up() -> None:
    """A batch without columns or rows has none."""
    batch = pa.RecordBatch.from_pydict(VALUES).drop_columns("dictionaries")

    assert batch_bytes(batch) == sum(batch_bytes(batch.select([name])) for name in batch.schema.names)
    assert batch_bytes(batch.select([])) == 0
    assert batch_bytes(batch.select(["numbers", "texts"]).slice(0, 0)) == 0


def test_rows_use_no_more_values_of_a_dictionary_than_there_are_rows() -> None:
    """Two rows of ten different texts of four bytes, and their offsets, use a fifth of them; others what they have."""
    texts = pa.array([f"{number:04}" for number in range(10)]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([texts, pa.array(range(10), pa.int64())], names=["texts", "numbers"])
    values = texts.dictionary.nbytes

    assert used_bytes(batch) == batch_bytes(batch) == batch.nbytes
    assert batch_bytes(batch.slice(3, 2)) == values + 2 * (4 + 8)
    assert used_bytes(batch.slice(3, 2)) == round(values * 0.2) + 2 * (4 + 8)
