"""Insight into a process for people who watch it: log files, threads, memory. It changes nothing.

log_folder.py       LogFolder: the log files of a process and of jobs, read by name and never by path
thread_dump.py      where every thread is
process_metrics.py  memory, processor time, threads and descriptors
processor_time.py   how long the thread of a task was on a processor
process_insight.py  ProcessInsight: the endpoint that answers these questions
"""
