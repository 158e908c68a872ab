"""Sizes of subpartitions come back from their bytes."""

import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph import packed_sizes as module
from engine.graph.packed_sizes import kept_sizes, packed_sizes, sizes_of


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_sizes_come_back(sizes: list[int]) -> None:
    assert list(sizes_of(packed_sizes(sizes))) == sizes
    assert packed_sizes(array("Q", sizes)) == packed_sizes(sizes)
    assert len(packed_sizes(sizes)) == 8 * len(sizes)


def test_they_are_little_endian_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packed_sizes([1, 256]) == bytes([1, *[0] * 8, 1, *[0] * 6])
    other = "big" if sys.byteorder == "little" else "little"
    monkeypatch.setattr(module.sys, "byteorder", other)
    assert list(sizes_of(packed_sizes([1, 2**40]))) == [1, 2**40]


def test_nothing_is_no_sizes() -> None:
    assert not sizes_of(b"")


@pytest.mark.parametrize(
    ("largest", "width"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32, 8), (2**64 - 1, 8)]
)
def test_what_is_kept_has_the_width_of_the_largest(largest: int, width: int) -> None:
    kept = kept_sizes(packed_sizes([0, largest, 7]))
    assert list(kept.sizes()) == [0, largest, 7] and len(kept.packed) == 3 * width
    assert not kept_sizes(b"").sizes()
