"""Each type as a key, and in aggregates: right, or refused with what to do."""

import re
from fractions import Fraction

import pyarrow as pa
import pytest

import engine
from engine.errors import DataError, NotYetSupportedError, SchemaError
from tests.types_table.keys import USES, Keyed
from tests.types_table.paths import PLACES
from tests.types_table.sampled_types import FOREIGN, KEYS, TYPES, values_of
from tests.types_table.table import NOT_IN_POLARS, UNIONS, UNORDERED

#: uses that keep rows
_KEEPING = ("sort", "group_by", "join", "sort_merge_join", "distinct", "windows")
_ADVICE = re.compile(r"\b(cast|drop|leave|take|use)\b")
_NUMBERS = [
    name
    for name in KEYS
    if pa.types.is_integer(values_of(name, is_plain=True).type)
    or pa.types.is_floating(values_of(name, is_plain=True).type)
    or pa.types.is_decimal(values_of(name, is_plain=True).type)
]
#: whose sum no type of a sum holds
_BEYOND = ("uint64", "decimal128_38")


@pytest.fixture
def environment(open_environment):
    return open_environment()


@pytest.fixture
def spilling(open_environment):
    return open_environment(**{"debug.force-spill": True})


def _wrong(use, names, environment):
    wrong = {}
    for name in names:
        try:
            found, wanted = USES[use](Keyed(name, environment))
        except Exception as error:
            found, wanted = repr(error), None
        if found != wanted:
            wrong[name] = (found, wanted)
    return wrong


def _some(use):
    """Return every third type: three uses in a row have all of them, and each use has some of each kind."""
    return KEYS[list(USES).index(use) % 3 :: 3]


@pytest.mark.parametrize("use", USES)
def test_types_with_an_order_are_keys(use, environment):
    assert _wrong(use, _some(use), environment) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("use", USES)
def test_all_other_types_with_an_order_are_keys(use, environment):
    assert _wrong(use, sorted({*KEYS}.difference(_some(use))), environment) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("use", _KEEPING)
def test_keys_come_back_from_the_disk(use, spilling):
    assert _wrong(use, KEYS, spilling) == {}


@pytest.mark.parametrize("use", USES)
def test_types_without_an_order_are_refused(use, environment):
    for name in sorted(UNORDERED | UNIONS):
        rows = environment.from_arrow(pa.table({"k": PLACES, "key": {**TYPES, **FOREIGN}[name]}))
        keyed = object.__new__(Keyed)
        keyed.environment, keyed.rows, keyed.ranks, keyed.values = environment, rows, list(range(8)), None
        keyed.type = rows.schema.field("key").type
        with pytest.raises((SchemaError, NotYetSupportedError)) as failure:
            USES[use](keyed)
        assert "key" in str(failure.value), failure.value
        assert _ADVICE.search(str(failure.value)), failure.value


def _aggregated(environment, names, function):
    """Return the aggregate of each column over all rows, which two subtasks have; a job has a few of them."""
    names, found = list(names), {}
    for few in (names[at : at + 8] for at in range(0, len(names), 8)):
        rows = environment.from_arrow(pa.table({"k": PLACES, **{name: values_of(name) for name in few}})).shuffle()
        table = rows.agg(**{name: function(name) for name in few}).to_arrow()
        found.update(zip(table.column_names, table.columns, strict=True))
    return pa.table(found)


def test_values_of_every_type_are_counted(environment):
    counts = _aggregated(environment, TYPES, engine.count).to_pylist()[0]
    assert counts == {name: len(array) - values_of(name, is_plain=True).null_count for name, array in TYPES.items()}


def test_different_values_of_every_key_are_counted(environment):
    wanted = {name: len({rank for rank in Keyed(name, environment).ranks if rank is not None}) for name in KEYS}
    for function in (engine.count_distinct, engine.approx_count_distinct):
        assert _aggregated(environment, KEYS, function).to_pylist()[0] == wanted


def test_the_least_and_the_greatest_value_of_every_key_have_its_type(environment):
    names = [name for name in KEYS if name != "null"]
    least, greatest = (_aggregated(environment, names, function) for function in (engine.min_, engine.max_))
    for name in names:
        keyed, values = Keyed(name, environment), values_of(name, is_plain=True)
        ordered = [place for place in keyed.ascending() if keyed.ranks[place] is not None]
        assert least[name].combine_chunks().equals(values.take(pa.array(ordered[:1]))), name
        assert greatest[name].combine_chunks().equals(values.take(pa.array(ordered[-1:]))), name


