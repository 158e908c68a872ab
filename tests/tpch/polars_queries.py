"""The 22 queries through the lazy frames of Polars; ``QUERIES`` has them by number.

Held by: tests/integration/test_tpch.py
"""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
from polars import col

Tables = dict[str, pl.LazyFrame]


def read_tables(folder: Path) -> Tables:
    """Return the tables of a folder by name."""
    return {path.stem: pl.scan_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def _number(name: str) -> pl.Expr:
    """Return a decimal as a float: products of decimals keep the scale of their factors in Polars, and lose digits."""
    return col(name).cast(pl.Float64)


def _charged() -> pl.Expr:
    return _number("l_extendedprice") * (1 - _number("l_discount"))


def _within(name: str, first: date, end: date) -> pl.Expr:
    return (col(name) >= first) & (col(name) < end)


def q1(t: Tables) -> pl.LazyFrame:
    return (
        t["lineitem"]
        .filter(col("l_shipdate") <= date(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=pl.sum("l_quantity"),
            sum_base_price=pl.sum("l_extendedprice"),
            sum_disc_price=_charged().sum(),
            sum_charge=(_charged() * (1 + _number("l_tax"))).sum(),
            avg_qty=pl.mean("l_quantity"),
            avg_price=pl.mean("l_extendedprice"),
            avg_disc=pl.mean("l_discount"),
            count_order=pl.len(),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q2(t: Tables) -> pl.LazyFrame:
    offers = (
        t["part"]
        .filter((col("p_size") == 15) & col("p_type").str.ends_with("BRASS"))
        .join(t["partsupp"], left_on="p_partkey", right_on="ps_partkey")
        .join(t["supplier"], left_on="ps_suppkey", right_on="s_suppkey")
        .join(t["nation"], left_on="s_nationkey", right_on="n_nationkey")
        .join(t["region"].filter(col("r_name") == "EUROPE"), left_on="n_regionkey", right_on="r_regionkey")
    )
    cheapest = offers.group_by("p_partkey").agg(ps_supplycost=pl.min("ps_supplycost"))
    return (
        offers.join(cheapest, on=["p_partkey", "ps_supplycost"])
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .sort(["s_acctbal", "n_name", "s_name", "p_partkey"], descending=[True, False, False, False])
        .head(100)
    )


def q3(t: Tables) -> pl.LazyFrame:
    return (
        t["customer"]
        .filter(col("c_mktsegment") == "BUILDING")
        .join(t["orders"].filter(col("o_orderdate") < date(1995, 3, 15)), left_on="c_custkey", right_on="o_custkey")
        .join(t["lineitem"].filter(col("l_shipdate") > date(1995, 3, 15)), left_on="o_orderkey", right_on="l_orderkey")
        .group_by(col("o_orderkey").alias("l_orderkey"), "o_orderdate", "o_shippriority")
        .agg(revenue=_charged().sum())
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort(["revenue", "o_orderdate"], descending=[True, False])
        .head(10)
    )


def q4(t: Tables) -> pl.LazyFrame:
    late = t["lineitem"].filter(col("l_commitdate") < col("l_receiptdate"))
    return (
        t["orders"]
        .filter(_within("o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=pl.len())
        .sort("o_orderpriority")
    )


def q5(t: Tables) -> pl.LazyFrame:
    return (
        t["region"]
        .filter(col("r_name") == "ASIA")
        .join(t["nation"], left_on="r_regionkey", right_on="n_regionkey")
        .join(t["customer"], left_on="n_nationkey", right_on="c_nationkey")
        .join(
            t["orders"].filter(_within("o_orderdate", date(1994, 1, 1), date(1995, 1, 1))),
            left_on="c_custkey",
            right_on="o_custkey",
        )
        .join(t["lineitem"], left_on="o_orderkey", right_on="l_orderkey")
        .join(t["supplier"], left_on=["l_suppkey", "n_nationkey"], right_on=["s_suppkey", "s_nationkey"])
        .group_by("n_name")
        .agg(revenue=_charged().sum())
        .sort("revenue", descending=True)
    )


def q6(t: Tables) -> pl.LazyFrame:
    return (
        t["lineitem"]
        .filter(_within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .filter(col("l_discount").is_between(0.05, 0.07) & (col("l_quantity") < 24))
        .select(revenue=(_number("l_extendedprice") * _number("l_discount")).sum())
    )


def q7(t: Tables) -> pl.LazyFrame:
    nations = t["nation"].filter(col("n_name").is_in(["FRANCE", "GERMANY"]))
    return (
        t["customer"]
        .join(nations.rename({"n_name": "cust_nation"}), left_on="c_nationkey", right_on="n_nationkey")
        .join(t["orders"], left_on="c_custkey", right_on="o_custkey")
        .join(
            t["lineitem"].filter(col("l_shipdate").is_between(date(1995, 1, 1), date(1996, 12, 31))),
            left_on="o_orderkey",
            right_on="l_orderkey",
        )
        .join(t["supplier"], left_on="l_suppkey", right_on="s_suppkey")
        .join(nations.rename({"n_name": "supp_nation"}), left_on="s_nationkey", right_on="n_nationkey")
        .filter(col("supp_nation") != col("cust_nation"))
        .group_by("supp_nation", "cust_nation", l_year=col("l_shipdate").dt.year())
        .agg(revenue=_charged().sum())
        .sort("supp_nation", "cust_nation", "l_year")
    )


def q8(t: Tables) -> pl.LazyFrame:
    sellers = t["nation"].select(col("n_nationkey").alias("supp_nationkey"), col("n_name").alias("nation"))
    volume = _charged()
    return (
        t["part"]
        .filter(col("p_type") == "ECONOMY ANODIZED STEEL")
        .join(t["lineitem"], left_on="p_partkey", right_on="l_partkey")
        .join(t["supplier"], left_on="l_suppkey", right_on="s_suppkey")
        .join(
            t["orders"].filter(col("o_orderdate").is_between(date(1995, 1, 1), date(1996, 12, 31))),
            left_on="l_orderkey",
            right_on="o_orderkey",
        )
        .join(t["customer"], left_on="o_custkey", right_on="c_custkey")
        .join(t["nation"], left_on="c_nationkey", right_on="n_nationkey")
        .join(t["region"].filter(col("r_name") == "AMERICA"), left_on="n_regionkey", right_on="r_regionkey")
        .join(sellers, left_on="s_nationkey", right_on="supp_nationkey")
        .group_by(o_year=col("o_orderdate").dt.year())
        .agg(mkt_share=pl.when(col("nation") == "BRAZIL").then(volume).otherwise(0).sum() / volume.sum())
        .sort("o_year")
    )


def q9(t: Tables) -> pl.LazyFrame:
    return (
        t["part"]
        .filter(col("p_name").str.contains("green", literal=True))
        .join(t["partsupp"], left_on="p_partkey", right_on="ps_partkey")
        .join(t["supplier"], left_on="ps_suppkey", right_on="s_suppkey")
        .join(t["lineitem"], left_on=["p_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .join(t["orders"], left_on="l_orderkey", right_on="o_orderkey")
        .join(t["nation"], left_on="s_nationkey", right_on="n_nationkey")
        .group_by(nation=col("n_name"), o_year=col("o_orderdate").dt.year())
        .agg(sum_profit=(_charged() - _number("ps_supplycost") * _number("l_quantity")).sum())
        .sort(["nation", "o_year"], descending=[False, True])
    )


def q10(t: Tables) -> pl.LazyFrame:
    return (
        t["customer"]
        .join(
            t["orders"].filter(_within("o_orderdate", date(1993, 10, 1), date(1994, 1, 1))),
            left_on="c_custkey",
            right_on="o_custkey",
        )
        .join(t["lineitem"].filter(col("l_returnflag") == "R"), left_on="o_orderkey", right_on="l_orderkey")
        .join(t["nation"], left_on="c_nationkey", right_on="n_nationkey")
        .group_by("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
        .agg(revenue=_charged().sum())
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .sort("revenue", descending=True)
        .head(20)
    )


def q11(t: Tables) -> pl.LazyFrame:
    stock = (
        t["partsupp"]
        .join(t["supplier"], left_on="ps_suppkey", right_on="s_suppkey")
        .join(t["nation"].filter(col("n_name") == "GERMANY"), left_on="s_nationkey", right_on="n_nationkey")
    )
    cost = col("ps_supplycost") * col("ps_availqty")
    total = stock.select(total=cost.sum().cast(pl.Float64) * 0.0001)
    return (
        stock.group_by("ps_partkey")
        .agg(value=cost.sum())
        .join(total, how="cross")
        .filter(col("value").cast(pl.Float64) > col("total"))
        .select("ps_partkey", "value")
        .sort("value", descending=True)
    )


def q12(t: Tables) -> pl.LazyFrame:
    is_high = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return (
        t["orders"]
        .join(t["lineitem"], left_on="o_orderkey", right_on="l_orderkey")
        .filter(col("l_shipmode").is_in(["MAIL", "SHIP"]))
        .filter((col("l_commitdate") < col("l_receiptdate")) & (col("l_shipdate") < col("l_commitdate")))
        .filter(_within("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1)))
        .group_by("l_shipmode")
        .agg(high_line_count=is_high.sum(), low_line_count=is_high.not_().sum())
        .sort("l_shipmode")
    )


def q13(t: Tables) -> pl.LazyFrame:
    orders = t["orders"].filter(col("o_comment").str.contains("special.*requests").not_())
    return (
        t["customer"]
        .join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(c_count=col("o_orderkey").count())
        .group_by("c_count")
        .agg(custdist=pl.len())
        .sort(["custdist", "c_count"], descending=True)
    )


def q14(t: Tables) -> pl.LazyFrame:
    volume = _charged()
    of_promotion = pl.when(col("p_type").str.starts_with("PROMO")).then(volume).otherwise(0)
    return (
        t["lineitem"]
        .filter(_within("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
        .join(t["part"], left_on="l_partkey", right_on="p_partkey")
        .select(promo_revenue=100 * of_promotion.sum() / volume.sum())
    )


def q15(t: Tables) -> pl.LazyFrame:
    revenue = (
        t["lineitem"]
        .filter(_within("l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
        .group_by("l_suppkey")
        .agg(total_revenue=_charged().sum())
    )
    return (
        t["supplier"]
        .join(revenue, left_on="s_suppkey", right_on="l_suppkey")
        .filter(col("total_revenue") == col("total_revenue").max())
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )


def q16(t: Tables) -> pl.LazyFrame:
    complained = t["supplier"].filter(col("s_comment").str.contains("Customer.*Complaints"))
    return (
        t["part"]
        .filter((col("p_brand") != "Brand#45") & col("p_type").str.starts_with("MEDIUM POLISHED").not_())
        .filter(col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9]))
        .join(t["partsupp"], left_on="p_partkey", right_on="ps_partkey")
        .join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .group_by("p_brand", "p_type", "p_size")
        .agg(supplier_cnt=col("ps_suppkey").n_unique())
        .sort(["supplier_cnt", "p_brand", "p_type", "p_size"], descending=[True, False, False, False])
    )


def q17(t: Tables) -> pl.LazyFrame:
    items = (
        t["part"]
        .filter((col("p_brand") == "Brand#23") & (col("p_container") == "MED BOX"))
        .join(t["lineitem"], left_on="p_partkey", right_on="l_partkey")
    )
    usual = items.group_by("p_partkey").agg(usual=0.2 * _number("l_quantity").mean())
    return (
        items.join(usual, on="p_partkey")
        .filter(_number("l_quantity") < col("usual"))
        # of no rows Polars says 0, and SQL null
        .select(avg_yearly=pl.when(pl.len() > 0).then(_number("l_extendedprice").sum() / 7))
    )


def q18(t: Tables) -> pl.LazyFrame:
    large = t["lineitem"].group_by("l_orderkey").agg(total=pl.sum("l_quantity")).filter(col("total") > 300)
    return (
        t["orders"]
        .join(large, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .join(t["lineitem"], left_on="o_orderkey", right_on="l_orderkey")
        .join(t["customer"], left_on="o_custkey", right_on="c_custkey")
        .group_by("c_name", col("o_custkey").alias("c_custkey"), "o_orderkey", "o_orderdate", "o_totalprice")
        .agg(quantity=pl.sum("l_quantity"))
        .sort(["o_totalprice", "o_orderdate"], descending=[True, False])
        .head(100)
    )


def q19(t: Tables) -> pl.LazyFrame:
    def fits(brand: str, containers: list[str], quantity: int, size: int) -> pl.Expr:
        return (
            (col("p_brand") == brand)
            & col("p_container").is_in(containers)
            & col("l_quantity").is_between(quantity, quantity + 10)
            & col("p_size").is_between(1, size)
        )

    return (
        t["part"]
        .join(t["lineitem"], left_on="p_partkey", right_on="l_partkey")
        .filter(col("l_shipmode").is_in(["AIR", "AIR REG"]) & (col("l_shipinstruct") == "DELIVER IN PERSON"))
        .filter(
            fits("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 5)
            | fits("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 10)
            | fits("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 15)
        )
        .select(revenue=_charged().sum())
    )


def q20(t: Tables) -> pl.LazyFrame:
    sold = (
        t["lineitem"]
        .filter(_within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .group_by("l_partkey", "l_suppkey")
        .agg(sold=col("l_quantity").sum().cast(pl.Float64) * 0.5)
    )
    excess = (
        t["partsupp"]
        .join(
            t["part"].filter(col("p_name").str.starts_with("forest")),
            left_on="ps_partkey",
            right_on="p_partkey",
            how="semi",
        )
        .join(sold, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .filter(col("ps_availqty") > col("sold"))
    )
    return (
        t["supplier"]
        .join(t["nation"].filter(col("n_name") == "CANADA"), left_on="s_nationkey", right_on="n_nationkey")
        .join(excess, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )


def q21(t: Tables) -> pl.LazyFrame:
    late = t["lineitem"].filter(col("l_receiptdate") > col("l_commitdate"))
    suppliers = t["lineitem"].group_by("l_orderkey").agg(suppliers=col("l_suppkey").n_unique())
    late_suppliers = late.group_by("l_orderkey").agg(late_suppliers=col("l_suppkey").n_unique())
    return (
        late.join(suppliers.filter(col("suppliers") > 1), on="l_orderkey")
        .join(late_suppliers.filter(col("late_suppliers") == 1), on="l_orderkey")
        .join(t["orders"].filter(col("o_orderstatus") == "F"), left_on="l_orderkey", right_on="o_orderkey")
        .join(t["supplier"], left_on="l_suppkey", right_on="s_suppkey")
        .join(t["nation"].filter(col("n_name") == "SAUDI ARABIA"), left_on="s_nationkey", right_on="n_nationkey")
        .group_by("s_name")
        .agg(numwait=pl.len())
        .sort(["numwait", "s_name"], descending=[True, False])
        .head(100)
    )


def q22(t: Tables) -> pl.LazyFrame:
    customers = t["customer"].with_columns(cntrycode=col("c_phone").str.slice(0, 2))
    customers = customers.filter(col("cntrycode").is_in(["13", "31", "23", "29", "30", "18", "17"]))
    mean = customers.filter(col("c_acctbal") > 0).select(mean=_number("c_acctbal").mean())
    return (
        customers.join(mean, how="cross")
        .filter(_number("c_acctbal") > col("mean"))
        .join(t["orders"], left_on="c_custkey", right_on="o_custkey", how="anti")
        .group_by("cntrycode")
        .agg(numcust=pl.len(), totacctbal=pl.sum("c_acctbal"))
        .sort("cntrycode")
    )


QUERIES: dict[int, Callable[[Tables], pl.LazyFrame]] = {number: globals()[f"q{number}"] for number in range(1, 23)}
