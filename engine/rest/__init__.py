"""The REST API of a JobManager: Flink's paths and field names, so that tools written for Flink's REST read ours.

routes.py           rest_routes(services): the table of all routes
cluster_routes.py   slots, settings of a user interface, the end of the cluster
job_list_routes.py  all jobs
job_routes.py       submit, cancel, follow jobs
services.py         RestServices: what handlers ask
version.py          which program this is

A handler asks components through their gateways, as everybody does, and answers with plain typed data. Errors are
``{"errors": [text]}``: 404 for what is not known, 400 for what is malformed, 409 for what comes too late.
"""
