"""Programs of native steps: blocks, nulls, slices, decimals of changing width, threads."""

import decimal
import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from engine.expressions.vector_program import VectorProgram
from engine.expressions.vector_workspace import spare_bytes

D = decimal.Decimal
COUNTS = [0, 1, 63, 64, 65, 1023, 1024, 1025, 3000]
PRODUCT = pa.decimal128(38, 4)


def columns(*arrays):
    return pa.RecordBatch.from_arrays(list(arrays), names=["" for _ in arrays])


def sums():
    """a + b of int64."""
    return VectorProgram(["integer"] * 3, [0, 1], [], [("add", 2, 0, 1, -1, -1)], [(2, pa.int64())])


def products(result=PRODUCT):
    """a * b of decimals."""
    return VectorProgram(["decimal"] * 3, [0, 1], [], [("multiply", 2, 0, 1, -1, -1)], [(2, result)])


def with_nulls(values, seed):
    chance = random.Random(seed)
    return [None if chance.random() < 0.2 else value for value in values]


@pytest.mark.parametrize("count", COUNTS)
def test_blocks_cover_every_row_once(count):
    a, b = with_nulls(range(count), 1), with_nulls(range(count), 2)
    (found,) = sums().run(columns(pa.array(a, pa.int64()), pa.array(b, pa.int64())))
    assert found.to_pylist() == [None if None in (x, y) else x + y for x, y in zip(a, b, strict=True)]
    found.validate(full=True)


@pytest.mark.parametrize("first", [1, 7, 64, 100])
def test_columns_may_begin_anywhere(first):
    a, flags = with_nulls(range(2500), 3), with_nulls([row % 3 == 0 for row in range(2500)], 4)
    program = VectorProgram(
        ["integer", "bits", "bits", "integer"],
        [0, 1],
        [],
        [("not", 2, 1, 1, -1, -1), ("spread", 3, 2, 2, -1, -1)],
        [(2, pa.bool_()), (3, pa.int8())],
    )
    negated, numbers = program.run(columns(pa.array(a, pa.int64())[first:], pa.array(flags, pa.bool_())[first:]))
    assert negated.to_pylist() == [None if one is None else not one for one in flags[first:]]
    assert numbers.to_pylist() == [None if one is None else int(not one) for one in flags[first:]]


@pytest.mark.parametrize("wide_row", [None, 0, 1500])
@pytest.mark.parametrize("data_type", [pa.decimal128(30, 2), pa.decimal256(50, 2)])
def test_decimals_are_as_wide_as_a_block_needs(wide_row, data_type):
    a = [D(row) / 4 for row in range(2000)]
    if wide_row is not None:
        a[wide_row] = D("-12345678901234567890123.25")
    b = [D("-1.25")] * 2000
    (found,) = products().run(columns(pa.array(a, data_type), pa.array(b, pa.decimal128(9, 2))))
    with decimal.localcontext(prec=60):
        assert found.to_pylist() == [x * y for x, y in zip(a, b, strict=True)]


def test_a_product_beyond_64_bits_is_exact():
    a, b = [D(9_999_999_999_999), D(-3)], [D(9_999_999_999_999), D(5)]
    for result in (pa.decimal128(38, 0), pa.decimal256(60, 0)):
        (found,) = products(result).run(columns(pa.array(a, pa.decimal128(18, 0)), pa.array(b, pa.decimal128(18, 0))))
        assert found.to_pylist() == [D(99_999_999_999_980_000_000_000_001), D(-15)]


def test_what_no_lane_holds_has_no_result():
    most = 2**63 - 1
    assert sums().run(columns(pa.array([1, most]), pa.array([1, 1]))) is None
    assert sums().run(columns(pa.array([1, most]), pa.array([1, None]))).pop().to_pylist() == [2, None]
    large = pa.array([D(10**37)], pa.decimal128(38, 0))
    assert products(pa.decimal256(76, 0)).run(columns(large, large)) is None
    huge = pa.array([D(10**60)], pa.decimal256(76, 0))
    assert products(pa.decimal256(76, 0)).run(columns(huge, huge)) is None


def test_rows_outside_of_a_guard_may_fail():
    steps = [("not_equal", 3, 1, 2, -1, -1), ("floor_divide", 4, 0, 1, -1, 3)]
    zero = [(2, pa.scalar(0))]
    program = VectorProgram(["integer"] * 3 + ["bits", "integer"], [0, 1], zero, steps, [(4, pa.int64())])
    (found,) = program.run(columns(pa.array([7, 7, -7]), pa.array([2, 0, 2])))
    assert [found[0].as_py(), found[2].as_py()] == [3, -4]
    least = pa.array([-(2**63)])
    assert program.run(columns(least, pa.array([-1]))) is None


TEXTS = ["", "a", "ab", "b", "abcabd", "abd", "ß", "a longer text of some words", "a longer text of some word!"]
TESTS = {
    "equal": lambda one, other: one == other,
    "not_equal": lambda one, other: one != other,
    "less": lambda one, other: one.encode() < other.encode(),
    "less_equal": lambda one, other: one.encode() <= other.encode(),
    "starts_with": lambda one, other: one.startswith(other),
    "ends_with": lambda one, other: one.endswith(other),
    "contains": lambda one, other: other in one,
}


