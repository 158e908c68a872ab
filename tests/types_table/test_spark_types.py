"""Each type on a job that runs on Spark: the values come back, or the job is refused with column and type."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from engine import Environment, count
from engine.errors import NotYetSupportedError, SchemaError
from tests.spark.conftest import spark
from tests.types_table.paths import PLACES
from tests.types_table.sampled_types import KEYS, TYPES, values_of
from tests.types_table.table import NOT_ON_SPARK, WIDE

__all__ = ["spark"]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


@pytest.fixture
def environment(spark):
    with Environment(config={"parallelism.default": 2}, target="spark") as one:
        yield one


def _rows(environment, names):
    return environment.from_arrow(pa.table({"k": PLACES, **{name: values_of(name) for name in names}}))


def test_values_of_every_type_come_back_from_spark(environment):
    names = [name for name in TYPES if name not in WIDE | NOT_ON_SPARK]
    found = _rows(environment, names).sort("k").to_arrow()
    wrong = {
        name: (found[name].combine_chunks(), values_of(name, is_plain=True))
        for name in names
        if not found[name].combine_chunks().equals(values_of(name, is_plain=True))
    }
    assert wrong == {}


@pytest.mark.parametrize("name", sorted(NOT_ON_SPARK))
def test_a_type_that_spark_has_not_is_refused_with_its_column(name, environment):
    with pytest.raises((SchemaError, NotYetSupportedError), match=name):
        _rows(environment, [name]).sort("k").to_arrow()


def test_keys_are_the_same_on_spark(environment):
    names = [name for name in KEYS if name not in WIDE][::4]
    for name in names:
        groups = _rows(environment, [name]).group_by(name).agg(count=count()).to_arrow()
        local = values_of(name, is_plain=True).value_counts()
        assert sorted(groups["count"].to_pylist()) == sorted(local.field("counts").to_pylist()), name
