"""A test drops rows without a key for as long as it drops enough of them."""

import pyarrow as pa
import pytest

from engine.records import adaptive_key_filter
from engine.records.adaptive_key_filter import AdaptiveKeyFilter, mask_of
from engine.records.key_filter import key_filter
from engine.records.row_mask import Mask


def test_rows_are_dropped_of_those_that_a_mask_leaves():
    test = AdaptiveKeyFilter("k", key_filter([pa.array([1, 2])], 64))
    keys = pa.record_batch({"k": [1, 2, 3, None, 1]})
    assert test.mask_of(keys).array().to_pylist() == [True, True, False, False, True]
    mask = Mask(pa.array([True, False, True, True, None]))
    assert test.mask_of(keys, mask).kept == 1
    assert test.rows_dropped == 2 + 2


def test_a_dictionary_is_looked_up_by_its_values():
    test = AdaptiveKeyFilter("k", key_filter([pa.array(["a", "c"])], 64))
    keys = pa.record_batch({"k": pa.array(["a", "b", None, "c", "b"]).dictionary_encode()})
    assert test.mask_of(keys).array().to_pylist() == [True, False, False, True, False]


def test_texts_of_another_width_are_the_same_texts():
    test = AdaptiveKeyFilter("k", key_filter([pa.array(["a" * 90], pa.large_string())], 64))
    assert test.mask_of(pa.record_batch({"k": ["a" * 90, "b"]})).array().to_pylist() == [True, False]


@pytest.mark.parametrize(("keys", "is_on"), [([0, 1], True), ([0, 1, 2, 3, 4, 5, 6, 7], False)])
def test_a_filter_that_keeps_nearly_all_is_switched_off(monkeypatch, keys, is_on):
    monkeypatch.setattr(adaptive_key_filter, "TRIAL_ROWS", 100)
    test = AdaptiveKeyFilter("k", key_filter([pa.array(keys)], 64))
    for _ in range(9):
        test.mask_of(pa.record_batch({"k": range(10)}))
        assert test.is_on
    test.mask_of(pa.record_batch({"k": range(10)}))
    assert test.is_on is is_on


def test_several_tests_leave_what_each_of_them_leaves():
    batch = pa.record_batch({"a": [1, 2, 3, 4], "b": [1, 1, 2, 2]})
    tests = [
        AdaptiveKeyFilter("a", key_filter([pa.array([1, 3, 4])], 64)),
        AdaptiveKeyFilter("b", key_filter([pa.array([2])], 64)),
    ]
    assert mask_of([], batch) is None
    assert mask_of(tests, batch).array().to_pylist() == [False, False, True, True]
    assert mask_of(tests, batch, Mask(pa.array([True, True, False, True]))).array().to_pylist() == [
        False,
        False,
        False,
        True,
    ]
    tests[1].is_on = False
    assert mask_of(tests, batch).kept == 3


@pytest.mark.parametrize("is_coded", [False, True])
@pytest.mark.parametrize("share", [0, 10, 100])
def test_few_rows_of_a_mask_are_looked_up_alone(monkeypatch, is_coded, share):
    values = [None if row % 7 == 0 else row % 50 for row in range(1000)]
    array = pa.array(values, pa.int64())
    mask = Mask(pa.array([row % 100 < share for row in range(1000)]))
    copied = []
    kept = adaptive_key_filter.kept_columns

    def counted(batch, mask, *rest):
        copied.append(mask.kept)
        return kept(batch, mask, *rest)

    monkeypatch.setattr(adaptive_key_filter, "kept_columns", counted)
    test = AdaptiveKeyFilter("k", key_filter([pa.array([3, 5])], 64))
    found = test.mask_of(pa.record_batch({"k": array.dictionary_encode() if is_coded else array}), mask)
    assert found.array().to_pylist() == [row % 100 < share and values[row] in (3, 5) for row in range(1000)]
    assert test.rows_dropped == mask.kept - found.kept
    assert copied == ([10 * share] if is_coded and share < 100 else [])  # others are looked up where they lie
