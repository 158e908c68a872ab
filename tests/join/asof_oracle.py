"""The as-of join in plain Python, rows that go into one, and its specification."""

import datetime
import decimal
import math
import random

import pyarrow as pa
import pytest

from engine.graph.said_operators import AsofDirection, JoinType
from engine.join.join_spec import JoinInput, JoinSpec

DIRECTIONS = list(AsofDirection)
UTC = datetime.UTC
BEGIN = datetime.datetime(2020, 1, 1, tzinfo=UTC)
#: a type, values in order, a tolerance in its units and as a distance of Python's values
TIMES = {
    "int64": (pa.int64(), [-(2**63), -3, 0, 1, 2, 4, 9, 2**63 - 1], 3, 3),
    "uint64": (pa.uint64(), [0, 1, 2, 5, 2**63, 2**64 - 1], 3, 3),
    "int8": (pa.int8(), [-128, -3, 0, 1, 127], 4, 4),
    "uint32": (pa.uint32(), [0, 1, 5, 2**32 - 1], 4, 4),
    "float64": (pa.float64(), [-math.inf, -1.5, -0.0, 0.25, 3.0, math.inf, math.nan], 1.75, 1.75),
    "float32": (pa.float32(), [-1.5, 0.0, 0.25, 3.0, math.nan], 1.75, 1.75),
    "date": (pa.date32(), [datetime.date(2020, 1, day) for day in (1, 2, 5, 9)], 3, datetime.timedelta(days=3)),
    "zone": (
        pa.timestamp("us", "Europe/Zurich"),
        [BEGIN + datetime.timedelta(seconds=each) for each in (0, 1, 2, 60)],
        1_500_000,
        datetime.timedelta(seconds=1.5),
    ),
    "time": (pa.time64("us"), [datetime.time(1), datetime.time(2), datetime.time(3)], None, None),
    "decimal": (
        pa.decimal128(38, 2),
        [decimal.Decimal(each) for each in ("-9e35", "-0.01", "0.00", "1.25", "9e35")],
        126,
        decimal.Decimal("1.26"),
    ),
    "text": (pa.string(), ["", "a", "b", "b much longer than a prefix", "b much longer than a prefix!"], None, None),
}


def case_of(name, direction, near):
    """Return what TIMES has; skips the test where it asks for distances that a type has not."""
    *_, apart = case = TIMES[name]
    if apart is None and (near or direction is AsofDirection.NEAREST):
        pytest.skip("no distances, or none that Python's values tell")
    return case


def before(one, other):
    """Whether a value comes before another one, as sort keys are ordered."""
    if isinstance(one, float):
        if math.isnan(one):
            return False
        return math.isnan(other) or one < other
    return one < other


def distance(one, other):
    if isinstance(one, float):
        if one == other or (math.isnan(one) and math.isnan(other)):
            return 0.0
        apart = abs(one - other)
        return math.inf if math.isnan(apart) else apart
    return max(one, other) - min(one, other)


def asof_oracle(left, right, rule, tolerance):
    """Pairs (left row, right row or None); rows are (group, time, number) in order, groups may be ()."""
    found = []
    for row in left:
        back = ahead = None
        for other in right if None not in row[:2] else ():
            if None in other[:2] or other[0] != row[0]:
                continue
            is_later, is_earlier = before(row[1], other[1]), before(other[1], row[1])
            counts = is_earlier or is_later or not rule.strict
            if counts and not is_later and (back is None or not before(other[1], back[1])):
                back = other
            if counts and not is_earlier and (ahead is None or before(other[1], ahead[1])):
                ahead = other
        if tolerance is not None:
            back = back if back and distance(row[1], back[1]) <= tolerance else None
            ahead = ahead if ahead and distance(row[1], ahead[1]) <= tolerance else None
        chosen = {"backward": back, "forward": ahead}.get(rule.direction.value, back)
        if rule.direction is AsofDirection.NEAREST and back and ahead:
            chosen = ahead if distance(row[1], ahead[1]) < distance(row[1], back[1]) else back
        elif rule.direction is AsofDirection.NEAREST:
            chosen = back or ahead
        found.append((row, chosen))
    return found


def draw(seed, count, times, groups, null_share=0.1, width=0):
    chance = random.Random(seed)

    def one(values):
        return None if chance.random() < null_share else chance.choice(values)

    rows = [(one(groups), one(times), f"{number}{'x' * chance.randrange(width + 1)}") for number in range(count)]
    return sorted(rows, key=lambda row: (row[0] is not None, row[0] or "", row[1] is not None, rank(row[1], times)))


def rank(value, times):
    return -1 if value is None else next(i for i, one in enumerate(times) if not before(one, value))


def table_of(rows, kind, has_groups):
    columns = {"g": pa.array([row[0] for row in rows], pa.string())} if has_groups else {}
    return pa.table({**columns, "t": pa.array([row[1] for row in rows], kind), "n": [row[2] for row in rows]})


def asof_spec(left, right):
    """Specification of a join by all columns but the last, of which the last one is the time."""
    keys = tuple(range(left.num_columns - 1))
    output = [(0, index) for index in range(left.num_columns)] + [(1, index) for index in range(left.num_columns)]
    schema = pa.schema(
        [pa.field(f"c{i}", (left, right)[side].schema.field(c).type) for i, (side, c) in enumerate(output)]
    )
    inputs = {"left": JoinInput(left.schema, keys), "right": JoinInput(right.schema, keys)}
    return JoinSpec(how=JoinType.LEFT, **inputs, output=tuple(output), output_schema=schema)


def numbers_of(batches, width):
    """(number of the left row, number of the right one) of each row, in order."""
    found = []
    for batch in batches:
        found += zip(batch.column(width - 1).to_pylist(), batch.column(2 * width - 1).to_pylist(), strict=True)
    return found
