"""The 22 queries through Drey's API, as one writes them who knows the question and not the optimizer.

Each function takes the eight tables and returns the answer as a data set; ``QUERIES`` has them by number.

Held by: tests/integration/test_tpch.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from engine import DataSet, Environment, avg, col, count, count_distinct, max_, min_, sum_, when


@dataclass(frozen=True)
class Tables:
    """The eight tables."""

    customer: DataSet
    lineitem: DataSet
    nation: DataSet
    orders: DataSet
    part: DataSet
    partsupp: DataSet
    region: DataSet
    supplier: DataSet


def read_tables(env: Environment, folder: Path) -> Tables:
    """Return the tables of a folder with one Parquet file each."""
    return Tables(**{name: env.read_parquet(folder / f"{name}.parquet") for name in Tables.__dataclass_fields__})


def _charged() -> object:
    return col("l_extendedprice") * (1 - col("l_discount"))


def q1(t: Tables) -> DataSet:
    items = t.lineitem.filter(col("l_shipdate") <= date(1998, 9, 2))
    return (
        items.group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=sum_(col("l_quantity")),
            sum_base_price=sum_(col("l_extendedprice")),
            sum_disc_price=sum_(_charged()),
            sum_charge=sum_(_charged() * (1 + col("l_tax"))),
            avg_qty=avg(col("l_quantity")),
            avg_price=avg(col("l_extendedprice")),
            avg_disc=avg(col("l_discount")),
            count_order=count(),
        )
        .sort(["l_returnflag", "l_linestatus"])
    )


def q2(t: Tables) -> DataSet:
    offers = (
        t.part.filter((col("p_size") == 15) & col("p_type").str.ends_with("BRASS"))
        .join(t.partsupp, left_on="p_partkey", right_on="ps_partkey")
        .join(t.supplier, left_on="ps_suppkey", right_on="s_suppkey")
        .join(t.nation, left_on="s_nationkey", right_on="n_nationkey")
        .join(t.region.filter(col("r_name") == "EUROPE"), left_on="n_regionkey", right_on="r_regionkey")
    )
    cheapest = offers.group_by("p_partkey").agg(ps_supplycost=min_("ps_supplycost"))
    return (
        offers.join(cheapest, on=["p_partkey", "ps_supplycost"])
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .sort(["s_acctbal", "n_name", "s_name", "p_partkey"], descending=[True, False, False, False])
        .limit(100)
    )


def q3(t: Tables) -> DataSet:
    return (
        t.customer.filter(col("c_mktsegment") == "BUILDING")
        .join(t.orders.filter(col("o_orderdate") < date(1995, 3, 15)), left_on="c_custkey", right_on="o_custkey")
        .join(t.lineitem.filter(col("l_shipdate") > date(1995, 3, 15)), left_on="o_orderkey", right_on="l_orderkey")
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue=sum_(_charged()))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort(["revenue", "o_orderdate"], descending=[True, False])
        .limit(10)
    )


def q4(t: Tables) -> DataSet:
    late = t.lineitem.filter(col("l_commitdate") < col("l_receiptdate"))
    placed = (col("o_orderdate") >= date(1993, 7, 1)) & (col("o_orderdate") < date(1993, 10, 1))
    return (
        t.orders.filter(placed)
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=count())
        .sort("o_orderpriority")
    )


def q5(t: Tables) -> DataSet:
    placed = (col("o_orderdate") >= date(1994, 1, 1)) & (col("o_orderdate") < date(1995, 1, 1))
    return (
        t.customer.join(t.orders.filter(placed), left_on="c_custkey", right_on="o_custkey")
        .join(t.lineitem, left_on="o_orderkey", right_on="l_orderkey")
        .join(t.supplier, left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
        .join(t.nation, left_on="s_nationkey", right_on="n_nationkey")
        .join(t.region.filter(col("r_name") == "ASIA"), left_on="n_regionkey", right_on="r_regionkey")
        .group_by("n_name")
        .agg(revenue=sum_(_charged()))
        .sort("revenue", descending=True)
    )


def q6(t: Tables) -> DataSet:
    items = t.lineitem.filter(
        (col("l_shipdate") >= date(1994, 1, 1))
        & (col("l_shipdate") < date(1995, 1, 1))
        & col("l_discount").between(Decimal("0.05"), Decimal("0.07"))
        & (col("l_quantity") < 24)
    )
    return items.group_by().agg(revenue=sum_(col("l_extendedprice") * col("l_discount")))


def q7(t: Tables) -> DataSet:
    customers = t.customer.join(
        t.nation.select(col("n_nationkey").alias("cust_nationkey"), col("n_name").alias("cust_nation")),
        left_on="c_nationkey",
        right_on="cust_nationkey",
    )
    suppliers = t.supplier.join(
        t.nation.select(col("n_nationkey").alias("supp_nationkey"), col("n_name").alias("supp_nation")),
        left_on="s_nationkey",
        right_on="supp_nationkey",
    )
    between = ((col("supp_nation") == "FRANCE") & (col("cust_nation") == "GERMANY")) | (
        (col("supp_nation") == "GERMANY") & (col("cust_nation") == "FRANCE")
    )
    return (
        suppliers.join(t.lineitem, left_on="s_suppkey", right_on="l_suppkey")
        .join(t.orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(customers, left_on="o_custkey", right_on="c_custkey")
        .filter(between & col("l_shipdate").between(date(1995, 1, 1), date(1996, 12, 31)))
        .group_by("supp_nation", "cust_nation", col("l_shipdate").dt.year().alias("l_year"))
        .agg(revenue=sum_(_charged()))
        .sort(["supp_nation", "cust_nation", "l_year"])
    )


def q8(t: Tables) -> DataSet:
    sellers = t.nation.select(col("n_nationkey").alias("supp_nationkey"), col("n_name").alias("nation"))
    sold = (
        t.part.filter(col("p_type") == "ECONOMY ANODIZED STEEL")
        .join(t.lineitem, left_on="p_partkey", right_on="l_partkey")
        .join(t.supplier, left_on="l_suppkey", right_on="s_suppkey")
        .join(t.orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(t.customer, left_on="o_custkey", right_on="c_custkey")
        .join(t.nation, left_on="c_nationkey", right_on="n_nationkey")
        .join(t.region.filter(col("r_name") == "AMERICA"), left_on="n_regionkey", right_on="r_regionkey")
        .join(sellers, left_on="s_nationkey", right_on="supp_nationkey")
        .filter(col("o_orderdate").between(date(1995, 1, 1), date(1996, 12, 31)))
    )
    of_brazil = when(col("nation") == "BRAZIL").then(_charged()).otherwise(Decimal("0.0000"))
    return (
        sold.group_by(col("o_orderdate").dt.year().alias("o_year"))
        .agg(of_nation=sum_(of_brazil), of_all=sum_(_charged()))
        .select("o_year", (col("of_nation") / col("of_all")).alias("mkt_share"))
        .sort("o_year")
    )


def q9(t: Tables) -> DataSet:
    profit = _charged() - col("ps_supplycost") * col("l_quantity")
    return (
        t.part.filter(col("p_name").str.contains("green"))
        .join(t.lineitem, left_on="p_partkey", right_on="l_partkey")
        .join(t.supplier, left_on="l_suppkey", right_on="s_suppkey")
        .join(t.partsupp, left_on=["l_suppkey", "l_partkey"], right_on=["ps_suppkey", "ps_partkey"])
        .join(t.orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(t.nation, left_on="s_nationkey", right_on="n_nationkey")
        .group_by(col("n_name").alias("nation"), col("o_orderdate").dt.year().alias("o_year"))
        .agg(sum_profit=sum_(profit))
        .sort(["nation", "o_year"], descending=[False, True])
    )


def q10(t: Tables) -> DataSet:
    placed = (col("o_orderdate") >= date(1993, 10, 1)) & (col("o_orderdate") < date(1994, 1, 1))
    keys = ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"]
    return (
        t.customer.join(t.orders.filter(placed), left_on="c_custkey", right_on="o_custkey")
        .join(t.lineitem.filter(col("l_returnflag") == "R"), left_on="o_orderkey", right_on="l_orderkey")
        .join(t.nation, left_on="c_nationkey", right_on="n_nationkey")
        .group_by(keys)
        .agg(revenue=sum_(_charged()))
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .top(20, "revenue")
    )


def q11(t: Tables) -> DataSet:
    stock = t.partsupp.join(t.supplier, left_on="ps_suppkey", right_on="s_suppkey").join(
        t.nation.filter(col("n_name") == "GERMANY"), left_on="s_nationkey", right_on="n_nationkey"
    )
    cost = col("ps_supplycost") * col("ps_availqty")
    total = stock.group_by().agg(total=sum_(cost))
    return (
        stock.group_by("ps_partkey")
        .agg(value=sum_(cost))
        .join(total, how="cross")
        .filter(col("value") > col("total") * Decimal("0.0001"))
        .select("ps_partkey", "value")
        .sort("value", descending=True)
    )


def q12(t: Tables) -> DataSet:
    items = t.lineitem.filter(
        col("l_shipmode").is_in("MAIL", "SHIP")
        & (col("l_commitdate") < col("l_receiptdate"))
        & (col("l_shipdate") < col("l_commitdate"))
        & (col("l_receiptdate") >= date(1994, 1, 1))
        & (col("l_receiptdate") < date(1995, 1, 1))
    )
    is_high = col("o_orderpriority").is_in("1-URGENT", "2-HIGH")
    return (
        t.orders.join(items, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("l_shipmode")
        .agg(
            high_line_count=sum_(when(is_high).then(1).otherwise(0)),
            low_line_count=sum_(when(is_high).then(0).otherwise(1)),
        )
        .sort("l_shipmode")
    )


def q13(t: Tables) -> DataSet:
    orders = t.orders.filter(~col("o_comment").str.contains("special.*requests", regex=True))
    return (
        t.customer.join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(c_count=count("o_orderkey"))
        .group_by("c_count")
        .agg(custdist=count())
        .sort(["custdist", "c_count"], descending=True)
    )


def q14(t: Tables) -> DataSet:
    shipped = (col("l_shipdate") >= date(1995, 9, 1)) & (col("l_shipdate") < date(1995, 10, 1))
    of_promotion = when(col("p_type").str.starts_with("PROMO")).then(_charged()).otherwise(Decimal("0.0000"))
    return (
        t.lineitem.filter(shipped)
        .join(t.part, left_on="l_partkey", right_on="p_partkey")
        .group_by()
        .agg(promotion=sum_(of_promotion), revenue=sum_(_charged()))
        .select((100 * col("promotion") / col("revenue")).alias("promo_revenue"))
    )


def q15(t: Tables) -> DataSet:
    shipped = (col("l_shipdate") >= date(1996, 1, 1)) & (col("l_shipdate") < date(1996, 4, 1))
    revenue = t.lineitem.filter(shipped).group_by("l_suppkey").agg(total_revenue=sum_(_charged()))
    most = revenue.group_by().agg(most=max_("total_revenue"))
    return (
        t.supplier.join(revenue, left_on="s_suppkey", right_on="l_suppkey")
        .join(most, left_on="total_revenue", right_on="most", how="semi")
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )


def q16(t: Tables) -> DataSet:
    parts = t.part.filter(
        (col("p_brand") != "Brand#45")
        & ~col("p_type").str.starts_with("MEDIUM POLISHED")
        & col("p_size").is_in(49, 14, 23, 45, 19, 3, 36, 9)
    )
    complained = t.supplier.filter(col("s_comment").str.contains("Customer.*Complaints", regex=True))
    return (
        t.partsupp.join(parts, left_on="ps_partkey", right_on="p_partkey")
        .join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .group_by("p_brand", "p_type", "p_size")
        .agg(supplier_cnt=count_distinct("ps_suppkey"))
        .sort(["supplier_cnt", "p_brand", "p_type", "p_size"], descending=[True, False, False, False])
    )


def q17(t: Tables) -> DataSet:
    parts = t.part.filter((col("p_brand") == "Brand#23") & (col("p_container") == "MED BOX"))
    usual = t.lineitem.group_by(col("l_partkey").alias("usual_part")).agg(usual=avg("l_quantity"))
    return (
        t.lineitem.join(parts, left_on="l_partkey", right_on="p_partkey")
        .join(usual, left_on="l_partkey", right_on="usual_part")
        .filter(col("l_quantity") < 0.2 * col("usual"))
        .group_by()
        .agg(total=sum_("l_extendedprice"))
        .select((col("total") / 7).alias("avg_yearly"))
    )


def q18(t: Tables) -> DataSet:
    large = t.lineitem.group_by("l_orderkey").agg(quantity=sum_("l_quantity")).filter(col("quantity") > 300)
    return (
        t.customer.join(t.orders, left_on="c_custkey", right_on="o_custkey")
        .join(large, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .join(t.lineitem, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
        .agg(quantity=sum_("l_quantity"))
        .sort(["o_totalprice", "o_orderdate"], descending=[True, False])
        .limit(100)
    )


def q19(t: Tables) -> DataSet:
    def fits(brand: str, containers: list[str], quantity: int, size: int) -> object:
        return (
            (col("p_brand") == brand)
            & col("p_container").is_in(containers)
            & col("l_quantity").between(quantity, quantity + 10)
            & col("p_size").between(1, size)
            & col("l_shipmode").is_in("AIR", "AIR REG")
            & (col("l_shipinstruct") == "DELIVER IN PERSON")
        )

    return (
        t.lineitem.join(t.part, left_on="l_partkey", right_on="p_partkey")
        .filter(
            fits("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 5)
            | fits("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 10)
            | fits("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 15)
        )
        .group_by()
        .agg(revenue=sum_(_charged()))
    )


def q20(t: Tables) -> DataSet:
    forest = t.part.filter(col("p_name").str.starts_with("forest"))
    shipped = (col("l_shipdate") >= date(1994, 1, 1)) & (col("l_shipdate") < date(1995, 1, 1))
    sold = t.lineitem.filter(shipped).group_by("l_partkey", "l_suppkey").agg(sold=sum_("l_quantity"))
    excess = (
        t.partsupp.join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(sold, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .filter(col("ps_availqty") > Decimal("0.5") * col("sold"))
    )
    return (
        t.supplier.join(t.nation.filter(col("n_name") == "CANADA"), left_on="s_nationkey", right_on="n_nationkey")
        .join(excess, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )


def q21(t: Tables) -> DataSet:
    late = t.lineitem.filter(col("l_receiptdate") > col("l_commitdate"))
    of_several = t.lineitem.select(col("l_orderkey").alias("order"), col("l_suppkey").alias("other"))
    other_late = late.select(col("l_orderkey").alias("order"), col("l_suppkey").alias("other"))
    is_another = col("other") != col("l_suppkey")
    return (
        t.supplier.join(t.nation.filter(col("n_name") == "SAUDI ARABIA"), left_on="s_nationkey", right_on="n_nationkey")
        .join(late, left_on="s_suppkey", right_on="l_suppkey")
        .with_columns(l_suppkey=col("s_suppkey"))
        .join(t.orders.filter(col("o_orderstatus") == "F"), left_on="l_orderkey", right_on="o_orderkey")
        .join(of_several, left_on="l_orderkey", right_on="order", how="semi", condition=is_another)
        .join(other_late, left_on="l_orderkey", right_on="order", how="anti", condition=is_another)
        .group_by("s_name")
        .agg(numwait=count())
        .sort(["numwait", "s_name"], descending=[True, False])
        .limit(100)
    )


def q22(t: Tables) -> DataSet:
    codes = ["13", "31", "23", "29", "30", "18", "17"]
    customers = t.customer.with_columns(cntrycode=col("c_phone").str.slice(0, 2)).filter(col("cntrycode").is_in(codes))
    mean = customers.filter(col("c_acctbal") > 0).group_by().agg(mean=avg("c_acctbal"))
    return (
        customers.join(mean, how="cross")
        .filter(col("c_acctbal") > col("mean"))
        .join(t.orders, left_on="c_custkey", right_on="o_custkey", how="anti")
        .group_by("cntrycode")
        .agg(numcust=count(), totacctbal=sum_("c_acctbal"))
        .sort("cntrycode")
    )


QUERIES: dict[int, Callable[[Tables], DataSet]] = {number: globals()[f"q{number}"] for number in range(1, 23)}
