"""The registry of options: what can be configured, its type, its default and what it means.

One constant an option, declared once (``config_option``). Names are Flink's where the meaning is Flink's.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

import engine.config.debug_options  # noqa: F401 - declares its options
from engine.config.config_option import OPTIONS, ConfigOption
from engine.config.config_option import declared as _option


def all_options() -> tuple[ConfigOption, ...]:
    """Return every declared option, by key."""
    return tuple(OPTIONS[key] for key in sorted(OPTIONS))


def find_option(key: str) -> ConfigOption | None:
    """Return the option of that key, or None."""
    return OPTIONS.get(key)


PARALLELISM_DEFAULT = _option(
    "parallelism.default", "int", None, "Subtasks of each operator. Default: processors; 1 for small inputs.", minimum=1
)
EXECUTION_MODE = _option(
    "execution.mode",
    "string",
    None,
    "Exchange of rows between tasks: PIPELINED streams where it can, BATCH stores at every repartitioning. "
    "Default: PIPELINED embedded, BATCH on a cluster.",
    ("PIPELINED", "BATCH", "PIPELINED_FORCED", "BATCH_FORCED"),
)
ADAPTIVE = _option(
    "execution.batch.adaptive.enabled",
    "bool",
    "true",
    "Join strategies, build sides and parallelism are decided again when stored results show their real sizes.",
)
ADAPTIVE_PARALLELISM = _option(
    "execution.batch.adaptive.auto-parallelism.enabled",
    "bool",
    "true",
    "What reads little, stored results or files, gets fewer subtasks, unless a parallelism was set.",
)
ADAPTIVE_BYTES_PER_TASK = _option(
    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task",
    "size",
    "16mb",
    "Bytes of stored results that a subtask should read.",
    minimum=1,
)
ADAPTIVE_SKEW = _option(
    "execution.batch.adaptive.skewed-join.enabled",
    "bool",
    "true",
    "Subtasks of a join that would read too much of a stored result share it with the others.",
)
SKEW_FACTOR = _option(
    "execution.batch.adaptive.skewed-join.skewed-factor",
    "float",
    "2",
    "A subtask reads too much when it reads more than this many times what the median one reads.",
    minimum=1,
)
SKEW_THRESHOLD = _option(
    "execution.batch.adaptive.skewed-join.skewed-threshold",
    "size",
    "1mb",
    "Bytes that are never too much for a subtask of a join.",
    minimum=1,
)
BUFFER_TIMEOUT = _option(
    "execution.buffer-timeout",
    "duration, or -1",
    "100 ms",
    "A buffer that is not full is sent after this time; 0 sends after every batch, -1 only when it is full.",
)
SLOTS = _option("taskmanager.numberOfTaskSlots", "int", "1", "Slots of a TaskManager.", minimum=1)
PROCESS_SIZE = _option(
    "taskmanager.memory.process.size",
    "size",
    None,
    "All memory of a TaskManager: the one number a person sets. Default: half of the memory of the machine or "
    "container, for all processes together that start-cluster.sh starts there.",
)
MANAGED_FRACTION = _option(
    "taskmanager.memory.managed.fraction",
    "float",
    "0.4",
    "Share of the process size for sort, join and aggregate; in a job without Python functions the share of their "
    "workers comes on top.",
)
MANAGED_SIZE = _option(
    "taskmanager.memory.managed.size", "size", None, "Managed memory as a size, in every job; overrides the fraction."
)
NETWORK_FRACTION = _option(
    "taskmanager.memory.network.fraction", "float", "0.1", "Share of the process size for network buffers."
)
NETWORK_MIN = _option("taskmanager.memory.network.min", "size", "4mb", "Least memory for network buffers.")
NETWORK_MAX = _option("taskmanager.memory.network.max", "size", "64mb", "Most memory for network buffers.")
SEGMENT_SIZE = _option(
    "taskmanager.memory.segment-size",
    "size",
    "32kb",
    "Size of a memory segment (a page); a power of two.",
    minimum=4096,
)
TMP_DIRS = _option(
    "io.tmp.dirs",
    "string",
    None,
    "Spill directories, separated by commas; made where they are missing. Default: $TMPDIR, or a folder of mode 0700 "
    "in ~/.local/state/drey.",
)
FUNCTIONS_TIMEOUT = _option(
    "functions.timeout",
    "duration",
    "0",
    "Longest time that a Python function in a worker process may take for one row; then the job fails, with the row "
    "and the place. 0: any time; after 10 s a line on standard error says which row it works on.",
)
WORKER_USER = _option(
    "functions.worker-user",
    "string",
    None,
    "User whose rights Python functions have; the TaskManager must run as root. Default: its own user; then functions "
    "can read its files, the cluster's secret among them. Is read from the TaskManager's own configuration alone.",
)
PYTHON_EXECUTION_MODE = _option(
    "python.execution-mode",
    "string",
    "process",
    "Where Python functions run: in worker processes, or in the task's thread, where a debugger stops.",
    ("process", "thread"),
)
SPARK_MASTER = _option("spark.master", "string", "local[*]", "Master of Spark for jobs of -t spark.")
SPARK_REMOTE = _option("spark.remote", "string", None, "Spark Connect server for -t spark, sc://HOST:PORT.")
LEGACY_ESTIMATES = _option(
    "optimizer.legacy-estimates", "bool", "false", "Estimate as Flink 1.x did, to see the plan it would have chosen."
)
RUNTIME_FILTERS = _option(
    "table.optimizer.runtime-filter.enabled", "bool", "true", "Sources leave out rows that a join or a top-n will drop."
)
LOAD_BALANCE_MODE = _option(
    "taskmanager.load-balance.mode",
    "string",
    "NONE",
    "Which slots a job gets: those of one TaskManager before the next one's (NONE), or some of each (SLOTS).",
    ("NONE", "SLOTS"),
)
SLOT_REQUEST_TIMEOUT = _option(
    "slot.request.timeout",
    "duration",
    "5 min",
    "How long a job waits that needs more slots at one time than there are. For taken slots it waits its turn.",
)
JOB_PRIORITY = _option("job.priority", "int", "0", "Jobs of higher priority get slots first, then the earlier ones.")
RUNNING_JOBS_MAX = _option(
    "jobmanager.max-running-jobs", "int", "0", "Jobs that run at one time; others wait. 0: no limit.", minimum=0
)
STALLED_TIMEOUT = _option(
    "execution.stalled.timeout",
    "duration",
    "5 min",
    "A job ends when all of its running tasks have waited for each other for so long; 0: never. A task that is at "
    "work, in a Python function or a slow source, does not wait.",
)
HEARTBEAT_INTERVAL = _option("heartbeat.interval", "duration", "10 s", "Time between heartbeats of processes.")
HEARTBEAT_TIMEOUT = _option("heartbeat.timeout", "duration", "50 s", "Silence after which a process counts as lost.")
CANCELLATION_TIMEOUT = _option(
    "task.cancellation.timeout", "duration", "5 s", "Time a cancelled task has to end before its worker is killed."
)
RESTART_STRATEGY = _option(
    "restart-strategy.type",
    "string",
    None,
    "After a failure that another attempt may cure. Default: none embedded, exponential-delay on a cluster.",
    ("none", "fixed-delay", "exponential-delay", "failure-rate"),
)
RESTART_GIVE_UP = _option(
    "restart-strategy.give-up-after",
    "duration",
    "30 s",
    "A strategy without a limit of attempts gives up when the same failure has repeated on every TaskManager of the "
    "job for so long; 0: never.",
)
FIXED_DELAY_ATTEMPTS = _option(
    "restart-strategy.fixed-delay.attempts", "int", "1", "Restarts of a job before it fails.", minimum=1
)
FIXED_DELAY = _option("restart-strategy.fixed-delay.delay", "duration", "1 s", "Pause before each restart.")
EXPONENTIAL_INITIAL = _option(
    "restart-strategy.exponential-delay.initial-backoff", "duration", "1 s", "Pause before the first restart."
)
EXPONENTIAL_MAX = _option(
    "restart-strategy.exponential-delay.max-backoff", "duration", "1 min", "Longest pause before a restart."
)
EXPONENTIAL_MULTIPLIER = _option(
    "restart-strategy.exponential-delay.backoff-multiplier",
    "float",
    "1.5",
    "Each pause as a multiple of the last.",
    minimum=1,
)
EXPONENTIAL_RESET = _option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    "duration",
    "1 h",
    "After so long without a failure the pause is the first one again.",
)
EXPONENTIAL_ATTEMPTS = _option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    "int",
    "0",
    "Restarts without such a quiet time, after which the job fails; 0: any number.",
    minimum=0,
)
EXPONENTIAL_JITTER = _option(
    "restart-strategy.exponential-delay.jitter-factor",
    "float",
    "0.1",
    "Each pause is longer or shorter by up to this share of it, at random, so that jobs do not restart all at once.",
    minimum=0,
)
FAILURE_RATE_MAX = _option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    "int",
    "1",
    "Failures within the interval after which the job is restarted; one more fails it.",
    minimum=1,
)
FAILURE_RATE_INTERVAL = _option(
    "restart-strategy.failure-rate.failure-rate-interval", "duration", "1 min", "The interval.", minimum=1
)
FAILURE_RATE_DELAY = _option("restart-strategy.failure-rate.delay", "duration", "1 s", "Pause before each restart.")
JOB_MANAGER_ADDRESS = _option(
    "jobmanager.rpc.address", "string", "localhost", "Host under which TaskManagers and clients find the JobManager."
)
JOB_MANAGER_BIND_HOST = _option(
    "jobmanager.bind-host", "string", "localhost", "Host name or address that the JobManager listens at."
)
JOB_MANAGER_RPC_PORT = _option(
    "jobmanager.rpc.port",
    "ports",
    None,
    "Another port for messages of TaskManagers. Default: none; they use rest.port, as clients do.",
)
REST_ADDRESS = _option(
    "rest.address", "string", None, "Host of the JobManager for clients. Default: jobmanager.rpc.address."
)
REST_PORT = _option(
    "rest.port", "ports", "8081", "Port of the JobManager, or a range of which the first free one is taken: 8081-8090."
)
TASK_MANAGER_HOST = _option(
    "taskmanager.host", "string", "localhost", "Host under which the others find a TaskManager."
)
TASK_MANAGER_BIND_HOST = _option(
    "taskmanager.bind-host", "string", "localhost", "Host name or address that a TaskManager listens at."
)
TASK_MANAGER_RPC_PORT = _option(
    "taskmanager.rpc.port", "ports", "0", "Port of a TaskManager for messages, or a range; 0: any free one."
)
TASK_MANAGER_DATA_PORT = _option(
    "taskmanager.data.port", "ports", "0", "Port of a TaskManager for rows, or a range; 0: any free one."
)
REGISTRATION_TIMEOUT = _option(
    "taskmanager.registration.timeout",
    "duration",
    "5 min",
    "How long a TaskManager looks for a JobManager before it ends.",
)
REGISTRATION_LAST_PAUSE = _option(
    "cluster.registration.max-timeout", "duration", "10 s", "Longest pause between attempts to register.", minimum=1
)
JOB_STORE_CACHE = _option(
    "jobstore.cache-size", "size", "50mb", "Details of ended jobs that the JobManager keeps in memory."
)
JOB_STORE_EXPIRATION = _option(
    "jobstore.expiration-time", "duration", "7 d", "Time after which an ended job is forgotten.", minimum=1
)
JOB_STORE_CAPACITY = _option(
    "jobstore.max-capacity", "int", "1000", "Ended jobs that are kept; the oldest one goes first.", minimum=1
)
JOB_STORE_FOLDER = _option(
    "jobstore.dir",
    "string",
    None,
    "Folder for ended jobs, where they outlive the JobManager. Default: history among the log files; with ZooKeeper, a "
    "folder in high-availability.storageDir.",
)
HISTORY_ADDRESS = _option(
    "historyserver.web.address", "string", "localhost", "Host name or address that the history server listens at."
)
HISTORY_PORT = _option("historyserver.web.port", "ports", "8082", "Port of the history server, or a range.")
HISTORY_REFRESH_INTERVAL = _option(
    "historyserver.archive.fs.refresh-interval",
    "duration",
    "10 s",
    "How often the history server looks for jobs that have ended.",
    minimum=1,
)
SECRET_FILE = _option(
    "security.secret-file",
    "string",
    None,
    "File with the secret that the processes of a cluster and its clients share; made at the first start. "
    "Default: cluster.secret. A relative path begins at the folder of config.yaml.",
)
READ_TOKEN_FILE = _option(
    "security.read-token-file",
    "string",
    None,
    "File with the token that lets browsers, Prometheus and curl read the REST API of a JobManager beyond this machine "
    "(bearer, or the password of basic authentication), and change nothing; made at the first start. Default: "
    "read.token. A relative path begins at the folder of config.yaml.",
)
SSL_ENABLED = _option(
    "security.ssl.enabled",
    "bool",
    "false",
    "Mutual TLS on messages, REST, files and data between machines; bin/make-certificates.sh makes the files. Between "
    "TaskManagers of one machine data goes through a UNIX socket of this user, and is not encrypted.",
)
SSL_CERTIFICATE = _option(
    "security.ssl.certificate", "string", None, "File with the certificate that a process or client shows."
)
SSL_KEY = _option("security.ssl.key", "string", None, "File with the certificate's private key, mode 0600.")
SSL_CA = _option("security.ssl.ca", "string", None, "File with the authority that must have signed all certificates.")
WEB_CANCEL = _option(
    "web.cancel.enable",
    "bool",
    "false",
    "Whether people who may read may also cancel a job (PATCH /jobs/ID), as Flink's tools do, without the secret.",
)
BLOB_SIZE_MAX = _option(
    "blob.max-size", "size", "256mb", "Largest file that may travel with a job: Python modules, archives.", minimum=1
)
CLIENT_TIMEOUT = _option(
    "client.timeout",
    "duration",
    "3 min",
    "How long a client whose JobManager is gone looks for the next leader (with ZooKeeper) before it gives up.",
    minimum=1,
)
WHOLE_TRACEBACKS = _option(
    "client.whole-tracebacks",
    "bool",
    "false",
    "Whether errors that a script does not catch show the engine's own frames, and not the lines of the script alone.",
)
HA_TYPE = _option(
    "high-availability.type",
    "string",
    "NONE",
    "Who leads: the one JobManager there is (NONE), or the one that ZooKeeper elects (ZOOKEEPER).",
    ("NONE", "ZOOKEEPER"),
)
HA_CLUSTER_ID = _option(
    "high-availability.cluster-id", "string", "default", "Name of this cluster among those that share a quorum."
)
HA_STORAGE_FOLDER = _option(
    "high-availability.storageDir",
    "string",
    None,
    "Folder that every JobManager reaches. It keeps jobs, their files and results for the next leader. Default with "
    "ZooKeeper: high-availability among the log files, which is enough on one machine. Without ZooKeeper, jobs go on "
    "after a restart of the JobManager if this is set.",
)
JOB_RECOVERY_TASK_MANAGER_TIMEOUT = _option(
    "high-availability.job-recovery.task-manager-timeout",
    "duration",
    "30 s",
    "How long a new leader waits for the TaskManagers of a job that it goes on with; what is missing then runs again.",
    minimum=1,
)
JOB_RECOVERY_JOB_MANAGER_TIMEOUT = _option(
    "high-availability.job-recovery.job-manager-timeout",
    "duration",
    "1 min",
    "How long a TaskManager keeps tasks and results of a job for the new leader that has taken the job over.",
    minimum=1,
)
SUPERVISOR_ENABLED = _option(
    "jobmanager.supervisor.enabled",
    "bool",
    None,
    "Whether a small process restarts a JobManager that has died, and hands its leadership over at once. Default: true "
    "with high-availability.type ZOOKEEPER, else false.",
)
SUPERVISOR_DELAY = _option(
    "jobmanager.supervisor.restart-delay",
    "duration",
    "1 s",
    "Pause before a JobManager that died is restarted; doubled each time, until one stays ready for 3 s.",
    minimum=1,
)
SUPERVISOR_DELAY_MAX = _option(
    "jobmanager.supervisor.restart-delay.max", "duration", "1 min", "The longest such pause.", minimum=1
)
SUPERVISOR_ATTEMPTS = _option(
    "jobmanager.supervisor.restart-attempts",
    "int",
    None,
    "Restarts after which a JobManager that has not stayed ready for 3 s in between is given up. Default: no limit.",
    minimum=0,
)
HA_QUORUM = _option(
    "high-availability.zookeeper.quorum",
    "string",
    "localhost:2181",
    "Servers of ZooKeeper: host:port, separated by commas.",
)
HA_ROOT = _option(
    "high-availability.zookeeper.path.root", "string", "/drey", "ZooKeeper's node for the nodes of all clusters."
)
HA_SESSION_TIMEOUT = _option(
    "high-availability.zookeeper.client.session-timeout",
    "duration",
    "6 s",
    "Silence after which a process is out of the election. Leaders stop acting after three quarters of it.",
    minimum=1000,
)
HA_CONNECTION_TIMEOUT = _option(
    "high-availability.zookeeper.client.connection-timeout",
    "duration",
    "15 s",
    "How long a JobManager or client tries to reach a server of ZooKeeper at its start.",
    minimum=1,
)
HA_TLS_CA = _option(
    "high-availability.zookeeper.client.tls.ca",
    "string",
    None,
    "File with the authority that must have signed ZooKeeper's certificates. Default: no TLS to ZooKeeper.",
)
HA_TLS_CERTIFICATE = _option(
    "high-availability.zookeeper.client.tls.certificate",
    "string",
    None,
    "File with the certificate that ZooKeeper's servers are shown. Default: none.",
)
HA_TLS_KEY = _option(
    "high-availability.zookeeper.client.tls.key", "string", None, "File with that certificate's private key, mode 0600."
)
HA_ACL = _option(
    "high-availability.zookeeper.client.acl",
    "string",
    "creator",
    "Who may read and write the nodes: holders of the cluster secret (creator), or everybody (open).",
    ("creator", "open"),
)
LOG_LEVEL = _option(
    "env.log.level",
    "string",
    "INFO",
    "What the processes of a cluster log: messages of at least this level.",
    ("DEBUG", "INFO", "WARNING", "ERROR"),
)
LOG_FORMAT = _option(
    "logging.format",
    "string",
    "text",
    "Lines of all logs of a cluster, those of tasks too: text, or JSON objects with the ids of job and task.",
    ("text", "json"),
)
LOG_FILES_MAX = _option("env.log.max", "int", "10", "Log files kept for each process.", minimum=1)
LOG_FILE_SIZE = _option("env.log.file-size", "size", "100mb", "Size at which a log file is rotated.", minimum=1)