def test_lists_of_values_of_every_type_have_all_of_them(environment):
    lists = _aggregated(environment, TYPES, lambda name: engine.collect_list(name, order_by="k"))
    for name in TYPES:
        found = lists[name].combine_chunks()
        assert found.type.value_type == values_of(name, is_plain=True).type, name
        assert found.flatten().to_pylist() == values_of(name, is_plain=True).to_pylist(), name


def test_the_value_that_is_there_most_often_has_the_type_of_its_key(environment):
    names = [name for name in KEYS if name != "null"]
    modes = _aggregated(environment, names, engine.mode)
    for name in names:
        assert modes[name].combine_chunks().equals(values_of(name, is_plain=True).take(pa.array([0]))), name


def _exact(name):
    values = values_of(name, is_plain=True).to_pylist()
    return [Fraction(str(value)) if "decimal" in name else Fraction(value) for value in values if value is not None]


def test_sums_means_and_medians_of_every_number_are_exact(environment):
    names = [name for name in _NUMBERS if name not in _BEYOND]
    sums = _aggregated(environment, names, engine.sum_).to_pylist()[0]
    means = _aggregated(environment, names, engine.avg).to_pylist()[0]
    medians = _aggregated(environment, _NUMBERS, engine.median).to_pylist()[0]
    for name in names:
        numbers = _exact(name)
        is_rounded = "float" in name
        total = Fraction(str(sums[name])) if "decimal" in name else Fraction(sums[name])
        assert total == sum(numbers) or (is_rounded and float(total) == pytest.approx(float(sum(numbers)))), name
        assert means[name] == pytest.approx(float(sum(numbers) / len(numbers)), rel=1e-15), name
    for name in _NUMBERS:
        numbers = sorted(_exact(name))
        assert medians[name] == float((numbers[2] + numbers[3]) / 2), name


@pytest.mark.parametrize("name", _BEYOND)
def test_a_sum_that_its_type_cannot_hold_ends_the_job_and_says_which(name, environment):
    with pytest.raises(DataError, match=rf"sum\({name}\) overflows"):
        _aggregated(environment, [name], engine.sum_)
    with pytest.raises(DataError, match="range"):
        rows = environment.from_arrow(pa.table({"k": PLACES, name: values_of(name)}))
        rows.select(sum=engine.sum_(name).over(order_by="k", rows=(None, 0))).to_arrow()


@pytest.mark.parametrize("name", ["string", "date32", "bool", "list_int64", "struct", "extension_uuid", "binary"])
def test_what_is_no_number_has_no_sum(name, environment):
    for function in (engine.sum_, engine.avg, engine.stddev):
        with pytest.raises(SchemaError, match=r"takes numbers, the argument is"):
            _aggregated(environment, [name], function)


def test_pandas_has_the_values_of_every_type(environment):
    """Integers beside nulls too, of which doubles would lose digits."""
    rows = environment.from_arrow(pa.table({"k": PLACES, **{name: values_of(name) for name in TYPES}})).sort("k")
    frame = rows.to_pandas()
    assert list(frame.columns) == rows.schema.names
    for name in ("int64", "uint64"):
        assert [int(value) for value in frame[name].dropna()] == [v for v in TYPES[name].to_pylist() if v is not None]
    for name in ("list_uuid", "struct_uuid", "string"):
        assert list(frame[name]) == values_of(name).to_pylist(), name


def test_polars_has_the_values_of_every_type_or_says_which_it_has_not(environment):
    rows = environment.from_arrow(pa.table({"k": PLACES, **{name: values_of(name) for name in TYPES}})).sort("k")
    polars = rows.drop(*NOT_IN_POLARS & TYPES.keys()).to_polars()
    assert polars.columns == [name for name in rows.schema.names if name not in NOT_IN_POLARS]
    for name in ("decimal32", "struct_wide_types", "timestamp_us_offset", "uint64", "list_struct", "map_string"):
        known = [value for value in polars[name].to_list() if value is not None]
        assert len(known) == 6, name
    assert polars["struct_wide_types"][0]["d"] == TYPES["struct_wide_types"].to_pylist()[0]["d"]
    assert polars["timestamp_us_offset"][0] == TYPES["timestamp_us_offset"].to_pylist()[0]
    for name in sorted(NOT_IN_POLARS):
        with pytest.raises(SchemaError, match=rf"to_polars: column '{name}' is .*, which Polars cannot hold"):
            environment.from_arrow(pa.table({name: values_of(name)})).to_polars()
