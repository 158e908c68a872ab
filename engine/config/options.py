"""The registry of options: what can be configured, its type, its default and what it means.

One constant an option, declared once (``config_option``). Names are Flink's where the meaning is Flink's.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

import engine.config.debug_options
import engine.config.flight_sql_options
import engine.config.limit_options
import engine.config.lineage_options
import engine.config.network_options
import engine.config.operating_options
import engine.config.sql_options
import engine.config.storage_options  # noqa: F401 - declares its options
from engine.config.config_option import OPTIONS, ConfigOption
from engine.config.config_option import declared as _option


def all_options() -> tuple[ConfigOption, ...]:
    """Return every declared option, by key."""
    return tuple(OPTIONS[key] for key in sorted(OPTIONS))


def find_option(key: str) -> ConfigOption | None:
    """Return the option of that key, or None."""
    return OPTIONS.get(key)


PARALLELISM_DEFAULT = _option(
    "parallelism.default",
    "int",
    None,
    "Number of subtasks of each operator. Default: the number of processors; 1 for small inputs.",
    minimum=1,
)
SUBTASKS_PER_PROCESSOR = _option(
    "parallelism.max-per-processor",
    "int",
    "1",
    "Largest number of subtasks for each processor that parallelism.default leads to in one process, where no subtask "
    "waits for functions, databases or stores.",
    minimum=1,
)
EXECUTION_MODE = _option(
    "execution.mode",
    "string",
    None,
    "Exchange of rows between tasks. PIPELINED streams rows where possible; BATCH stores them at every "
    "repartitioning. Default: PIPELINED embedded, BATCH on a cluster.",
    ("PIPELINED", "BATCH", "PIPELINED_FORCED", "BATCH_FORCED"),
)
ADAPTIVE = _option(
    "execution.batch.adaptive.enabled",
    "bool",
    "true",
    "Decide join strategies, build sides and parallelism again when stored results show their real sizes.",
)
ADAPTIVE_PARALLELISM = _option(
    "execution.batch.adaptive.auto-parallelism.enabled",
    "bool",
    "true",
    "Reduce the number of subtasks for small inputs, stored results or files, unless a parallelism is set.",
)
ADAPTIVE_BYTES_PER_TASK = _option(
    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task",
    "size",
    "16mb",
    "Bytes of stored results for each subtask.",
    minimum=1,
)
ADAPTIVE_SKEW = _option(
    "execution.batch.adaptive.skewed-join.enabled",
    "bool",
    "true",
    "Split the input of join subtasks that would read too much of a stored result.",
)
SKEW_FACTOR = _option(
    "execution.batch.adaptive.skewed-join.skewed-factor",
    "float",
    "2",
    "Multiple of the median subtask's input above which a subtask reads too much.",
    minimum=1,
)
SKEW_THRESHOLD = _option(
    "execution.batch.adaptive.skewed-join.skewed-threshold",
    "size",
    "1mb",
    "Bytes up to which a join subtask's input is never too much.",
    minimum=1,
)
BUFFER_TIMEOUT = _option(
    "execution.buffer-timeout",
    "duration, or -1",
    "100 ms",
    "Time after which a partly filled buffer is sent. 0: after every batch; -1: only when it is full.",
)
SLOTS = _option("taskmanager.numberOfTaskSlots", "int", "1", "Number of slots of a TaskManager.", minimum=1)
PROCESS_SIZE = _option(
    "taskmanager.memory.process.size",
    "size",
    None,
    "Memory of a TaskManager, from which all other sizes follow. Default: half of the memory of the machine or "
    "container, divided among the processes that start-cluster.sh starts there.",
)
MANAGED_FRACTION = _option(
    "taskmanager.memory.managed.fraction",
    "float",
    "0.4",
    "Share of the process size for sort, join and aggregate. In a job without Python functions, the share of "
    "their workers is added.",
)
MANAGED_SIZE = _option(
    "taskmanager.memory.managed.size", "size", None, "Managed memory as a size, for every job; overrides the fraction."
)
NETWORK_FRACTION = _option(
    "taskmanager.memory.network.fraction", "float", "0.1", "Share of the process size for network buffers."
)
NETWORK_MIN = _option("taskmanager.memory.network.min", "size", "4mb", "Minimum memory for network buffers.")
NETWORK_MAX = _option("taskmanager.memory.network.max", "size", "1gb", "Maximum memory for network buffers.")
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
    "Folders for spilled rows, separated by commas; they are created if missing. Default: $TMPDIR, or a folder "
    "of mode 0700 in ~/.local/state/drey.",
)
FOLDER_LIMIT = _option(
    "taskmanager.disk.limit",
    "size",
    "0",
    "Bytes that one process may take of each folder of io.tmp.dirs: spilled rows, stored results, files that ship with "
    "jobs, groups that functions keep. Then the next folder is used, or the task fails with an error that says which "
    "job has how much. 0: no limit.",
)
FUNCTIONS_TIMEOUT = _option(
    "functions.timeout",
    "duration",
    "0",
    "Time limit of a Python function for one row, in a worker process; the job fails with the row and the "
    "place. 0: no limit. After 10 s a line on standard error shows the row.",
)
WORKER_USER = _option(
    "functions.worker-user",
    "string",
    None,
    "User that Python functions run as; the TaskManager must run as root. Default: the TaskManager's user, "
    "whose files functions can then read, such as the cluster's secret. Only the TaskManager's own "
    "configuration counts.",
)
PYTHON_EXECUTION_MODE = _option(
    "python.execution-mode",
    "string",
    "process",
    "Place of Python functions: worker processes (process), or the task's thread (thread), where a debugger can stop.",
    ("process", "thread"),
)
SPARK_MASTER = _option("spark.master", "string", "local[*]", "Spark master for jobs of -t spark.")
SPARK_REMOTE = _option("spark.remote", "string", None, "Spark Connect server for jobs of -t spark, sc://HOST:PORT.")
LEGACY_ESTIMATES = _option(
    "optimizer.legacy-estimates", "bool", "false", "Use the estimates of Flink 1.x, to compare plans."
)
RUNTIME_FILTERS = _option(
    "table.optimizer.runtime-filter.enabled", "bool", "true", "Let sources skip rows that a join or a top-n would drop."
)
LOAD_BALANCE_MODE = _option(
    "taskmanager.load-balance.mode",
    "string",
    "NONE",
    "Distribution of a job over TaskManagers: fill one before the next (NONE), or use as many as possible (SLOTS).",
    ("NONE", "SLOTS"),
)
SLOT_REQUEST_TIMEOUT = _option(
    "slot.request.timeout",
    "duration",
    "5 min",
    "Time that a job waits if it needs more slots at one time than the cluster has. If other jobs hold the "
    "slots, it waits for its turn instead.",
)
JOB_PRIORITY = _option(
    "job.priority", "int", "0", "Priority of the job: higher ones get slots first, and earlier ones among equals."
)
RUNNING_JOBS_MAX = _option(
    "jobmanager.max-running-jobs",
    "int",
    "0",
    "Maximum number of jobs that run at one time; others wait. 0: no limit.",
    minimum=0,
)
STALLED_TIMEOUT = _option(
    "execution.stalled.timeout",
    "duration",
    "5 min",
    "Time after which a job fails if all of its running tasks wait for each other; 0: never. A task that works, "
    "such as in a Python function or a slow source, does not wait.",
)
HEARTBEAT_INTERVAL = _option("heartbeat.interval", "duration", "10 s", "Time between heartbeats of processes.")
HEARTBEAT_TIMEOUT = _option("heartbeat.timeout", "duration", "50 s", "Silence after which a process counts as lost.")
CANCELLATION_TIMEOUT = _option(
    "task.cancellation.timeout",
    "duration",
    "5 s",
    "Time in which a cancelled task must end before its worker is killed.",
)
RESTART_STRATEGY = _option(
    "restart-strategy.type",
    "string",
    None,
    "Strategy after a failure that another attempt may avoid. Default: none embedded, exponential-delay on a cluster.",
    ("none", "fixed-delay", "exponential-delay", "failure-rate"),
)
RESTART_GIVE_UP = _option(
    "restart-strategy.give-up-after",
    "duration",
    "30 s",
    "Time after which a job fails if the same failure repeats on each of its TaskManagers, for strategies "
    "without a limit of attempts; 0: never.",
)
FIXED_DELAY_ATTEMPTS = _option(
    "restart-strategy.fixed-delay.attempts", "int", "1", "Number of restarts before the job fails.", minimum=1
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
    "Factor between one pause and the next.",
    minimum=1,
)
EXPONENTIAL_RESET = _option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    "duration",
    "1 h",
    "Time without a failure after which the pause is the initial one again.",
)
EXPONENTIAL_ATTEMPTS = _option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    "int",
    "0",
    "Number of restarts without such a quiet time after which the job fails; 0: no limit.",
    minimum=0,
)
EXPONENTIAL_JITTER = _option(
    "restart-strategy.exponential-delay.jitter-factor",
    "float",
    "0.1",
    "Random part of each pause, as a share, so that jobs do not restart at the same time.",
    minimum=0,
)
FAILURE_RATE_MAX = _option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    "int",
    "1",
    "Number of failures within the interval that are followed by a restart; one more fails the job.",
    minimum=1,
)
FAILURE_RATE_INTERVAL = _option(
    "restart-strategy.failure-rate.failure-rate-interval", "duration", "1 min", "Length of the interval.", minimum=1
)
FAILURE_RATE_DELAY = _option("restart-strategy.failure-rate.delay", "duration", "1 s", "Pause before each restart.")
REGISTRATION_TIMEOUT = _option(
    "taskmanager.registration.timeout",
    "duration",
    "5 min",
    "Time for which a TaskManager tries to register at a JobManager before it ends.",
)
REGISTRATION_LAST_PAUSE = _option(
    "cluster.registration.max-timeout", "duration", "10 s", "Maximum pause between attempts to register.", minimum=1
)
JOB_STORE_CACHE = _option(
    "jobstore.cache-size", "size", "50mb", "Number of ended jobs whose details the JobManager keeps in memory."
)
JOB_STORE_EXPIRATION = _option(
    "jobstore.expiration-time", "duration", "7 d", "Time after which an ended job is removed.", minimum=1
)
JOB_STORE_CAPACITY = _option(
    "jobstore.max-capacity", "int", "1000", "Maximum number of ended jobs; the oldest one is removed first.", minimum=1
)
JOB_STORE_FOLDER = _option(
    "jobstore.dir",
    "string",
    None,
    "Folder, or prefix of an object store, of ended jobs, which outlive the JobManager there. Default: history in the "
    "log folder; with ZooKeeper, a folder in high-availability.storageDir.",
)
HISTORY_REFRESH_INTERVAL = _option(
    "historyserver.archive.fs.refresh-interval",
    "duration",
    "10 s",
    "Time between two checks of the history server for ended jobs.",
    minimum=1,
)
SECRET_FILE = _option(
    "security.secret-file",
    "string",
    None,
    "File with the secret that the processes of a cluster and its clients share, created at the first start. "
    "Default: cluster.secret. Relative to the folder of config.yaml.",
)
READ_TOKEN_FILE = _option(
    "security.read-token-file",
    "string",
    None,
    "File with the token for read-only access to the REST API of a JobManager from other machines: for "
    "browsers, Prometheus and curl (as bearer, or as password of basic authentication). Created at the first "
    "start. Default: read.token. Relative to the folder of config.yaml.",
)
SSL_ENABLED = _option(
    "security.ssl.enabled",
    "bool",
    "false",
    "Mutual TLS for messages, REST, files and data between machines; bin/make-certificates.sh creates the "
    "files. Between TaskManagers of one machine, data goes through a UNIX socket of this user without "
    "encryption.",
)
SSL_CERTIFICATE = _option(
    "security.ssl.certificate", "string", None, "File with the certificate of a process or client."
)
SSL_KEY = _option("security.ssl.key", "string", None, "File with the certificate's private key, mode 0600.")
SSL_CA = _option("security.ssl.ca", "string", None, "File with the authority that has signed all certificates.")
WEB_CANCEL = _option(
    "web.cancel.enable",
    "bool",
    "false",
    "Allow readers to cancel a job (PATCH /jobs/ID) without the secret, as Flink's tools do.",
)
BLOB_SIZE_MAX = _option(
    "blob.max-size",
    "size",
    "256mb",
    "Maximum size of a file that travels with a job: Python modules, archives.",
    minimum=1,
)
CLIENT_TIMEOUT = _option(
    "client.timeout",
    "duration",
    "3 min",
    "Time for which a client without a JobManager looks for the next leader (with ZooKeeper).",
    minimum=1,
)
WHOLE_TRACEBACKS = _option(
    "client.whole-tracebacks",
    "bool",
    "false",
    "Show the engine's own frames, too, in errors that a script does not catch.",
)
HA_TYPE = _option(
    "high-availability.type",
    "string",
    "NONE",
    "Leader election: none, with a single JobManager (NONE), or by ZooKeeper (ZOOKEEPER).",
    ("NONE", "ZOOKEEPER"),
)
HA_CLUSTER_ID = _option(
    "high-availability.cluster-id", "string", "default", "Name of this cluster among those that share a quorum."
)
HA_STORAGE_FOLDER = _option(
    "high-availability.storageDir",
    "string",
    None,
    "Folder, or prefix of an object store, that all JobManagers share, with jobs, their files and results for the next "
    "leader. Default with ZooKeeper: high-availability in the log folder, which suffices on one machine. Without "
    "ZooKeeper, jobs survive a restart of the JobManager if a folder is set.",
)
JOB_RECOVERY_TASK_MANAGER_TIMEOUT = _option(
    "high-availability.job-recovery.task-manager-timeout",
    "duration",
    "30 s",
    "Time for which a new leader waits for the TaskManagers of a job that it resumes; missing parts then run again.",
    minimum=1,
)
JOB_RECOVERY_JOB_MANAGER_TIMEOUT = _option(
    "high-availability.job-recovery.job-manager-timeout",
    "duration",
    "1 min",
    "Time for which a TaskManager keeps tasks and results of a job for a new leader.",
    minimum=1,
)
SUPERVISOR_ENABLED = _option(
    "jobmanager.supervisor.enabled",
    "bool",
    None,
    "Run a JobManager under a supervisor, which restarts it after a crash and ends its leadership at once. "
    "Default: true with high-availability.type ZOOKEEPER, else false.",
)
SUPERVISOR_DELAY = _option(
    "jobmanager.supervisor.restart-delay",
    "duration",
    "1 s",
    "Pause before a crashed JobManager is restarted; doubled each time, until one stays ready for 3 s.",
    minimum=1,
)
SUPERVISOR_DELAY_MAX = _option(
    "jobmanager.supervisor.restart-delay.max", "duration", "1 min", "Maximum pause before a restart.", minimum=1
)
SUPERVISOR_ATTEMPTS = _option(
    "jobmanager.supervisor.restart-attempts",
    "int",
    None,
    "Number of restarts, without staying ready for 3 s in between, after which the supervisor gives up. "
    "Default: no limit.",
    minimum=0,
)
HA_QUORUM = _option(
    "high-availability.zookeeper.quorum",
    "string",
    "localhost:2181",
    "Servers of ZooKeeper: host:port, separated by commas.",
)
HA_ROOT = _option(
    "high-availability.zookeeper.path.root", "string", "/drey", "ZooKeeper node above the nodes of all clusters."
)
HA_SESSION_TIMEOUT = _option(
    "high-availability.zookeeper.client.session-timeout",
    "duration",
    "6 s",
    "Time without contact after which a process leaves the election. A leader stops acting after three quarters of it.",
    minimum=1000,
)
HA_CONNECTION_TIMEOUT = _option(
    "high-availability.zookeeper.client.connection-timeout",
    "duration",
    "15 s",
    "Time for which a JobManager or client tries to reach a ZooKeeper server at its start.",
    minimum=1,
)
HA_TLS_CA = _option(
    "high-availability.zookeeper.client.tls.ca",
    "string",
    None,
    "File with the authority that has signed ZooKeeper's certificates. Default: no TLS to ZooKeeper.",
)
HA_TLS_CERTIFICATE = _option(
    "high-availability.zookeeper.client.tls.certificate",
    "string",
    None,
    "File with this process's certificate for ZooKeeper. Default: none.",
)
HA_TLS_KEY = _option(
    "high-availability.zookeeper.client.tls.key", "string", None, "File with that certificate's private key, mode 0600."
)
HA_ACL = _option(
    "high-availability.zookeeper.client.acl",
    "string",
    "creator",
    "Access to the nodes: holders of the cluster secret (creator), or all clients (open).",
    ("creator", "open"),
)
LOG_LEVEL = _option(
    "env.log.level",
    "string",
    "INFO",
    "Lowest level of messages that the processes of a cluster log.",
    ("DEBUG", "INFO", "WARNING", "ERROR"),
)
LOG_FORMAT = _option(
    "logging.format",
    "string",
    "text",
    "Format of all logs of a cluster, with those of tasks: text, or JSON objects with the ids of job and task.",
    ("text", "json"),
)
LOG_FILES_MAX = _option("env.log.max", "int", "10", "Number of log files kept for each process.", minimum=1)
LOG_FILE_SIZE = _option("env.log.file-size", "size", "100mb", "Size at which a log file is rotated.", minimum=1)
