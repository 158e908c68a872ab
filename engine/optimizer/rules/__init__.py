"""Rules: one rewrite of the logical plan per module, each a function ``apply(plan: LogicalPlan) -> None``.

A rule changes the plan only where the result has the same rows, in the same order where there is one, and where no
expression sees a row that it would not have seen before, unless it cannot raise. Their order is in
``engine.optimizer.logical_optimizer``.

    aggregate_pushdown.py   rows are grouped before a join where that makes far fewer of them
    aggregate_reduction.py  groups without a partner in a join are not made
    coarser_groups.py       groups by fewer keys are made of groups by more
    combine_filters.py      neighbouring filters become one
    combine_projects.py     neighbouring projections become one; one that changes nothing goes
    computed_keys.py        keys of groups that follow from other keys are computed of the groups
    conditional_sums.py     values of one side of a join are added up before it, conditions of the other come after
    constant_filters.py     parts of filters that are always true go, and what never has a row
    disjunctions.py         common parts of an OR's branches stand alone, and what it says of one table
    early_columns.py        what is computed of one side of a join is computed before it, where it has fewer rows
    equal_keys.py           filters of a key hold for the keys that it is equal to
    filter_pushdown.py      filters move towards the sources
    join_conditions.py      equalities in a cross join's condition become keys, parts over one side filters of it
    join_order.py           inner joins in the order that costs least
    joins_of_sets.py        inner joins that add but repetitions, which are not counted above, are semi joins
    limit_pushdown.py       limits move below projections and into sorts, which become top-n
    outer_joins.py          outer joins whose rows without a match are dropped above are inner joins
    paged_sorts.py          sorts whose rows are taken by their place have one order for ties
    projection_pruning.py   unused columns are neither read nor carried
    running_groups.py       aggregates of all rows before or behind a row are running ones, no pairs
    semi_join_pushdown.py   semi and anti joins move below inner joins that leave no fewer rows
    semi_join_pullup.py     inner joins that leave fewer rows come before semi and anti joins
    shared_filters.py       what all uses of a result ask of its rows is asked once
    shared_groups.py        aggregates that are equal, or differ in what a key may be, are computed at once
    shared_joins.py         joins that are asked for few rows are done by each of their uses
    shared_scans.py         scans are read by each of their uses where that costs less than storing their rows
    shared_totals.py        aggregates without keys over the same rows are computed at once
    sort_elimination.py     sorts whose order has no effect are removed
    totals_of_parts.py      aggregates without keys over parts of the same rows are computed at once, under conditions
    window_top.py           a filter on a ranking says which rows of each group are enough
"""
