"""The REST API of a JobManager: Flink's paths and field names, so that tools written for Flink's REST read ours.

routes.py              rest_routes(services): the table of all routes
route_roles.py         the role that each of them needs
cluster_routes.py      slots, settings of a user interface, and the request that shuts the cluster down
taskmanager_routes.py  TaskManagers: memory, metrics, log files, threads
jobmanager_routes.py   the same of this process, and its configuration
job_list_routes.py     all jobs
job_routes.py          submit, cancel, follow jobs
job_detail_routes.py   a job in detail
vertex_routes.py       its vertices, subtasks and attempts; back pressure, sampled on request
job_log_routes.py      log files of a job
overview_page.py       the page of all jobs (overview_query.py, job_progress.py)
overview_feed.py       the same, live (overview_script.py)
status_pages.py        pages for people (process_pages.py; the page of a job is that of its profile, engine.profile)
flame_graph_page.py    what the time of a process goes into
prometheus_routes.py   metrics for Prometheus (cluster_families.py, process_families.py)
opentelemetry_export.py  the same, pushed by OTLP; opentelemetry_spans.py: jobs as traces (otlp_sender.py)
openapi.py             the description of all this
streaming_routes.py    what exists only for streams, refused by name
job_document.py        JobDetails as documents (vertex_document.py, job_details.py)
log_files.py           log files as answers; metrics_answer.py: metrics as answers
forwarding.py          what a standby does: it asks the leader
services.py            RestServices: what handlers ask

A handler asks components through their gateways, as all components do, and answers with plain typed data. Errors are
``{"errors": [text]}``: 404 for what is not known, 400 for what is malformed, 409 for what comes too late.
"""
