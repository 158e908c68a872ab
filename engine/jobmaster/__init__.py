"""The JobMaster: one job from its JobGraph to its end.

    job_master.py       JobMaster: the endpoint; reports come in, decisions go out
    execution_graph.py  ExecutionGraph, ExecutionJobVertex, IntermediateResult: the job at run time
    execution_vertex.py ExecutionVertex, Execution, ExecutionEdge: one subtask, its attempts and inputs
    execution_state.py  states of an attempt, as a table       job_status.py  states of a job, as a table
    edge_pattern.py     which producers feed which consumers   split_assignment.py  which subtask reads what
    scheduler.py        which pipelined regions may start, in which slots
    slot_pool.py        slots offered to the job
    task_executor_watch.py  signs of life of those who gave slots
    deployment.py       ExecutionVertex -> TaskDeploymentDescriptor
    range_bounds.py     which range of a sorted result each consumer merges
    partition_tracker.py which BLOCKING partitions nobody needs any more
    run_time_planner.py real sizes of finished results -> decisions -> the graph is revised
    graph_revision.py   what has not begun follows a changed JobGraph
    failover.py         which failure is the cause of the others
    job_commit.py       the outputs of the job: staging before it starts, decision and publication at its end
    network_demand.py   buffers that a job can use
    job_summary.py      counters for people: progress and outcome

Everything but ``job_master.py``, ``job_commit.py``, ``task_executor_watch.py`` and the timer of ``slot_timeout.py`` is
pure: no clock, thread, socket or loop.
"""
