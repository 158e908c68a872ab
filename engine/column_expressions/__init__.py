"""Expressions as users write them: col, functions, aggregates, windows; the API and SQL make plans of them.

    (col("price") * 2).alias("twice")      ─► Expr ─► engine.graph.expression, checked where a data set takes it

expressions.py          col, lit, when, and all names of expressions
expression.py           Expr and its operators
chains.py               very many terms of one operator
number_functions.py string_expressions.py time_expressions.py nested_expressions.py
row_functions.py        coalesce, least and the like: functions of several values
aggregates.py           sum_, count and the like, and expressions of them
value_aggregates.py     aggregates that look at the order of values
windows.py              row_number, lag and the like, over
framed_aggregates.py    medians and lists over frames
running_functions.py    cum_sum, diff, forward_fill, ewm_mean and the like
selectors.py            columns by type, name and place; selected_columns.py: what they mean of a schema
name_expressions.py     names made of a column's
element_bodies.py       functions of the elements of lists
named_columns.py        columns as users pass them to select and the like
udfs.py                 Python functions within expressions
data_types.py           types as users write them
intervals.py            interval(months=1)
written_places.py       the lines of a script that made expressions
python_habits.py        if, in, len, for and sum on expressions and data sets: what to write instead
other_names.py          names of pandas, Polars and Spark: what to write instead
"""
