"""The eight tables, one Parquet file each: those of the specification, and small ones of our own for tests.

``generate`` calls tpcgen-cli, a generator in Rust (the extra ``bench`` installs it). ``write_small`` needs nothing but
DuckDB: 10,000 orders whose columns have the types, keys and words of the specification, and about its distributions,
with rare things made common enough that every query has an answer. Strings are ``string_view``, as the generator's.

Held by: tests/integration/test_tpch.py
"""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.tpcds.tables import generate_tables

_ROWS_PER_GROUP = 8192

_NATIONS = (
    "ALGERIA 0, ARGENTINA 1, BRAZIL 1, CANADA 1, EGYPT 4, ETHIOPIA 0, FRANCE 3, GERMANY 3, INDIA 2, INDONESIA 2, "
    "IRAN 4, IRAQ 4, JAPAN 2, JORDAN 4, KENYA 0, MOROCCO 0, MOZAMBIQUE 0, PERU 1, CHINA 2, ROMANIA 3, "
    "SAUDI ARABIA 4, VIETNAM 2, RUSSIA 3, UNITED KINGDOM 3, UNITED STATES 1"
)

#: ``pick(list, seed)`` is one of a list, ``number(seed, n)`` one of 0 to n - 1: the same ones in every run
_MACROS = """
    CREATE MACRO number(seed, n) AS (hash(seed) % n)::BIGINT;
    CREATE MACRO pick(words, seed) AS words[number(seed, len(words)) + 1];
    CREATE MACRO money(seed, n) AS (number(seed, n * 100)::DECIMAL(15, 2) / 100)::DECIMAL(15, 2);
    CREATE MACRO phone(nation, seed) AS
        (nation + 10) || '-' || (number(seed, 900) + 100) || '-' || (number(seed + 1, 9000) + 1000);
"""

