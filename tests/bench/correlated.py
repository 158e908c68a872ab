"""Twenty forms of correlated subqueries over TPC-H's tables: Drey and DuckDB in turns, answers compared.

    python -m tests.bench correlated [--scale 1] [--runs 3] [--limit-mb 1000]

A subquery in every place, correlated by equality, by inequality, by neither and over two levels. The texts are the same
for both. Each is asked twice, and the second time is measured: what is imported and sampled once is not of the form.
"""

from functools import partial
from pathlib import Path

from tests.bench import questions, tpch
from tests.bench.workload import Job

ENGINES = ["drey", "duckdb"]

#: name: SQL; each answer is small, so that the subquery is what is measured
_FORMS = {
    "aggregate in WHERE": """SELECT sum(l_extendedprice) AS s FROM lineitem l
        WHERE l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem i WHERE i.l_partkey = l.l_partkey)""",
    "aggregate by two columns": """SELECT count(*) AS n FROM partsupp
        WHERE ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                             WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey)""",
    "EXISTS": """SELECT o_orderpriority, count(*) AS n FROM orders WHERE EXISTS
        (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority""",
    "NOT EXISTS": """SELECT count(*) AS n, sum(c_acctbal) AS s FROM customer
        WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)""",
    "EXISTS by inequality too": """SELECT count(*) AS n FROM lineitem l WHERE EXISTS
        (SELECT 1 FROM lineitem o WHERE o.l_orderkey = l.l_orderkey AND o.l_suppkey <> l.l_suppkey)""",
    "EXISTS OR a condition": """SELECT count(*) AS n FROM orders WHERE o_orderpriority = '1-URGENT' OR EXISTS
        (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 49)""",
    "IN": """SELECT count(*) AS n FROM lineitem WHERE l_suppkey IN
        (SELECT ps_suppkey FROM partsupp WHERE ps_partkey = l_partkey AND ps_availqty > 5000)""",
    "NOT IN": """SELECT count(*) AS n FROM orders WHERE o_orderdate NOT IN
        (SELECT l_shipdate - 30 FROM lineitem WHERE l_orderkey = o_orderkey)""",
    "ANY": """SELECT count(*) AS n FROM orders WHERE o_totalprice / 2 < ANY
        (SELECT l_extendedprice FROM lineitem WHERE l_orderkey = o_orderkey)""",
    "ALL": """SELECT count(*) AS n FROM orders o WHERE o_totalprice >= ALL
        (SELECT i.o_totalprice FROM orders i WHERE i.o_custkey = o.o_custkey)""",
    "count in the list": """SELECT n, count(*) AS customers FROM
        (SELECT (SELECT count(*) FROM orders WHERE o_custkey = c_custkey) AS n FROM customer) GROUP BY n""",
    "EXISTS in the list": """SELECT late, count(*) AS n FROM (SELECT EXISTS
        (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_shipdate > DATE '1998-08-01') AS late FROM orders)
        GROUP BY late""",
    "count by inequality": """SELECT sum(n) AS s, max(n) AS m FROM (SELECT
        (SELECT count(*) FROM orders i WHERE i.o_custkey = o.o_custkey AND i.o_orderdate < o.o_orderdate) AS n
        FROM orders o)""",
    "inequality alone": """SELECT sum(n) AS s FROM (SELECT
        (SELECT count(*) FROM supplier WHERE s_acctbal > c_acctbal) AS n FROM customer WHERE c_custkey < 5000)""",
    "first of an order": """SELECT sum(k) AS s FROM (SELECT
        (SELECT o_orderkey FROM orders WHERE o_custkey = c_custkey ORDER BY o_totalprice DESC, o_orderkey LIMIT 1) AS k
        FROM customer)""",
    "LATERAL, three of an order": """SELECT count(*) AS n, sum(o_totalprice) AS s FROM customer, LATERAL
        (SELECT o_totalprice FROM orders WHERE o_custkey = c_custkey ORDER BY o_totalprice DESC LIMIT 3)""",
    "LEFT JOIN LATERAL": """SELECT count(*) AS n, count(low) AS m, sum(high - low) AS s FROM customer LEFT JOIN LATERAL
        (SELECT min(o_totalprice) AS low, max(o_totalprice) AS high FROM orders
         WHERE o_custkey = c_custkey HAVING count(*) > 10) ON TRUE""",
    "HAVING": """SELECT count(*) AS n FROM (SELECT l_partkey FROM lineitem GROUP BY l_partkey
        HAVING sum(l_quantity) > (SELECT sum(ps_availqty) / 20 FROM partsupp WHERE ps_partkey = l_partkey))""",
    "in ON": """SELECT count(*) AS n FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_totalprice >
        (SELECT avg(l_extendedprice) * 8 FROM lineitem WHERE l_orderkey = o_orderkey)""",
    "two levels": """SELECT count(*) AS n FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey
        AND o_totalprice > (SELECT 4 * sum(l_extendedprice) / count(*) FROM lineitem
                            WHERE l_orderkey = o_orderkey AND l_quantity < c_acctbal / 100))""",
}
ASKED = questions.Asked("correlated", list(_FORMS))


def run_drey(job: Job) -> None:
    from engine import Environment

    with Environment(config=job.process_size()) as env:
        for path in sorted(job.source.glob("*.parquet")):
            env.register(path.stem, env.read_parquet(path))
        answers = {name: partial(lambda text: env.sql(text).to_arrow(), text) for name, text in _FORMS.items()}
        questions.ask(job, answers, digest=questions.numbered)


def run_duckdb(job: Job) -> None:
    import duckdb

    from tests.tpch.sql_queries import views

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    connection.execute(views(job.source))
    answers = {name: partial(lambda text: connection.sql(text).to_arrow_table(), text) for name, text in _FORMS.items()}
    questions.ask(job, answers, digest=questions.numbered)


def report(scale: float, runs: int, folder: Path, limit_mb: int | None) -> str:
    """Run both engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    about = f"correlated subqueries over TPC-H at scale factor {scale:g}"
    source = tpch.tables_of(scale, folder)
    return questions.report(ASKED, source, about, runs, ENGINES, folder, limit_mb, rounds=2)
