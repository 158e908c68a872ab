"""Options of where the processes of a cluster listen, and under which hosts others reach them.

    ...bind-host                      an interface of this machine; 0.0.0.0 or :: are all of them
    ...rpc.address, ...host, ...      what other machines are told; never all of them

Declared as those of ``options``, which has them all.
Held by: tests/config/test_loader.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

JOB_MANAGER_ADDRESS = _option(
    "jobmanager.rpc.address", "host", "localhost", "Host under which TaskManagers and clients reach the JobManager."
)
JOB_MANAGER_BIND_HOST = _option(
    "jobmanager.bind-host",
    "host",
    "localhost",
    "Host name or address on which the JobManager listens; 0.0.0.0: all of IPv4; ::, all of IPv6 and IPv4.",
)
JOB_MANAGER_RPC_PORT = _option(
    "jobmanager.rpc.port",
    "ports",
    None,
    "Separate port for messages of TaskManagers. Default: none; they use rest.port, as clients do.",
)
REST_ADDRESS = _option(
    "rest.address", "host", None, "Host under which clients reach the JobManager. Default: jobmanager.rpc.address."
)
REST_PORT = _option(
    "rest.port", "ports", "8081", "Port of the JobManager, or a range, of which the first free one is used: 8081-8090."
)
ALLOWED_HOSTS = _option(
    "web.allowed-hosts",
    "hosts",
    "",
    "Further names, separated by commas, under which a JobManager or a history server may be asked: of services and "
    "proxies before it. A request for another host is refused.",
)
TASK_MANAGER_HOST = _option(
    "taskmanager.host",
    "host",
    None,
    "Host under which other processes reach a TaskManager. Default: taskmanager.bind-host; where that is all "
    "interfaces, the address from which this machine reaches the JobManager or ZooKeeper.",
)
TASK_MANAGER_BIND_HOST = _option(
    "taskmanager.bind-host",
    "host",
    "localhost",
    "Host name or address on which a TaskManager listens; 0.0.0.0: all of IPv4; ::, all of IPv6 and IPv4.",
)
TASK_MANAGER_RPC_PORT = _option(
    "taskmanager.rpc.port", "ports", "0", "Port of a TaskManager for messages, or a range; 0: any free one."
)
TASK_MANAGER_DATA_PORT = _option(
    "taskmanager.data.port", "ports", "0", "Port of a TaskManager for rows, or a range; 0: any free one."
)
HISTORY_ADDRESS = _option(
    "historyserver.web.address", "host", "localhost", "Host under which browsers reach the history server."
)
HISTORY_BIND_HOST = _option(
    "historyserver.bind-host",
    "host",
    None,
    "Host name or address on which the history server listens. Default: historyserver.web.address.",
)
HISTORY_PORT = _option("historyserver.web.port", "ports", "8082", "Port of the history server, or a range.")
