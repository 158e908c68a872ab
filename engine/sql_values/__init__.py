"""Values of SQL: its types, casts, operators and functions as expressions of ours, where the types are known.

    calculated("/", col("i"), lit(2), type_of)    ─►  the quotient of integers, cut toward zero
    called(known, "round", [col("f"), lit(1)])    ─►  col("f").round(1)

Names of columns, queries and trees of sqlglot are not known here, but for the names of types: that is the binder's, in
the room ``sql``.

data_types.py       types by name; casts.py: casts, and constant texts as values
operators.py        operators and comparisons, by the types of both sides; constants.py: what is computed at once
spans.py            units of time and what is added to moments; zones.py: AT TIME ZONE
function_calls.py   functions by name: how many arguments they take; function_handlers.py: what types they take
scalar_functions.py what they are of ours: of numbers and dates; text_calls.py, list_functions.py, format_calls.py
lambda_names.py     functions that take a function of elements, by name
own_functions.py    functions whose arguments are cast to their own types; composed_functions.py: those made of others
moment_calls.py     moments of parts, the next day of a name, equal spans
arguments.py        constants among arguments
series.py           range() and generate_series(): numbers, or times with an interval between them
function_guide.py   functions by what they are for; refused_functions.py: what to write in place of others
"""
