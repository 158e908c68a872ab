"""The ResourceManager: registers TaskExecutors, and assigns their slots to jobs.

resource_manager.py  ResourceManager: the endpoint; registrations, requests, heartbeats
slot_manager.py      SlotManager: slots and requests, matched (pure)
job_queue.py         JobQueue: which job is next, and the places of waiting ones (pure)
"""
