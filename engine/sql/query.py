"""A query over registered data sets as a data set.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.api.data_set import DataSet
from engine.sql.planner import plan_query
from engine.sql.relations import FromArrow, RelationReader


def query_data_set(text: str, tables: Mapping[str, DataSet], from_arrow: FromArrow) -> DataSet:
    """Return the data set of a query; PlanError, SchemaError or NotYetSupportedError for what cannot be one.

    from_arrow: makes a data set of rows that are written in the query.
    """
    planned = plan_query(text, {name: data_set.schema for name, data_set in tables.items()})
    return RelationReader(tables, planned, from_arrow).root(planned.relation, planned.names)
