"""Masks of rows against Arrow's flags, and what codes stand for against Arrow's take."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.records.row_mask import Mask, flags_of_codes, narrowed_mask

ROWS = 1000


def flags_of(share, nulls=0.0, offset=0, rows=ROWS):
    chosen = random.Random(f"{share} {nulls}")
    values = [None if chosen.random() < nulls else chosen.random() < share for _ in range(rows + offset)]
    return pa.array(values, pa.bool_()).slice(offset)


def meant(flags):
    return pc.fill_null(flags, False)


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, ROWS])
@pytest.mark.parametrize(("nulls", "offset"), [(0.0, 0), (0.3, 0), (0.3, 5), (0.0, 67)])
def test_null_is_false(rows, nulls, offset):
    flags = flags_of(0.5, nulls, offset, rows)
    mask = Mask(flags)
    assert (mask.rows, len(mask), mask.kept) == (rows, rows, sum(meant(flags).to_pylist()))
    found = mask.array()
    found.validate(full=True)
    assert found.equals(meant(flags))


def test_a_mask_is_of_bools():
    with pytest.raises(TypeError, match="of bools, not of int64"):
        Mask(pa.array([1, 0]))


@pytest.mark.parametrize("rows", [0, 1, 64, 65, ROWS])
def test_rows_of_both(rows):
    one, other = flags_of(0.7, 0.1, 3, rows), flags_of(0.4, 0.2, 0, rows)
    both = Mask(one).both(Mask(other))
    assert both.array().equals(pc.and_(meant(one), meant(other)))
    assert both.kept == both.array().true_count
    with pytest.raises(pa.ArrowInvalid, match="beside one of"):
        Mask(one).both(Mask(flags_of(0.4, rows=rows + 1)))


@pytest.mark.parametrize("rows", [0, 1, 64, 65, ROWS, 300_001])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
def test_a_mask_of_the_rows_that_are_kept_narrows_the_mask_that_kept_them(rows, share):
    mask, both = flags_of(share, nulls=0.1, offset=3, rows=rows), flags_of(0.4, nulls=0.2, rows=rows)
    found = narrowed_mask(mask, pc.filter(both, mask))
    assert found.array().equals(pc.and_(meant(mask), meant(both)))
    assert narrowed_mask(Mask(mask), Mask(pc.filter(both, mask))).kept == found.kept == found.array().true_count
    with pytest.raises(pa.ArrowInvalid, match="that are kept"):
        narrowed_mask(mask, flags_of(0.4, rows=rows + 1))


@pytest.mark.parametrize("nulls", [0.0, 0.2])
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("of_null", [False, True])
@pytest.mark.parametrize("said", [[True, False, True, True], [None, True, False, None], [False] * 4])
def test_what_is_said_of_codes_is_what_arrow_takes(nulls, offset, said, of_null):
    chosen = random.Random(11)
    codes = [None if chosen.random() < nulls else chosen.randrange(4) for _ in range(ROWS)]
    indices = pa.array(codes, pa.int32()).slice(offset)
    found = flags_of_codes(pa.record_batch({"c": indices}), 0, pa.array(said, pa.bool_()), of_null)
    expected = meant(pc.take(pa.array([*said, of_null], pa.bool_()), pc.fill_null(indices, 4)))
    assert found.array().equals(expected)
    assert found.kept == expected.true_count
    coded = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c", "d"]))
    batch = pa.record_batch({"other": range(len(indices)), "c": coded})
    assert flags_of_codes(batch, 1, pa.array(said, pa.bool_()), of_null).array().equals(expected)
    part = flags_of_codes(batch.slice(3), 1, pa.array(said, pa.bool_()), of_null)
    assert part.array().equals(expected.slice(3))


def test_codes_of_which_nothing_is_said_are_damage():
    for code in (2, 3, -1):
        with pytest.raises(pa.ArrowInvalid, match="go beyond it"):
            flags_of_codes(pa.record_batch({"c": pa.array([0, code], pa.int32())}), 0, pa.array([True, True]), False)
    assert flags_of_codes(pa.record_batch({"c": pa.array([0], pa.int64())}), 0, pa.array([True]), False) is None


def test_of_no_texts_there_are_nulls_alone():
    codes = pa.record_batch({"c": pa.array([None, None], pa.int32())})
    found = flags_of_codes(codes, 0, pa.array([], pa.bool_()), True)
    assert found.array().to_pylist() == [True, True]
