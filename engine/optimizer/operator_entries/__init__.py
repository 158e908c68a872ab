"""Operator entries: the optimizer's knowledge of the operators of a plan, one file each.

    entry.py             OperatorEntry: what the stages of the planner ask
    registry.py          the entries, by operator
    row_wise.py          RowWiseEntry: candidates of operators that take each row for itself

    source.py            rows from outside                project.py    new columns
    filter.py            rows for which a predicate holds python_function.py   a user's function over rows
    group_functions.py   reduce, co_group                 join.py       joins of all types
    aggregate.py         groups, distinct                 union.py      rows of several inputs
    partition.py         where the user wants rows        sort.py       total order, top n
    limit.py             at most n rows                   sink.py       rows to outside
    partial_aggregate.py states of groups, made below joins and for coarser groups
    window.py            window functions         asof_join.py  each row with the one nearest in time
    explode.py           elements of lists as rows         sorted_aggregate.py    lists, quantiles

How the larger ones run is in modules of its own beside this package: ``join_planning``, ``sort_planning`` and others.
"""
