"""Insight into a process for people who watch it: log files, threads, memory. It changes nothing.

log_folder.py       LogFolder: the log files of a process and of jobs, read by name and never by path
thread_dump.py      where every thread is
stack_sampler.py    StackSampler: what their time goes into
process_metrics.py  memory, processor time, threads and descriptors
process_meter.py    ProcessMeter: these, and the numbers of a process's own parts
disk_watch.py       DiskWatch: free and used bytes of the disks of folders
loop_lag.py         LoopLag: by how much the event loop is late
cluster_events.py   ClusterEvents: ends of jobs, restarts, losses, counted
processor_time.py   how long the thread of a task was on a processor
process_insight.py  ProcessInsight: the endpoint that answers these questions
"""
