"""The JobMaster: one job from its JobGraph to its end.

    job_master.py       JobMaster: the endpoint; it hears, has JobState decide, and carries out what that says
    job_state.py        JobState.handle(input) -> [instruction]: everything that is decided, made of these parts:
        job_scheduling.py   regions start, tasks are sent      job_tasks.py     reports, cancellation, real sizes
        job_mending.py      failures and restarts              job_holders.py   TaskExecutors that have something of it
        job_ending.py       the phases of the end              job_timers.py    which timers run
        job_limits.py       what a job may take at most        user_use.py        what the jobs of a user take together
        status_history.py   status, times, restarts            job_links.py     results that could not be read elsewhere
    job_input.py        what a JobMaster hears                 job_instruction.py what it has to do, as plain data
    job_calls.py        calls to TaskExecutors and the ResourceManager, asked again without an answer
    output_steps.py     outputs and the record of the end, against a storage that may not answer
    job_report.py       what a job reports to clients          job_master_settings.py  what it is configured with
    execution_graph.py  ExecutionGraph, ExecutionJobVertex, IntermediateResult: the job at run time
    execution_edges.py  InputEdges, ConsumerEdges: the edges of a subtask, of a partition; index_set.py IndexSet
    execution_vertex.py ExecutionVertex, Execution, ExecutionEdge: one subtask, its attempts and inputs
    execution_state.py  states of an attempt, as a table       job_status.py  states of a job, as a table
    state_times.py      when an attempt entered each state, as bytes
    edge_pattern.py     which producers feed which consumers   split_assignment.py  which subtask reads what
    scheduler.py        which pipelined regions may start, in which slots
    slot_pool.py        slots offered to the job               slot_timeout.py    what is said when there are too few
    task_executor_watch.py  signs of life of TaskExecutors with slots
    deployment.py       ExecutionVertex -> TaskDeploymentDescriptor
    shared_splits.py    sources whose subtasks may read each other's splits
    range_bounds.py     which range of a sorted result each consumer merges
    partition_tracker.py BLOCKING partitions that no consumer needs any more
    run_time_planner.py real sizes of finished results -> decisions -> the graph is revised
    graph_revision.py   what has not begun follows a changed JobGraph
    graph_invariants.py what holds after each decision: what has begun stays, what is written is read
    stall_watch.py      a job in which every task waits for another one ends
    region_failover.py  which regions run again                failure_history.py which failure caused the others
    restart_strategy.py whether and when what failed is tried again
    repeated_failure.py giving up: the same cause everywhere, and nothing done in between
    broken_links.py     TaskManagers that cannot read from each other, and which of them to do without
    job_event.py        what was decided and learned           job_journal.py     the same, written down
    journal_files.py    where a journal lies: a file, or objects of a store
    job_facts.py        JobFacts: what is known of the job; rebuilt from the events of earlier leaders
    expectations.py     what TaskExecutors should have of it   reattachment.py    they are asked
    job_commit.py       the outputs of the job: staging before it starts, decision and publication at its end
    memory_history.py   the memory of its TaskManagers over time
    job_summary.py      counters for people: progress and outcome
    job_details.py      everything that people ask of the job

Pure (no clock, thread, socket or loop): everything but ``job_master.py``, ``job_calls.py``, ``output_steps.py``,
``job_commit.py``, ``job_journal.py``, ``journal_files.py``, ``reattachment.py`` and ``task_executor_watch.py``.
"""
