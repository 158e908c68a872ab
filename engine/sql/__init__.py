"""SQL: text in, a DataSet out. A query is bound here, in the client; what runs is the plan of every other data set.

    text ─► sqlglot's parser ─► query_binder, select_binder, from_binder ─► DataSet ─► our optimizer
            (dialect.py)         names, types and meaning: expression_binder,
                                 groups, windows, dependent

query.py            text to data set
attached.py         tables of catalogs that were attached; table_changes.py: MERGE, UPDATE and DELETE of tables
statements.py       a text of statements taken apart; text_pieces.py: its strings, names and comments
dialect.py          the dialect and its parser; places of what is wrong, names that are near
other_dialects.py   queries in other dialects, written again in ours; forms that mean something else:
                    dialect_repairs.py by dialect, dialect_forms.py those that several share
frames.py           what expressions of a SELECT look at; scopes.py: names of tables and columns
query_binder.py     queries: sets, and the parts of others
select_binder.py    one SELECT; select_list.py: its list, * and COLUMNS taken apart
named_queries.py    queries of WITH; recursive_queries.py: those that look at their own rows
values.py           VALUES; ordering.py: ORDER BY and LIMIT
from_binder.py      FROM; relations.py: rows and names; join_binder.py: joins; lateral_binder.py: LATERAL, unnest();
                    joins.py: joins of data sets, marks; pivots.py: PIVOT, UNPIVOT; samples.py: TABLESAMPLE
                    series.py: range(), generate_series()
dependent.py        queries within expressions, whatever they look at outside, as joins
groups.py           GROUP BY, grouping sets, HAVING; aggregates.py: aggregates by name
windows.py          functions over windows
expression_binder.py  expressions; conditions.py: comparisons, IN, LIKE; operators.py: what types make of operators
function_calls.py   functions by name; function_handlers.py: what they are of ours; own_functions.py: those with types
                    of their own; lambdas.py: those that take functions; nested_values.py: JSON, maps
                    scalar_functions.py, text_calls.py, list_functions.py, format_calls.py
function_guide.py   functions by what they are for; refused_functions.py: what to write in place of others
data_types.py       types; casts.py: casts; intervals.py, spans.py, zones.py: times; constants.py: what is computed
                    at once; arguments.py: constants, or columns in their place; column_names.py: names of columns

``sqlglot`` parses, and nothing else of it is used: it is no type checker, and its optimizer knows no sizes.
"""
