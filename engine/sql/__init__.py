"""SQL: a tree in, a DataSet out. A query is bound here, in the client; what runs is the plan of every other data set.

    engine/dialects ─► query_binder, select_binder, from_binder ─► DataSet ─► our optimizer
    text to tree        names, types and meaning: expression_binder,
                        groups, windows, dependent

frames.py           what expressions of a SELECT look at; scopes.py: names of tables and columns
query_binder.py     queries: sets, and the parts of others
select_binder.py    one SELECT; select_list.py: its list, * and COLUMNS taken apart
named_queries.py    queries of WITH; recursive_queries.py: those that look at their own rows
values.py           VALUES; ordering.py: ORDER BY and LIMIT
from_binder.py      FROM; relations.py: rows and names; join_binder.py: joins; lateral_binder.py: LATERAL, unnest();
                    joins.py: joins of data sets, marks; hints.py: hints about joins
                    pivots.py: PIVOT, UNPIVOT; samples.py: TABLESAMPLE
                    series_of_rows.py: range(0, t.k)
dependent.py        queries within expressions, whatever they look at outside, as joins
groups.py           GROUP BY, grouping sets, HAVING; aggregates.py: aggregates by name
outer_groups.py     what queries within expressions say of the groups around them
windows.py          functions over windows
expression_binder.py  expressions; conditions.py: comparisons, IN, LIKE
calls.py            functions by name; lambdas.py: those that take functions; nested_values.py: JSON, maps
intervals.py        moments moved by what is computed

What types, operators and functions are of ours is the room ``sql_values``; statements are the room ``statements``.
"""
