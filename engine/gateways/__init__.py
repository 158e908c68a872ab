"""Gateways: the messages between components, and one protocol for each component.

    messages.py          frozen structs: requests with the reply they expect
    protocol.py          the fingerprint of all of them, by which processes know each other's version
    dispatcher.py        DispatcherGateway        client ─► Dispatcher
    job_master.py        JobMasterGateway         Dispatcher, TaskExecutor, ResourceManager ─► JobMaster
    resource_manager.py  ResourceManagerGateway   JobMaster, TaskExecutor ─► ResourceManager
    leader.py            LeaderGateway            TaskExecutor ─► JobManager: which one leads
    task_executor.py     TaskExecutorGateway      JobMaster, ResourceManager ─► TaskExecutor
    task_executors.py    the list of TaskExecutors, and how one is drained
    insight.py           ProcessInsightGateway   REST ─► any process: load, logs, threads
    job_details.py       what people ask of one job
    memory_use.py        the memory of a process now, and of a job over time
    job_queue.py         the order in which jobs get slots, and each job's place
    failure_info.py      an exception as data, root cause first

A component's endpoint implements its protocol; callers send ``gateway.ask(SubmitTasks(descriptors, address))``.
"""
