"""Work of a data engineer over a dirty export and nested events, in little memory and much: DuckDB's answers."""

import datetime
import gzip
import json
import math
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count, count_distinct, lag, lead, max_, median, min_, row_number, sum_, when

ROWS = 2000
TEXT = pa.string()
ORDERS = pa.schema(
    [("id", pa.int64()), ("customer", TEXT), ("day", pa.date32()), ("amount", pa.float64()), ("status", TEXT)]
)
MODES = [("4mb", 1), ("4mb", 3), ("64mb", 3)]
FIRST = datetime.date(2024, 1, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pipelines")
    rng = random.Random(5)
    with (made / "orders.csv").open("w") as file:
        file.write("id,customer,day,amount,status\n")
        for number in range(ROWS):
            customer = rng.choice([f"c{rng.randrange(40)}", ""])
            day = rng.choice([FIRST + datetime.timedelta(rng.randrange(100))] * 20 + [""])
            amount = rng.choice([f"{rng.uniform(-5, 500):.2f}"] * 30 + ["n/a"])
            file.write(f"{number},{customer},{day},{amount},{rng.choice(['paid', 'open', 'NULL'])}\n")
            if number % 500 == 499:
                file.write("a line that is broken\n")
                file.write(f'{number},"c1",2024-13-45,1,paid\n')
    with gzip.open(made / "events.json.gz", "wt") as file:
        for _ in range(ROWS):
            at = datetime.datetime(2024, 5, 1) + datetime.timedelta(seconds=rng.randrange(200_000))
            price = rng.choice([None, round(rng.random() * 100, 2)])
            props = {"price": price, "tags": rng.sample("abc", rng.randrange(4))}
            event = {"user": f"u{rng.randrange(30)}", "at": at.isoformat(), "kind": rng.choice(["view", "buy"])}
            file.write(json.dumps({**event, "props": props}) + "\n")
    cities = [(f"c{number}", rng.choice(["Bern", "Paris", None])) for number in range(50)]
    since = [FIRST] * 50 + [FIRST + datetime.timedelta(rng.randrange(1, 90)) for _ in range(50)]
    rows = zip(cities + [(name, "moved") for name, _ in cities], since, strict=True)
    table = pa.Table.from_pylist([{"customer": name, "city": city, "since": day} for (name, city), day in rows])
    pq.write_table(table, made / "customers.parquet")
    return made


@pytest.fixture(scope="module")
def wanted(folder):
    """What DuckDB answers."""
    with duckdb.connect() as connection:
        columns = "{'id': 'BIGINT', 'customer': 'VARCHAR', 'day': 'DATE', 'amount': 'DOUBLE', 'status': 'VARCHAR'}"
        connection.execute(
            f"create table orders as select * from read_csv('{folder}/orders.csv', header=true, columns={columns},"
            " ignore_errors=true, nullstr=['', 'NULL', 'n/a'], auto_detect=false, quote='\"', delim=',')"
        )
        connection.execute(
            'create table events as select "user", "at"::timestamp as "at", kind, props.price as price, props.tags as'
            f" tags from read_json('{folder}/events.json.gz')"
        )
        connection.execute(f"create table customers as select * from '{folder}/customers.parquet'")
        yield lambda query: as_rows(connection.sql(query).to_arrow_table())


@pytest.fixture(params=MODES, ids=lambda mode: f"{mode[0]}, {mode[1]}")
def env(request):
    memory, parallelism = request.param
    config = {"parallelism.default": parallelism, "taskmanager.memory.managed.size": memory}
    with Environment(config=config) as environment:
        yield environment


@pytest.fixture
def orders(env, folder):
    nulls = ["", "NULL", "n/a"]
    return env.read_csv(folder / "orders.csv", ORDERS, header=True, null_values=nulls, on_bad_row="skip")


@pytest.fixture
def events(env, folder):
    data = env.read_json(folder / "events.json.gz").unnest("props")
    return data.with_columns(at=col("at").cast(pa.timestamp("us")))


def as_rows(table):
    def rounded(value):
        if isinstance(value, float):
            return "nan" if math.isnan(value) else float(f"{value:.9g}")
        return value

    return sorted((tuple(map(rounded, row.values())) for row in table.to_pylist()), key=repr)


def test_sessions_of_events(events, wanted):
    window = {"partition_by": "user", "order_by": ["at", "kind", "price"], "nulls_last": True}
    late = col("before").is_null() | ((col("at") - col("before")) > datetime.timedelta(minutes=30))
    numbered = (
        events.with_columns(before=lag("at").over(**window))
        .with_columns(begins=when(late).then(1).otherwise(0))
        .with_columns(session=sum_("begins").over(**window, rows=(None, 0)))
    )
    found = numbered.group_by("user", "session").agg(n=count(), begin=min_("at"), end=max_("at"))
    assert as_rows(found.to_arrow()) == wanted("""
        with gaps as (select *, lag("at") over w as before from events
                      window w as (partition by "user" order by "at", kind, price)),
        numbered as (select *, sum(case when before is null or "at" - before > interval 30 minute then 1 else 0 end)
                     over (partition by "user" order by "at", kind, price rows unbounded preceding) as session
                     from gaps)
        select "user", session::bigint, count(*), min("at"), max("at") from numbered group by 1, 2""")


def test_islands_of_days(orders, wanted):
    days = orders.drop_nulls(["customer", "day"]).select("customer", "day").distinct()
    number = row_number().over("customer", order_by="day")
    islands = days.with_columns(island=col("day").dt.epoch("s") // 86400 - number)
    found = islands.group_by("customer", "island").agg(begin=min_("day"), end=max_("day"), n=count()).drop("island")
    assert as_rows(found.to_arrow()) == wanted("""
        with days as (select distinct customer, day from orders where customer is not null and day is not null),
        islands as (select *, day - (row_number() over (partition by customer order by day))::int as island from days)
        select customer, min(day), max(day), count(*) from islands group by customer, island""")


def test_a_dimension_that_changes_slowly(env, folder, orders, wanted):
    cities = env.read_parquet(folder / "customers.parquet")
    valid = cities.with_columns(until=lead("since").over("customer", order_by="since"))
    is_then = (col("day") >= col("since")) & ((col("day") < col("until")) | col("until").is_null())
    found = orders.join(valid, on="customer", how="left", condition=is_then).select("id", "city")
    query = """
        select id, city from orders left join
          (select *, lead(since) over (partition by customer order by since) as until from customers) as cities
        on orders.customer = cities.customer and day >= since and (day < until or until is null)"""
    assert as_rows(found.to_arrow()) == wanted(query)
    nearest = orders.asof_join(cities, left_on="day", right_on="since", by="customer").select("id", "city")
    assert as_rows(nearest.to_arrow()) == wanted(query)


def test_months_since_the_first_order_and_medians_beside_rows(orders, wanted):
    known = orders.drop_nulls(["day", "customer"])
    first = known.group_by("customer").agg(month=min_("day")).with_columns(month=col("month").dt.truncate("month"))
    months = (col("day").dt.year() - col("month").dt.year()) * 12 + col("day").dt.month() - col("month").dt.month()
    cohorts = known.join(first, on="customer").group_by("month", age=months).agg(n=count_distinct("customer"))
    assert as_rows(cohorts.to_arrow()) == wanted("""
        with firsts as (select customer, date_trunc('month', min(day))::date as month from orders
                        where day is not null and customer is not null group by 1)
        select month, date_diff('month', month, date_trunc('month', day)::date), count(distinct orders.customer)
        from orders join firsts using (customer) where day is not null group by 1, 2""")
    beside = orders.select("id", off=col("amount") - median("amount").over("customer"))
    assert as_rows(beside.to_arrow()) == wanted(
        "select id, amount - median(amount) over (partition by customer) from orders"
    )


def test_partitions_that_grow_and_are_replaced(env, orders, wanted, tmp_path):
    target = tmp_path / "out"
    by_month = orders.with_columns(month=col("day").dt.month())
    by_month.write_parquet(target, partition_by="month")
    env.execute()
    by_month.filter(col("id") % 2 == 0).write_parquet(target, partition_by="month", mode="append")
    env.execute()
    by_month.filter(col("month") == 2).write_parquet(target, partition_by="month", mode="overwrite_partitions")
    env.execute()
    found = env.read_parquet(target).group_by("month").agg(n=count(), ids=count_distinct("id"), total=sum_("amount"))
    assert as_rows(found.to_arrow()) == wanted("""
        with rows as (select month(day) as month, * from orders), twice as
          (select * from rows union all select * from rows where id % 2 = 0 and month is distinct from 2)
        select month, count(*), count(distinct id), sum(amount) from twice group by 1""")
