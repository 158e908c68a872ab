"""What is done with a spilled build file and its probe file: one pass, several, or scattered again."""

from msgspec.structs import replace

from engine.join.spilled_pair import (
    PASSES_CHEAP,
    SpilledPair,
    first_fan_out,
    next_fan_out,
)
from engine.partitions.recursion import PASSES_MAX


def pair(build_rows=1000, build_bytes=64_000, probe_bytes=640_000, level=1, parent_rows=10_000):
    return SpilledPair(None, None, build_rows, build_bytes, 10_000, probe_bytes, level, parent_rows, 100_000)


def test_a_pair_that_fits_is_joined_in_one_pass():
    assert pair().passes_pay(1)


def test_a_pair_of_many_blocks_is_scattered_again():
    assert pair().passes_pay(PASSES_CHEAP)
    assert not pair().passes_pay(PASSES_CHEAP + 1)


def test_a_pair_that_has_been_written_twice_is_not_scattered_again():
    assert pair(level=2).passes_pay(PASSES_MAX)
    assert not pair(level=2).passes_pay(PASSES_MAX + 1)


def test_parts_of_the_keys_have_room_to_differ_in_size():
    assert pair().part_count(1) == 1
    assert pair().part_count(8) == 11
    assert pair(build_rows=9_900).part_count(8) == 1
    assert pair(probe_bytes=6_400).part_count(8) == 1


def test_a_few_passes_over_a_small_probe_file_are_cheaper_than_scattering():
    assert pair(probe_bytes=6_400).passes_pay(10)


def test_a_pair_with_most_rows_of_its_parent_did_not_shrink():
    assert pair().has_shrunk
    assert not pair(build_rows=9_900).has_shrunk


def test_roles_are_exchanged_when_the_probe_file_is_smaller_and_the_build_file_does_not_fit():
    small_probe = pair(probe_bytes=6_400)
    assert small_probe.should_reverse(2)
    assert not small_probe.should_reverse(1)
    assert not pair().should_reverse(10)
    assert not replace(small_probe, probe_rows=0).should_reverse(10)
    exchanged = small_probe.reversed()
    assert (exchanged.build_rows, exchanged.build_bytes, exchanged.parent_rows) == (10_000, 6_400, 100_000)
    assert exchanged.is_reversed
    assert exchanged.reversed() == small_probe


def test_six_pages_give_three_partitions():
    assert first_fan_out(6) == 3
    assert next_fan_out(6, 4096, 1 << 30) == 3


def test_the_fan_out_leaves_a_quarter_of_the_pages_for_write_buffers():
    assert first_fan_out(100) == 25
    assert first_fan_out(100_000) == 64


def test_the_next_fan_out_follows_the_size_of_the_file():
    assert next_fan_out(256, 32768, 20 << 20) == 7
    assert next_fan_out(256, 32768, 1 << 40) == 64
    assert next_fan_out(32, 32768, 1 << 40) == 29
    assert next_fan_out(32, 32768, 1 << 10, 5) == 12
