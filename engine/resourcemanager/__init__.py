"""The ResourceManager: which TaskExecutors there are, and who gets their slots.

resource_manager.py  ResourceManager: the endpoint; registrations, requests, heartbeats
slot_manager.py      SlotManager: slots and requests, matched (pure)
job_queue.py         JobQueue: whose turn it is, who waits at which place (pure)
"""
