"""Metaphors: those that texts may use, each a term of the field, among pictures that texts are looked through for."""

#: words that paint a picture when they are said of programs: bodies, families, houses, water, war, work and weather
_PICTURED = """
anchor appetite army asleep awake battle beast birth bite bleed blood body bone bottleneck brain breath bridge
bucket bury carve cascade chase cheat clean cook cure curtain dance dawn dead death die dream drain drop
drown dust eat emperor enemy farm fate fence fight fish flood floor fool foot fountain friend fruit funnel garden
ghost gift giant glue grab graft grave greedy guard handshake harvest heart heartbeat heavy herd hero honest hungry
hunt jail jewel jump kill king kiss ladder lazy leader leak listen lock lottery luck marriage master mate
medicine mirror mother mouth nest nurse orphan parent peer pipeline pool pressure prison prune punish race reap
rival river root rot seed shadow shepherd shuffle sibling sick silent sink skeleton skew slot snapshot soul spill
spine stale stall starve steal storm straggler stream sweep swim throttle thrash tide tombstone trap tree trickle
twin vote wake watchdog window worker wound zombie
"""
PICTURED = frozenset(_PICTURED.split())
#: the metaphors of the field, and what each means there
ALLOWED = {
    "body": "of an HTTP message: what follows its headers",
    "bottleneck": "the part that limits the speed of the whole",
    "bucket": "of a hash table, a histogram or an object store",
    "clean": "data without errors; a folder without files of former runs",
    "dead": "a dead letter: a row that a function failed on; a process that has ended",
    "death": "of a process: its end without a chance to do anything",
    "die": "a process: to end without finishing",
    "drain": "a worker: to take no more work and end when it has none (Kubernetes)",
    "drop": "columns, tables, rows: SQL's DROP",
    "fence": "a former leader: to refuse what it still sends (ZooKeeper's fencing token)",
    "floor": "to round down",
    "funnel": "users who take one step after the other",
    "greedy": "an algorithm that takes the best next step",
    "guard": "a test before a branch",
    "handshake": "the first messages of a connection",
    "heartbeat": "a message that says that its sender runs (Flink)",
    "heavy": "a heavy hitter: a key of very many rows",
    "jump": "a clock: to be set to another time",
    "kill": "a process: kill(2)",
    "lazy": "evaluated when a result is asked for",
    "leader": "of an election (ZooKeeper)",
    "leak": "memory or descriptors that are never given back",
    "listen": "at a port: listen(2)",
    "lock": "a mutex, or a file that stands for one",
    "master": "the address of a Spark cluster",
    "nest": "types and queries within each other",
    "orphan": "a file or a buffer that nothing refers to any more",
    "parent": "of a process, a folder or a node of a tree",
    "peer": "rows that are equal in the order of a window (SQL); the other end of a connection",
    "pipeline": "operators that pass rows on before all of them have come",
    "pool": "of pages, threads or connections that are used again",
    "pressure": "back pressure: a producer waits for its consumer",
    "prune": "to leave out columns, files or row groups that a query does not need",
    "race": "of threads: a result that depends on their order",
    "reap": "a child that has ended: waitpid(2)",
    "root": "of a tree; the root cause; the superuser",
    "seed": "of random numbers",
    "shuffle": "rows sent to the subtask of their key (Spark)",
    "sibling": "nodes below one parent",
    "silent": "a peer: it sends nothing",
    "sink": "where rows of a job end (Flink)",
    "skew": "keys of which few have most of the rows",
    "slot": "of a TaskManager, for tasks of each vertex (Flink)",
    "snapshot": "a version of a table; the state of something at one time",
    "spill": "to write rows to disk that memory does not hold",
    "stale": "older than what it was made of",
    "stall": "a task: to get no further",
    "starve": "to wait for ever for what others take",
    "steal": "work stealing: to take tasks from the queue of another",
    "stream": "bytes or batches that come one after the other",
    "sweep": "to look through all entries for those that are no longer used",
    "trap": "a name that means something else in another library",
    "tree": "a graph with one root",
    "wake": "a thread that waits: to have it run on",
    "watchdog": "a timer that ends what does not answer",
    "window": "of SQL's window functions; of time",
    "worker": "a process that runs functions or tasks",
    "zombie": "a process that has ended and was not waited for",
}
