"""Keys of a few integers: rows of any widths find the groups that the oracle says, with and without nulls."""

import random

import pyarrow as pa
import pytest

from tests.aggregate.group_oracle import MEMORIES, input_table, make_calls, oracle, rows_of, single, two_phases

CALLS = make_calls(("count_all", "sum"))
KEYS = {
    "one": [pa.int32()],
    "two in a word": [pa.int32(), pa.uint32()],
    "of all widths": [pa.int8(), pa.int64(), pa.uint16(), pa.int32()],
    "narrow": [pa.int8()] * 9,
    "dates and times": [pa.date32(), pa.timestamp("us"), pa.time32("s")],
    "four words": [pa.int64()] * 4,
    "more than are found so": [pa.int64()] * 5,
    "beside others": [pa.int64(), pa.float64()],
}


def values_of(data_type, chance):
    """A few values that lie far apart, as far as the type goes, so that they have no numbers of their own."""
    if pa.types.is_floating(data_type):
        return [0.5, -1.0, 1e9]
    bits = data_type.bit_width
    if pa.types.is_time(data_type):
        return [0, 1, 86_399]
    if pa.types.is_timestamp(data_type):
        return [0, -1, 10**15, 10**15 + 1]
    if pa.types.is_date(data_type):
        return [0, -1, 700_000]
    low, high = (
        (0, 2**bits - 1) if pa.types.is_unsigned_integer(data_type) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    return [low, high, low // 2 + 1, *(chance.randrange(low, high) for _ in range(2))]


def table_of(key_types, rows, null_share):
    chance = random.Random(len(key_types))
    names = tuple(f"k{index}" for index in range(len(key_types)))
    keys = []
    for data_type in key_types:
        choices = values_of(data_type, chance)
        keys.append([None if chance.random() < null_share else chance.choice(choices) for _ in range(rows)])
    columns = [*keys, [n % 89 for n in range(rows)]]
    return input_table(names, key_types, CALLS, [None, pa.int64()], columns), names


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("null_share", [0.0, 0.1])
@pytest.mark.parametrize("keys", KEYS)
def test_groups_are_those_of_the_oracle(workshop, keys, null_share, memory):
    table, names = table_of(KEYS[keys], 4000, null_share)
    wanted = oracle(table, names, CALLS)
    result, _ = single(workshop, MEMORIES[memory], table.slice(3), names, CALLS, 700)
    assert rows_of(result) == oracle(table.slice(3), names, CALLS)
    merged, _, _ = two_phases(workshop, MEMORIES[memory], table, names, CALLS, 700)
    assert rows_of(merged) == wanted


def test_batches_with_nulls_and_without_meet_in_the_same_groups(workshop):
    plain, names = table_of([pa.int64(), pa.int32()], 3000, 0.0)
    some, _ = table_of([pa.int64(), pa.int32()], 3000, 0.3)
    table = pa.concat_tables([plain, some, plain])
    result, _ = single(workshop, 600, table, names, CALLS, 500)
    assert rows_of(result) == oracle(table, names, CALLS)
