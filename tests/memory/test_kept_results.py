"""Results that have room are found once; the latest ones stay, within a limit of bytes."""

from __future__ import annotations

import pytest

from engine.memory.kept_results import KeptResults


def _kept(bytes_max: int) -> KeptResults[int, str]:
    return KeptResults[int, str](bytes_max, lambda _, found: len(found))


@pytest.mark.parametrize(("bytes_max", "asked_again"), [(4000, 0), (3900, 40)])
def test_results_that_have_room_are_found_once(bytes_max: int, asked_again: int) -> None:
    kept, asked = _kept(bytes_max), []

    def found(number: int) -> str:
        asked.append(number)
        return str(number % 10) * 100

    for _ in range(2):
        for number in range(40):
            assert kept.of(number, lambda number=number: found(number)) == str(number % 10) * 100
            assert kept._bytes <= bytes_max
    assert len(asked) == 40 + asked_again


def test_what_was_used_least_recently_goes() -> None:
    kept, asked = _kept(200), []

    def found(number: int) -> str:
        asked.append(number)
        return "x" * 100

    for number in (1, 2, 1, 3, 1, 2):
        kept.of(number, lambda number=number: found(number))
    assert asked == [1, 2, 3, 2]


def test_a_result_larger_than_the_room_is_returned_and_not_kept() -> None:
    kept, large = _kept(99), "x" * 100
    assert kept.of(1, lambda: large) is large
    assert (len(kept._found), kept._bytes) == (0, 0)


def test_an_error_of_what_finds_a_result_is_raised_each_time() -> None:
    kept = _kept(100)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            kept.of(1, lambda: str(1 // 0))
