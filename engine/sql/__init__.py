"""SQL: text in, a DataSet out. Planning is here, in the client; what runs is the plan of every other data set.

    text ─► planner ─► Substrait ─► relations, expressions ─► DataSet ─► our optimizer, which knows sizes and memory
            (DataFusion: parser,      (this room: one class of
             binder, rewriting of      relation, one kind of
             subqueries into joins)    expression at a time)

query.py            text to data set
attached.py         tables of catalogs that were attached
statements.py       a text of statements taken apart; text_pieces.py: its strings, names and comments
written_otherwise.py  forms that the planner does not read, in words that it does; tokens.py: a text as tokens
other_words.py      words and operators of other dialects; rows_compared.py: (a, b) IN (...); using_joins.py: USING and
                    NATURAL of outer joins; merged_keys.py: what their keys are called; unnested.py: unnest(list)
known_calls.py      functions of other dialects as calls that the planner knows, by call_table.py; format_calls.py:
                    format() and printf(); function_guide.py: functions by what they are for
aliases.py          names of a list of SELECT within the same SELECT
same_names.py       values that the planner takes for one; select_items.py: names of columns, as they were written
zone_calls.py       AT TIME ZONE as a call: the planner's cast loses the zone
datafusion_planner.py  DataFusion told of names and types, never of data
planner_errors.py   what it says of a text, as one sentence: line and column, and names that are near
missing_forms.py    forms that are not there, and what to write instead
lost_meaning.py     what a query says and the planner loses: refused by name
lost_conditions.py   conditions that rewriting moves or merges to other answers; plan_text.py: the text of plans
constant_overflow.py  integer constants that overflow: an error before anything runs
common_conditions.py  what all sides of OR have, once; for queries that look outside
null_aware.py       what Substrait drops: which joins are IN and NOT IN
marked_membership.py  marks in the text for IN where the joins do not tell; memberships.py: where they are found
member_joins.py     IN and NOT IN that depend on the row outside, as joins
never_true.py       parts of unions without rows whatever the tables hold
set_operations.py   INTERSECT ALL, EXCEPT ALL
relations.py        relations of Substrait to data sets: reads, projections, sorts, unions
joins.py            pairs, rows with and without a match, marks; join_conditions.py: keys, and the rest of ON
groups.py           grouping sets; aggregates.py: aggregates by name, of groups and of windows
windows.py          functions over windows; null_treatment.py: IGNORE NULLS
expressions.py      expressions of Substrait to ours
constants.py        what is computed of constants, as of columns
coercions.py        implicit casts, where Drey has a rule of its own
scalar_functions.py  a table of functions by name; text_calls.py: those of texts; arguments.py: constants, or columns
                    in their place; list_functions.py: those of lists and structs; own_functions.py: those
                    that the planner is told of; spans.py: intervals that columns say, differences of timestamps
types.py            types and constants; messages.py: messages of Substrait as trees
column_names.py     Substrait counts columns, data sets name them

``datafusion`` and the messages of Substrait are imported by the first query (the extra ``sql``).
"""
