"""Costs: how they add up and compare, known or unknown."""

from __future__ import annotations

import pytest

from engine.statistics.costs import (
    HEURISTIC_BASE,
    HEURISTIC_BROADCAST,
    Costs,
    broadcast_cost,
    hash_join_cost,
    local_cost,
    repartition_cost,
    sort_merge_join_cost,
)
from engine.statistics.estimates import UNKNOWN, Estimates

SMALL, LARGE, UNSIZED = Estimates(1, 100.0, ""), Estimates(1, 1000.0, ""), Estimates(1, UNKNOWN, "")


def test_costs_add_up_one_by_one() -> None:
    assert Costs(1, 2, 3, 4, 5, 6) + Costs(10, 20, 30, 40, 50, 60) == Costs(11, 22, 33, 44, 55, 66)
    unknown = Costs(UNKNOWN, UNKNOWN, UNKNOWN)
    assert Costs(1, 2, 3) + unknown == unknown == unknown + Costs(1, 2, 3)
    assert Costs(5, 6, 50).total == 16


def test_heuristics_decide_by_network_then_disk_then_cpu() -> None:
    def unknown(*heuristics: float) -> Costs:
        return Costs(UNKNOWN, UNKNOWN, UNKNOWN, *heuristics)

    ordered = [unknown(1, 9, 9), unknown(2, 1, 9), unknown(2, 2, 1), unknown(2, 2, 2)]
    for index, cheaper in enumerate(ordered):
        assert all(cheaper < dearer and not dearer < cheaper for dearer in ordered[index + 1 :])
        assert not cheaper < cheaper


def test_equal_totals_are_decided_by_network_then_disk() -> None:
    assert Costs(network=1, disk=2) < Costs(network=2, disk=1)
    assert Costs(disk=1, cpu=20) < Costs(disk=2, cpu=10)


def test_sending_something_of_unknown_size_has_a_heuristic_cost() -> None:
    assert repartition_cost(UNSIZED, 4, 0.9) == Costs(network=UNKNOWN, heuristic_network=HEURISTIC_BASE)
    dearer = HEURISTIC_BASE * HEURISTIC_BROADCAST * 4
    assert broadcast_cost(UNSIZED, 4) == Costs(network=UNKNOWN, heuristic_network=dearer)
    assert repartition_cost(SMALL, 4).heuristic_network < broadcast_cost(SMALL, 4).heuristic_network


def test_a_hash_join_touches_the_build_side_twice_in_every_copy() -> None:
    assert hash_join_cost(SMALL, LARGE, 1, 4, 25) == Costs(cpu=100 + 100 + 1000)
    assert hash_join_cost(SMALL, LARGE, 4, 4, 100) == Costs(cpu=400 + 400 + 1000)
    # a table of 100 bytes in 75: a quarter of both sides is written and read
    assert hash_join_cost(SMALL, LARGE, 4, 4, 75).disk == pytest.approx(2 * 0.25 * 1400)
    assert hash_join_cost(SMALL, LARGE, 1, 4, 25, table_bytes=50).disk == pytest.approx(2 * 0.5 * 1100)
    assert hash_join_cost(SMALL, LARGE, 1, 4, 25, table_bytes=0).disk == 0


@pytest.mark.parametrize(("copies", "factor"), [(1, 1.0), (4, HEURISTIC_BROADCAST)])
def test_a_hash_join_of_unknown_sides_has_a_heuristic_cost(copies: int, factor: float) -> None:
    heuristic = HEURISTIC_BASE * factor
    expected = Costs(disk=UNKNOWN, cpu=UNKNOWN, heuristic_disk=heuristic, heuristic_cpu=heuristic)
    for sides in ((UNSIZED, SMALL), (SMALL, UNSIZED), (UNSIZED, UNSIZED)):
        assert hash_join_cost(*sides, copies, 4, 100) == expected


def test_a_sort_merge_join_writes_the_sides_that_do_not_fit_in_half_of_the_memory() -> None:
    assert sort_merge_join_cost(SMALL, LARGE, 4, 500) == Costs(cpu=3 * 1100)
    assert sort_merge_join_cost(SMALL, LARGE, 4, 499) == Costs(disk=2 * 1000, cpu=3 * 1100)
    assert sort_merge_join_cost(LARGE, SMALL, 4, 50) == Costs(disk=2 * 1000, cpu=3 * 1100)
    assert sort_merge_join_cost(LARGE, SMALL, 4, 49) == Costs(disk=2 * 1100, cpu=3 * 1100)


def test_a_sort_merge_join_of_unknown_sides_is_dearer_than_a_hash_join_of_them() -> None:
    heuristic = 2 * HEURISTIC_BASE
    expected = Costs(disk=UNKNOWN, cpu=UNKNOWN, heuristic_disk=heuristic, heuristic_cpu=heuristic)
    for sides in ((UNSIZED, SMALL), (SMALL, UNSIZED), (UNSIZED, UNSIZED)):
        assert sort_merge_join_cost(*sides, 4, 100) == expected
        assert hash_join_cost(*sides, 1, 4, 100) < expected


def test_an_operator_that_keeps_its_rows_writes_what_does_not_fit() -> None:
    assert local_cost(LARGE, 1, 4) == Costs(cpu=1000)
    assert local_cost(LARGE, 250, 4, keeps_rows=True) == Costs(cpu=1000)
    assert local_cost(LARGE, 249, 4, keeps_rows=True) == Costs(disk=2000, cpu=1000)
    assert local_cost(UNSIZED, 1, 4) == Costs(cpu=UNKNOWN, heuristic_cpu=HEURISTIC_BASE)
    assert local_cost(UNSIZED, 1, 4, keeps_rows=True) == Costs(disk=UNKNOWN, cpu=UNKNOWN, heuristic_cpu=HEURISTIC_BASE)


def test_known_costs_compare_by_total_then_by_network() -> None:
    assert Costs(network=1) < Costs(network=2)
    assert Costs(network=1, cpu=5) < Costs(network=1, cpu=6)
    assert Costs(network=5, disk=0) < Costs(network=1, disk=100)
    assert not Costs(network=1) < Costs(network=1)


def test_an_unknown_cost_never_wins_by_its_minus_one() -> None:
    unknown = Costs(network=UNKNOWN, heuristic_network=10)
    assert Costs(network=1e12, heuristic_network=5) < unknown
    assert not unknown < Costs(network=1e12, heuristic_network=5)
    assert (unknown + Costs(network=3)).network == UNKNOWN
    # and what is known does not win either: the heuristics decide
    assert unknown < Costs(network=0, heuristic_network=20)


def test_a_heavy_key_makes_repartitioning_dearer() -> None:
    data = Estimates(1000, 1e6, "test")
    assert repartition_cost(data, 4, 0.0).network == 1e6
    assert repartition_cost(data, 4, 0.2).network == 1e6
    assert repartition_cost(data, 4, 0.9).network == pytest.approx(3.6e6)
    assert broadcast_cost(data, 4).network == 4e6


def test_a_build_side_larger_than_memory_costs_disk() -> None:
    build, probe = Estimates(1, 100.0, ""), Estimates(1, 1000.0, "")
    assert hash_join_cost(build, probe, 1, 1, 100).disk == 0
    assert hash_join_cost(build, probe, 1, 1, 50).disk == pytest.approx(2 * 0.5 * 1100)
    # the smaller side is the better one to build
    assert hash_join_cost(build, probe, 1, 1, 10_000) < hash_join_cost(probe, build, 1, 1, 10_000)
