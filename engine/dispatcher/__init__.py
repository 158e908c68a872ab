"""The Dispatcher: takes jobs and starts a JobMaster for each.

dispatcher.py   Dispatcher: the endpoint
job_store.py    jobs that have ended, the latest ones
job_archive.py  the same as files, which outlive the process
"""
