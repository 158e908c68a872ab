"""The optimizer: from what a script wants to how it runs, with every number explained.

    Plan ─► rewrite rules ─► estimates ─► alternatives with costs ─► OptimizedPlan ─► JobGraph
            logical_optimizer.py  estimates.py  plan_enumerator.py     explain.py        job_graph_generator.py

It decides how rows travel (ship strategies), which algorithm runs (which side of a join is built, which phases an
aggregate has), at what parallelism, through which exchanges (pipelined or blocking) and with how many pages.
It never plans blind: every operator has an estimate of rows and bytes with its origin, and hints win over all of it.
It imports no pyarrow. What changes while a job runs is decided by ``engine.adaptive``; the JobMaster does not need the
optimizer.

    optimizer.py             optimize(plan, settings): the entry point
    logical_optimizer.py, rules/  the ordered list of rewrite rules, one rule per file
    logical_plan.py          a Plan that rules may change
    expression_rewriting.py  what may raise, conjuncts, substitution
    selectivity.py           which share of rows a predicate keeps
    estimates.py             rows, bytes and columns of every operator (``engine.statistics`` has what they are made of)
    properties.py            how the rows of a result are spread and ordered
    join_alternatives.py     which pairs of ship strategies are correct for a join, and its local variants
    dictionary_builds.py     how large the table of a join is whose build side can be dictionary-encoded
    join_estimates.py        how many rows a join returns
    key_ranges.py            which values of a join's keys can meet
    join_search.py           in which order inner joins cost least
    join_translation.py      a join as physical operators, with the coalesced keys of a full join
    column_lineage.py        what becomes of column statistics on the way
    heavy_keys.py            heavy keys of a repartitioned join are split
    join_planning.py         the alternatives of one join with costs, hints and reasons
    range_planning.py        ranges in the conditions of joins, and when a range join is offered
    rejection_reasons.py     why its other alternatives lost, in words
    replication.py           sources that every subtask of a join reads by itself
    first_rows.py            a limit's rows of a source are its first ones
    processors.py            how many subtasks the processors of one process are worth
    small_parts.py           what runs in one subtask since it reads little
    sort_planning.py         sorts and limits, in one subtask or in order over several
    input_order.py           which order rows with equal sort keys have
    asof_planning.py         as-of joins: what is moved for them
    window_planning.py       window functions: what is moved and sorted for them
    window_ranges.py         those over all rows, in ranges of their order
    safe_numbers.py          which aggregates have a value whatever their rows are
    sorted_aggregates.py     groups that are sorted by their keys: the aggregate's second phase within the sort
    partition_planning.py    where rows go when the user says so
    plan_enumerator.py       alternatives of the whole plan, bottom up
    candidates.py            a possible way to compute a node
    operator_entries/        what the planner knows of each operator: one entry each, asked by every stage
    operator_translation.py  candidates to physical operators
    physical_plan_builder.py where entries put them             aggregate_phases.py  arguments and partial states
    input_changes.py         filters and projections that rules put before an input
    short_text.py            names that are not too long
    function_planning.py     functions over groups, and with broadcast data sets
    operator_names.py        short names for vertices, logs and explain
    aggregate_threads.py     groups of one subtask that several threads merge
    whole_groups.py          groups above joins that a first phase below has made already
    scan_planning.py         sources that several threads of one subtask read
    scan_fusion.py           filters become part of the scans that they are right behind
    union_fusion.py          unions that a join reads itself
    runtime_filter_planning.py  sources leave out rows that a join will drop
    stored_filter_planning.py   the same where their rows are stored for the join
    top_planning.py             ... and rows that a top-n will drop
    exchange_planning.py     exchange modes: closed branches, deadlocks, regions
    memory_plan.py           the pages of operators in a slot; operators that would spill rows several times are
                             put into slots one after the other
    physical_plan.py         OptimizedPlan: physical nodes and channels
    planned_steps.py         what was expected of each operator, for the profile of the run
    job_graph_generator.py   OptimizedPlan to JobGraph
    chaining.py              which channels become a call inside one task
    adaptive_facts.py        what the planner leaves behind for decisions at run time
    stored_results.py        what notes of stored results take where subtasks are very many
    explain.py               stable text for people and golden tests
    analysis.py              a plan beside what its operators did

Source: the optimizer of Flink's DataSet API (OptimizerNode, PlanNode, Channel, Costs, JobGraphGenerator).
"""