_TABLES = {
    "region": """SELECT i AS r_regionkey, (['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[i + 1] AS r_name,
                        'of region ' || i AS r_comment
                 FROM range(5) AS t(i)""",
    "nation": """SELECT i AS n_nationkey, rtrim(word[:-2]) AS n_name, word[-1]::BIGINT AS n_regionkey,
                        'of nation ' || i AS n_comment
                 FROM (SELECT unnest(range(25)) AS i, unnest(string_split('{nations}', ', ')) AS word)""",
    "supplier": """SELECT i + 1 AS s_suppkey, 'Supplier#' || lpad((i + 1)::VARCHAR, 9, '0') AS s_name,
                          'street ' || number(i, 999) AS s_address, i % 25 AS s_nationkey, phone(i % 25, i) AS s_phone,
                          (money(i + 7, 11000) - 1000)::DECIMAL(15, 2) AS s_acctbal,
                          CASE WHEN i % 20 = 0 THEN 'said Customer, had Complaints' ELSE 'quick ' || i END AS s_comment
                   FROM range(100) AS t(i)""",
    "part": """SELECT i + 1 AS p_partkey,
                      pick(['forest', 'green', 'azure', 'linen', 'navy'], i) || ' '
                      || pick(['green', 'olive', 'peach', 'plum', 'rose', 'sky'], i + 1) AS p_name,
                      'Manufacturer#' || (number(i, 5) + 1) AS p_mfgr,
                      'Brand#' || (number(i, 5) + 1) || (number(i + 2, 5) + 1) AS p_brand,
                      pick(['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'], i + 3) || ' '
                      || pick(['ANODIZED', 'BURNISHED', 'POLISHED'], i + 4) || ' '
                      || pick(['TIN', 'STEEL', 'BRASS'], i + 5) AS p_type,
                      (number(i + 6, 50) + 1)::INTEGER AS p_size,
                      pick(['SM', 'MED', 'LG'], i + 7) || ' ' || pick(['CASE', 'BOX', 'PACK', 'BAG'], i + 8)
                      AS p_container,
                      money(i + 9, 2000) AS p_retailprice, 'part ' || i AS p_comment
               FROM range(2000) AS t(i)""",
    "partsupp": """SELECT p + 1 AS ps_partkey, (p + s * 25 + p // 100) % 100 + 1 AS ps_suppkey,
                          (number(p * 4 + s, 9999) + 1)::INTEGER AS ps_availqty,
                          money(p * 4 + s + 1, 1000) AS ps_supplycost, 'offer ' || p AS ps_comment
                   FROM range(2000) AS p(p), range(4) AS s(s)""",
    "customer": """SELECT i + 1 AS c_custkey, 'Customer#' || lpad((i + 1)::VARCHAR, 9, '0') AS c_name,
                          'street ' || number(i, 999) AS c_address, number(i, 25) AS c_nationkey,
                          phone(number(i, 25), i) AS c_phone,
                          (money(i + 7, 11000) - 1000)::DECIMAL(15, 2) AS c_acctbal,
                          pick(['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'], i) AS c_mktsegment,
                          'customer ' || i AS c_comment
                   FROM range(1000) AS t(i)""",
    "orders": """SELECT (i // 8) * 32 + i % 8 + 1 AS o_orderkey, number(i, 333) * 3 + number(i, 2) + 1 AS o_custkey,
                        pick(['O', 'F', 'P'], i + 1) AS o_orderstatus, money(i + 2, 500000) AS o_totalprice,
                        DATE '1992-01-01' + number(i + 3, 2400)::INTEGER AS o_orderdate,
                        pick(['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'], i + 4) AS o_orderpriority,
                        'Clerk#' || lpad(number(i, 10)::VARCHAR, 9, '0') AS o_clerk, 0::INTEGER AS o_shippriority,
                        CASE WHEN i % 50 = 0 THEN 'the special among requests' ELSE 'order ' || i END AS o_comment
                 FROM range(10000) AS t(i)""",
    "lineitem": """SELECT o_orderkey AS l_orderkey, p + 1 AS l_partkey,
                          (p + number(s, 4) * 25 + p // 100) % 100 + 1 AS l_suppkey, line::INTEGER AS l_linenumber,
                          (CASE WHEN items = 7 AND o % 16 = 0 THEN 45 ELSE number(s + 1, 50) + 1 END)::DECIMAL(15, 2)
                          AS l_quantity,
                          (money(s + 2, 100000) + 900)::DECIMAL(15, 2) AS l_extendedprice,
                          (number(s + 3, 11)::DECIMAL(15, 2) / 100)::DECIMAL(15, 2) AS l_discount,
                          (number(s + 4, 9)::DECIMAL(15, 2) / 100)::DECIMAL(15, 2) AS l_tax,
                          pick(['R', 'A', 'N'], s + 5) AS l_returnflag, pick(['O', 'F'], s + 6) AS l_linestatus,
                          o_orderdate + number(s + 7, 121)::INTEGER + 1 AS l_shipdate,
                          o_orderdate + number(s + 8, 61)::INTEGER + 30 AS l_commitdate,
                          o_orderdate + number(s + 7, 121)::INTEGER + 1 + number(s + 9, 30)::INTEGER + 1
                          AS l_receiptdate,
                          pick(['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'], s + 10)
                          AS l_shipinstruct,
                          pick(['AIR', 'AIR REG', 'MAIL', 'SHIP', 'RAIL', 'TRUCK', 'FOB'], s + 11) AS l_shipmode,
                          'item ' || s AS l_comment
                   FROM (SELECT *, o_orderkey * 8 + line AS s, number(o_orderkey * 8 + line, 2000) AS p,
                                o_orderkey // 8 AS o
                         FROM (SELECT *, unnest(range(1, items + 1)) AS line
                               FROM (SELECT *, number(o_orderkey, 7) + 1 AS items FROM orders)))""",
}


def generate(folder: Path, scale: float) -> None:
    """Write the tables of a scale factor into a new folder."""
    generate_tables("tpch", folder, scale)


def write_small(folder: Path) -> None:
    """Write the small tables into a new folder, in several row groups."""
    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(_MACROS)
        for name, query in _TABLES.items():
            connection.execute(f"CREATE TABLE {name} AS {query.format(nations=_NATIONS)}")
            table = connection.sql(f"FROM {name}").to_arrow_table()
            fields = [field.with_type(_stored(field.type)) for field in table.schema]
            pq.write_table(table.cast(pa.schema(fields)), folder / f"{name}.parquet", row_group_size=_ROWS_PER_GROUP)


def _stored(data_type: pa.DataType) -> pa.DataType:
    return pa.string_view() if pa.types.is_string(data_type) else data_type
