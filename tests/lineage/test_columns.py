"""Where columns come from: each operator, by queries and calls, down to the columns of sources."""

import pyarrow as pa
import pytest

from engine import Environment, col, sum_
from engine.lineage.columns import origins
from engine.lowering.logical_node import build_plan


@pytest.fixture
def env():
    with Environment() as environment:
        orders = {"id": [1], "shop": ["a"], "price": [1.0], "amount": [2], "tags": [["x"]]}
        environment.register("orders", environment.from_arrow(pa.table(orders)))
        environment.register("shops", environment.from_arrow(pa.table({"shop": ["a"], "city": ["Bonn"]})))
        yield environment


def lineage(env, data):
    """Columns with their origins as "subtype table.column", and what decides the rows."""
    plan = build_plan([data._node], "job")
    names = {}
    for node in plan.nodes:
        if not node.inputs:
            names[node.id] = "orders" if "price" in node.schema.names else "shops"
    rows = origins(plan)[-1]

    def shown(found):
        return {f"{one.subtype} {names[one.source]}.{one.column}" for one in found}

    return {name: shown(found) for name, found in rows.columns.items()}, shown(rows.decided_by)


def test_columns_are_passed_on_and_computed(env):
    columns, decided = lineage(
        env, env.sql("SELECT id AS n, price * amount AS total, 1 AS one FROM orders WHERE price > 0")
    )
    assert columns == {
        "n": {"IDENTITY orders.id"},
        "total": {"TRANSFORMATION orders.price", "TRANSFORMATION orders.amount"},
        "one": set(),
    }
    assert decided == {"FILTER orders.price"}


def test_joins_groups_orders_and_windows(env):
    columns, decided = lineage(
        env,
        env.sql(
            "SELECT city, sum(price * amount) AS total, count(*) AS n, rank() OVER (ORDER BY city) AS place "
            "FROM orders JOIN shops USING (shop) GROUP BY city ORDER BY total"
        ),
    )
    assert columns == {
        "city": {"IDENTITY shops.city"},
        "total": {"AGGREGATION orders.price", "AGGREGATION orders.amount"},
        "n": set(),
        "place": set(),
    }
    assert decided == {
        "JOIN orders.shop",
        "JOIN shops.shop",
        "GROUP_BY shops.city",
        "WINDOW shops.city",
        "SORT orders.price",
        "SORT orders.amount",
    }


def test_a_key_of_a_full_join_is_of_both_sides(env):
    orders, shops = env.tables["orders"], env.tables["shops"]
    columns, _ = lineage(env, orders.select("shop", "id").join(shops, on="shop", how="full"))
    assert columns["shop"] == {"IDENTITY orders.shop", "IDENTITY shops.shop"}
    assert columns["id"] == {"IDENTITY orders.id"} and columns["city"] == {"IDENTITY shops.city"}
    columns, decided = lineage(env, orders.select("shop", "id").join(shops, on="shop", how="semi"))
    assert set(columns) == {"shop", "id"} and decided == {"JOIN orders.shop", "JOIN shops.shop"}


def test_unions_go_by_their_places(env):
    columns, _ = lineage(env, env.sql("SELECT shop AS s FROM orders UNION ALL SELECT city FROM shops"))
    assert columns == {"s": {"IDENTITY orders.shop", "IDENTITY shops.city"}}


def test_functions_may_use_all_they_get(env):
    orders = env.tables["orders"].select("id", "price")
    columns, _ = lineage(env, orders.map(lambda row: (row.id,), pa.schema([("x", pa.int64())])))
    assert columns == {"x": {"TRANSFORMATION orders.id", "TRANSFORMATION orders.price"}}


def test_lists_and_their_places(env):
    columns, _ = lineage(env, env.tables["orders"].select("id", "tags").explode("tags"))
    assert columns == {"id": {"IDENTITY orders.id"}, "tags": {"IDENTITY orders.tags"}}


def test_what_becomes_of_a_value_is_said_once_and_fully(env):
    data = (
        env.tables["orders"].group_by("shop").agg(total=sum_("price")).select((col("total") * 2).alias("twice"), "shop")
    )
    columns, _ = lineage(env, data)
    assert columns == {"twice": {"AGGREGATION orders.price"}, "shop": {"IDENTITY orders.shop"}}