@pytest.mark.parametrize("constant", [*TEXTS, "x" * 17])
@pytest.mark.parametrize("test", TESTS)
def test_texts_are_compared_with_a_constant(test, constant):
    texts = with_nulls([*TEXTS, "x" * 17] * 30, 5)
    program = VectorProgram(
        ["text", "text", "bits"], [0], [(1, pa.scalar(constant))], [(test, 2, 0, 1, -1, -1)], [(2, pa.bool_())]
    )
    expected = [None if text is None else TESTS[test](text, constant) for text in texts]
    for data_type in (pa.string(), pa.large_binary()):
        (found,) = program.run(columns(pa.array(texts, pa.string()).cast(data_type)[1:]))
        assert found.to_pylist() == expected[1:]


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 10**6, 86400 * 10**9, 2**62, 2**63 - 1, -1, -5])
def test_numbers_are_divided_by_a_constant(divisor):
    chance = random.Random(divisor)
    edges = [0, 1, -1, divisor, -divisor, divisor - 1, 2**63 - 1, -(2**63) + 1]
    numbers = [*edges, *(chance.randint(-(2**63) + 1, 2**63 - 1) for _ in range(1000))]
    steps = [("floor_divide", 2, 0, 1, -1, -1), ("modulo", 3, 0, 1, -1, -1)]
    program = VectorProgram(["integer"] * 4, [0], [(1, pa.scalar(divisor))], steps, [(2, pa.int64()), (3, pa.int64())])
    quotients, rests = program.run(columns(pa.array(numbers)))
    assert quotients.to_pylist() == [number // divisor for number in numbers]
    assert rests.to_pylist() == [number % divisor for number in numbers]


@pytest.mark.parametrize("types", [(pa.string(), pa.string()), (pa.large_string(), pa.string())])
@pytest.mark.parametrize("test", TESTS)
def test_texts_are_compared_where_they_lie(test, types):
    pairs = [(one, other) for one in [*TEXTS, None] for other in [*TEXTS, None]] * 25
    program = VectorProgram(["text", "text", "bits"], [0, 1], [], [(test, 2, 0, 1, -1, -1)], [(2, pa.bool_())])
    left, right = (pa.array(texts, data_type) for texts, data_type in zip(zip(*pairs, strict=True), types, strict=True))
    (found,) = program.run(columns(left[3:], right[3:]))
    assert found.to_pylist() == [None if None in pair else TESTS[test](*pair) for pair in pairs[3:]]


def test_a_batch_of_other_columns_is_refused():
    with pytest.raises(ValueError, match="over 2 columns is given 1"):
        sums().run(columns(pa.array([1])))


def test_threads_share_a_program():
    program = sums()
    batches = [columns(pa.array([number] * 5000), pa.array(range(5000))) for number in range(16)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(program.run, batches))
    for number, (found,) in enumerate(results):
        assert found.to_pylist() == [number + row for row in range(5000)]


NARROW = pa.decimal64(18, 4)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("result", [PRODUCT, pa.decimal256(60, 4)])
def test_decimals_come_and_go_in_64_bits(count, result):
    a, b = with_nulls([D(row) / 4 for row in range(count)], 5), with_nulls([D("-1.25")] * count, 6)
    program = products(result)
    for left, right in ((pa.decimal64(18, 2), pa.decimal64(9, 2)), (pa.decimal64(18, 2), pa.decimal128(9, 2))):
        inputs = columns(pa.array(a, left), pa.array(b, right))
        (found,) = program.run(inputs, [0])
        assert found.type == NARROW
        assert found.cast(result).equals(program.run(inputs)[0])
        assert found.to_pylist() == [None if None in (x, y) else x * y for x, y in zip(a, b, strict=True)]


def test_a_result_that_does_not_fit_is_as_wide_as_its_type_from_then_on():
    types = pa.decimal128(18, 2)
    small = columns(pa.array([D(2)] * 2000, types), pa.array([D(3)] * 2000, types))
    large = columns(pa.array([D(2)] * 1999 + [D(10**15)], types), pa.array([D(3)] * 1999 + [D(10**15)], types))
    program = VectorProgram(
        ["decimal"] * 4,
        [0, 1],
        [],
        [("multiply", 2, 0, 1, -1, -1), ("add", 3, 0, 1, -1, -1)],
        [(2, PRODUCT), (3, pa.decimal128(19, 2))],
    )
    assert [one.type for one in program.run(small, [0, 1])] == [NARROW, pa.decimal64(18, 2)]
    assert [one.type for one in program.run(small, [1])] == [PRODUCT, pa.decimal64(18, 2)]
    for batch, last in ((large, D(10**30)), (small, D(6))):
        product, total = program.run(batch, [0, 1])
        assert (product.type, total.type) == (PRODUCT, pa.decimal64(18, 2))
        assert product.to_pylist() == [D(6)] * 1999 + [last]


def test_programs_keep_vectors_of_runs_within_a_limit_and_drop_their_own():
    """Each keeps the vectors of its last run for the next one; of all together there is a limit."""
    batch = columns(pa.array([D(1)], pa.decimal128(37, 0)), pa.array([D(2)], pa.decimal128(37, 0)))

    def program():
        steps = [("add", 2, 0, 1, -1, -1)]
        return VectorProgram(["decimal"] * 400, [0, 1], [], steps, [(2, pa.decimal128(38, 0))])

    programs, kept = [], []
    for _ in range(8):
        programs.append(program())
        for _ in range(2):
            (found,) = programs[-1].run(batch)
            assert found.to_pylist() == [D(3)]
        kept.append(spare_bytes())
    assert 0 < max(kept) <= 16 << 20
    assert min(kept) < max(kept)
    last = spare_bytes()
    programs.pop()
    assert spare_bytes() < last
