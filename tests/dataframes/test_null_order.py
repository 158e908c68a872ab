"""Nulls go where the guide's table says on Spark, too, and Spark's own default is what the guide says of it."""

import pyarrow as pa
import pytest

from tests.integration.null_order import CASES, ROWS, engines_of_the_guide

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", CASES)
def test_nulls_go_to_the_same_place_on_spark(places, tmp_path, name):
    _, on_spark = places
    CASES[name](on_spark.from_arrow(pa.table(ROWS)), on_spark, tmp_path / "out")


def test_spark_orders_nulls_as_the_table_says(spark):
    frame = spark.createDataFrame([(value,) for value in ROWS["v"]], "v int")
    orders = ([row.v for row in frame.orderBy(order).collect()] for order in (frame.v.asc(), frame.v.desc()))
    assert engines_of_the_guide()["Spark"] == tuple("first" if found[0] is None else "last" for found in orders)
