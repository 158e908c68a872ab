"""The TaskExecutor: runs attempts in threads, with the memory, disk and network of one process.

task_executor.py  TaskExecutor: the endpoint; slots are assigned, tasks submitted, cancelled, reported
task_executor_settings.py  TaskExecutorSettings: what it is told when it is made
registration.py   Registration: registered with the leader, again and again, with back-off; a loss is noticed at once
resource_manager_link.py  ResourceManagerLink: what is said to the ResourceManager, and whether it is there
task_reporter.py  reports of the tasks of a job in order; counters of running tasks every 200 ms
task.py           Task: one thread, one attempt
task_threads.py   TaskThreads: the threads of tasks, used again
task_rows.py      TaskRow: tasks that begin together, one after the other in one thread while none waits
task_state.py     states of a task, as a table (pure)
task_notes.py     what an ended attempt spilled and waited for, as a line for the log (pure)
task_totals.py    TaskTotals: sums over all attempts of a process, for metrics
task_turns.py     TaskTurns: many threads of tasks wait longer for their turn at the interpreter
slot_table.py     slots, their jobs and their pages (pure)
drain.py          Drain: no more slots are taken, and the process ends when nothing of a job is left
job_table.py      JobTable: the attempts of each job with their last reports, until it is released
task_resources.py ProcessResources: builds and closes what tasks use (memory, disk, network, functions)
"""
