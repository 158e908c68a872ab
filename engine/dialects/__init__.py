"""Dialects: the text of one statement as a tree of sqlglot, whatever engine it was written for.

    text ─► parser.py, the dialect of ours ─► tree, with the places of its words
    text in another dialect ─► translation.py ─► the same tree

parser.py           the dialect and its parser; places of what is wrong, names that are near
excerpts.py         the line of a text that an error is about, with a caret
clauses.py          clauses that say nothing, or two things
translation.py      queries in other dialects, written again in ours
repairs.py          forms that mean something else there, by dialect; shared_forms.py: those that several share
spark_forms.py      functions of Spark that have another answer for some values
element_forms.py    FLATTEN of Snowflake; totals of lists that a function of their own finishes
compared_rows.py    rows beside rows, as DuckDB compares them

``sqlglot`` parses, and nothing else of it is used: it is no type checker, and its optimizer knows no sizes. What the
names of a tree mean is not known here.
"""
