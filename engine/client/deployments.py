"""Ways to deploy that Flink has: which of them are here, and the others by name.

    embedded      one process: client, JobManager and TaskManager       -t local (default)
    standalone    processes that scripts or other tools start           -t cluster, bin/start-cluster.sh,
                                                                        bin/standalone-job.sh (one job, then it ends)
    YARN, Mesos, Kubernetes (native)                                    refused: nothing here asks them for processes

On those three the standalone processes run as any program does: ``start-foreground`` of bin/jobmanager.sh and
bin/taskmanager.sh stays in front, ends with its process's exit code and takes settings by -D and DREY_* variables.

Source: Flink's execution.target and deployment kinds.
"""

from __future__ import annotations

from typing import Final

#: first word of Flink's targets (yarn-session, kubernetes-application) and of its -m yarn-cluster
_RESOURCE_MANAGERS: Final = {"yarn": "YARN", "mesos": "Mesos", "kubernetes": "Kubernetes", "native": "Kubernetes"}


def why_refused(name: str) -> str | None:
    """Return the reason why a target or address of Flink's is not supported, and an alternative; None for others."""
    manager = _RESOURCE_MANAGERS.get(name.lower().split("-")[0])
    if manager is not None:
        return (
            f"Drey does not ask {manager} for processes; start them there yourself (bin/jobmanager.sh and "
            "bin/taskmanager.sh start-foreground) and use -t cluster -m HOST:PORT"
        )
    return "a cluster that runs already is -t cluster -m HOST:PORT" if name.lower() == "remote" else None
