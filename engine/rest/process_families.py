"""Metrics of processes as families of Prometheus: a table, and what is made of it.

    {"taskmanager-5f..": {"Status.Disk.Free.spill": 4.2e9}}  ─►  drey_process_disk_free_bytes{process, folder="spill"}

``process`` is ``jobmanager`` or ``taskmanager-<id>``. A row whose source ends with a dot is one of a changing part,
which becomes a label. A process has the families of the parts that it has: no leader in a TaskManager, no slots in a
JobManager.

Held by: tests/rest/test_prometheus_routes.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from engine.insight.disk_watch import DISK_COUNTED, DISK_FREE, DISK_LIMIT, DISK_USED
from engine.insight.loop_lag import LOOP_LAG
from engine.insight.process_metrics import REFUSED

#: beginning of the names of the times at which certificates end
CERTIFICATE_ENDS = "Status.Certificate.Ends."


class Row(NamedTuple):
    """A family of metrics."""

    #: name without ``_total``
    name: str
    #: name, or beginning of the names, among the metrics of a process
    source: str
    text: str
    is_counter: bool = False
    #: label that has the changing part of the name
    label: str = ""


PROCESS_ROWS = (
    Row("drey_leader", "Status.Leader.Leads", "1 where this JobManager leads, 0 where it stands by."),
    Row("drey_leader_epoch", "Status.Leader.Epoch", "Epoch of the leader that is known here; 0: none is."),
    Row("drey_elections", "Status.Leader.Elections", "Times at which this JobManager was made the leader.", True),
    Row("drey_zookeeper_connected", "Status.ZooKeeper.Connected", "1 where the connection to ZooKeeper stands."),
    Row("drey_zookeeper_session_alive", "Status.ZooKeeper.Alive", "1 while the lease of the session runs."),
    Row("drey_zookeeper_sessions_ended", "Status.ZooKeeper.SessionsEnded", "Sessions that have ended.", True),
    Row(
        "drey_certificate_expiry_timestamp_seconds",
        CERTIFICATE_ENDS,
        "Time at which a certificate of this process ends.",
        label="certificate",
    ),
    Row("drey_process_resident_memory_bytes", "Status.Process.Memory.Resident", "Resident memory."),
    Row("drey_process_virtual_memory_bytes", "Status.Process.Memory.Virtual", "Virtual memory."),
    Row("drey_process_threads", "Status.Process.Threads.Count", "Threads."),
    Row("drey_process_open_fds", "Status.Process.FileDescriptors.Count", "Open descriptors."),
    Row("drey_process_uptime_seconds", "Status.Process.Uptime", "Time since the start of the process."),
    Row("drey_process_cpu_seconds", "Status.Process.CPU.Time", "Processor time.", True),
    Row(
        "drey_process_machine_memory_available_bytes",
        "Status.Machine.Memory.Available",
        "Memory that the machine has left.",
    ),
    Row("drey_process_event_loop_lag_seconds", LOOP_LAG, "Longest delay of the event loop in the last half minute."),
    Row("drey_process_disk_free_bytes", DISK_FREE, "Free bytes of the disk of a folder.", label="folder"),
    Row("drey_process_disk_used_bytes", DISK_USED, "Used bytes of the disk of a folder.", label="folder"),
    Row("drey_process_disk_limit_bytes", DISK_LIMIT, "Bytes that a process may take of a folder.", label="folder"),
    Row("drey_process_disk_limit_used_bytes", DISK_COUNTED, "Bytes that it takes of the limit.", label="folder"),
    Row("drey_process_managed_memory_used_bytes", "Status.Memory.Managed.Used", "Managed memory in use."),
    Row("drey_process_managed_memory_bytes", "Status.Memory.Managed.Total", "Managed memory of the process."),
    Row("drey_process_network_memory_used_bytes", "Status.Memory.Network.Used", "Network buffers in use."),
    Row("drey_process_network_memory_bytes", "Status.Memory.Network.Total", "Network buffers of the process."),
    Row("drey_process_arrow_memory_used_bytes", "Status.Memory.Arrow.Used", "Memory of Arrow's in use."),
    Row("drey_process_spill_held_bytes", "Status.Spill.Held", "Bytes on disk of operators that are at work."),
    Row("drey_process_tasks", "Status.Tasks.Running", "Attempts that run."),
    Row("drey_process_tasks_ended", "Status.Tasks.Ended.", "Attempts that have ended.", True, "state"),
    Row("drey_process_rows_in", "Status.Tasks.RowsIn", "Rows that tasks took.", True),
    Row("drey_process_rows_out", "Status.Tasks.RowsOut", "Rows that tasks gave.", True),
    Row("drey_process_bytes_in", "Status.Tasks.BytesIn", "Bytes that tasks took.", True),
    Row("drey_process_bytes_out", "Status.Tasks.BytesOut", "Bytes that tasks gave.", True),
    Row("drey_process_spilled_bytes", "Status.Tasks.SpilledBytes", "Bytes that operators spilled.", True),
    Row("drey_process_stored_bytes", "Status.Tasks.StoredBytes", "Bytes of results on disk for other tasks.", True),
    Row(
        "drey_process_function_seconds",
        "Status.Tasks.FunctionTime",
        "Processor time of workers of Python functions, known at the end of an attempt.",
        True,
    ),
    Row("drey_process_store_requests", "Status.Store.Requests.", "Requests to a store of objects.", True, "store"),
    Row("drey_process_store_read_bytes", "Status.Store.BytesRead.", "Bytes read from a store.", True, "store"),
    Row("drey_process_store_written_bytes", "Status.Store.BytesWritten.", "Bytes written to a store.", True, "store"),
    Row("drey_flight_sql_statements", "Status.FlightSql.Statements.", "Statements of clients.", True, "outcome"),
    Row("drey_flight_sql_running", "Status.FlightSql.Running", "Statements of clients that run."),
    Row("drey_flight_sql_waiting", "Status.FlightSql.Waiting", "Statements of clients that wait for their turn."),
    Row("drey_refused_requests", REFUSED, "Requests and data connections that were refused.", True, "reason"),
)


class ProcessOf(NamedTuple):
    """A process, the version and protocol of its program, and its metrics; none of one that does not answer."""

    name: str
    version: str
    protocol: str
    values: Mapping[str, float]


def process_families(processes: Sequence[ProcessOf]) -> Sequence[Metric]:
    """Return the families that the processes have."""
    build = GaugeMetricFamily("drey_build_info", "Program of a process.", labels=["process", "version", "protocol"])
    for each in processes:
        build.add_metric([each.name, each.version, each.protocol], 1)
    families = {row: _empty(row) for row in PROCESS_ROWS}
    whole = {row.source: family for row, family in families.items() if not row.label}
    parts = [(row.source, family) for row, family in families.items() if row.label]
    for each in processes:
        for name, value in each.values.items():
            if (family := whole.get(name)) is not None:
                family.add_metric([each.name], value)
                continue
            for source, family in parts:
                if name.startswith(source):
                    family.add_metric([each.name, name.removeprefix(source)], value)
    return (build, *(family for family in families.values() if family.samples))


def _empty(row: Row) -> CounterMetricFamily | GaugeMetricFamily:
    labels = ["process", row.label] if row.label else ["process"]
    return (CounterMetricFamily if row.is_counter else GaugeMetricFamily)(row.name, row.text, labels=labels)
