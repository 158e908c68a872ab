"""Mechanisms by the names that Flink's documents give them: the modules that have each, or the decision against it.

    Mechanism(name, modules)                     built
    Mechanism(name, modules, decision)           built in another way, and the page that says why
    Mechanism(name, (), decision)                left out, and the page that says why

The tests of a row are those that hold its modules.
"""

from typing import NamedTuple


class Mechanism(NamedTuple):
    """A mechanism. ``modules`` lie below the root; ``decision`` is the number of a page, 0 where there is none."""

    name: str
    modules: tuple[str, ...] = ()
    decision: int = 0


MECHANISMS: dict[str, tuple[Mechanism, ...]] = {
    "Exchange": (
        Mechanism("ResultPartition, its types and its life", ("engine/exchange/partition_life.py",), 21),
        Mechanism("PipelinedSubpartition", ("engine/exchange/pipelined_subpartition.pyx",)),
        Mechanism("SpillableSubpartition and its views", ("engine/exchange/blocking_data.py",), 25),
        Mechanism("asynchronous read of a spilled result", ("engine/exchange/read_ahead.py",), 14),
        Mechanism("ResultPartitionManager", ("engine/exchange/partition_manager.py",)),
        Mechanism("consumable notification, UNKNOWN locations", ("engine/jobmaster/job_scheduling.py",), 11),
        Mechanism("ChannelSelector, StreamPartitioner", ("engine/exchange/channel_selector.pyx",)),
        Mechanism("keyed streams, key groups", ("engine/exchange/key_selector.pyx",), 12),
        Mechanism("RecordWriter, its builder", ("engine/exchange/record_writer.pyx",)),
        Mechanism("NetworkBufferPool, LocalBufferPool", ("engine/exchange/buffer_pool.pyx",)),
        Mechanism("output flusher, buffer time-out", ("engine/exchange/output_flusher.py",), 22),
        Mechanism(
            "InputGate, InputChannel", ("engine/exchange/input_gate.py", "engine/transport/remote_input_channel.py")
        ),
        Mechanism("credit-based flow control, watermarks of a connection", ("engine/transport/credit.pyx",), 28),
        Mechanism("StackTraceSampleCoordinator, back pressure", ("engine/rest/vertex_document.py",)),
    ),
    "Graphs and states": (
        Mechanism("Plan", ("engine/graph/plan.py",)),
        Mechanism("OptimizedPlan, JSON of a plan", ("engine/optimizer/physical_plan.py",), 17),
        Mechanism("operator chaining, StreamGraph", ("engine/optimizer/chaining.py",)),
        Mechanism("JobGraph, resources of a vertex", ("engine/graph/job_graph.py",), 13),
        Mechanism("ExecutionGraph", ("engine/jobmaster/execution_graph.py",)),
        Mechanism("JobStatus", ("engine/jobmaster/job_status.py",), 23),
        Mechanism("ExecutionState", ("engine/jobmaster/execution_state.py",)),
        Mechanism("TaskDeploymentDescriptor", ("engine/jobmaster/deployment.py",)),
        Mechanism("Task, AbstractInvokable", ("engine/taskexecutor/task.py", "engine/operators/batch_task.py")),
        Mechanism("class loader of a job", ("engine/functions/worker_process.py",), 26),
        Mechanism("drivers", ("engine/operators/drivers.py",)),
        Mechanism("accumulators", ("engine/functions/user_function.py",)),
        Mechanism("iterations of the optimizer", (), 32),
    ),
    "Processes and services": (
        Mechanism("CliFrontend, ClusterClient", ("engine/cli/main.py", "engine/client/cluster_client.py")),
        Mechanism("ClusterEntrypoint", ("engine/entrypoint/jobmanager.py",)),
        Mechanism("TaskManagerRunner", ("engine/entrypoint/taskmanager.py",)),
        Mechanism("MiniCluster", ("engine/minicluster/mini_cluster.py",)),
        Mechanism("Dispatcher", ("engine/dispatcher/dispatcher.py",)),
        Mechanism("JobMaster", ("engine/jobmaster/job_master.py",)),
        Mechanism("SlotPool", ("engine/jobmaster/slot_pool.py",)),
        Mechanism("ResourceManager, SlotManager", ("engine/resourcemanager/resource_manager.py",)),
        Mechanism("TaskExecutor, TaskSlotTable", ("engine/taskexecutor/task_executor.py",)),
        Mechanism("HeartbeatManager", ("engine/rpc/heartbeat.py",)),
        Mechanism("RPC, fencing tokens", ("engine/rpc/fencing.py",)),
        Mechanism("BlobServer, BlobCache", ("engine/blob/blob_server.py",), 15),
        Mechanism("restart strategies", ("engine/jobmaster/restart_strategy.py",)),
        Mechanism("fail-over of pipelined regions", ("engine/jobmaster/region_failover.py",), 8),
        Mechanism("scheduling by regions, lazy and eager", ("engine/jobmaster/scheduler.py",), 11),
        Mechanism("FatalErrorHandler", ("engine/entrypoint/daemon.py",)),
        Mechanism("job mode: a cluster for one job", ("engine/entrypoint/standalone_job.py",)),
        Mechanism("JobGraphRetriever: a job graph read by a job cluster at its start", (), 31),
        Mechanism("YARN, Mesos, Kubernetes", ("engine/client/deployments.py",), 24),
        Mechanism("checkpoints, savepoints, queryable state", ("engine/rest/streaming_routes.py",), 27),
        Mechanism("two-phase commit of sinks", ("engine/commit/decision.py", "engine/commit/publish.py")),
        Mechanism("WebMonitor, REST API", ("engine/rest/routes.py",), 9),
        Mechanism("HistoryServer", ("engine/entrypoint/historyserver.py",)),
        Mechanism("MetricRegistry, metrics reporters", ("engine/rest/prometheus_routes.py",), 29),
        Mechanism("security: authentication of peers", ("engine/rpc/credentials.py", "engine/transport/handshake.py")),
        Mechanism("security: encryption", ("engine/rpc/tls.py",)),
        Mechanism("security: users' code", ("engine/functions/worker_user.py",)),
    ),
    "High availability": (
        Mechanism("LeaderElectionService", ("ha/zookeeper_election.py",)),
        Mechanism("LeaderRetrievalService", ("ha/zookeeper_retrieval.py",)),
        Mechanism("StandaloneHaServices, EmbeddedHaServices", ("ha/standalone.py", "ha/embedded.py")),
        Mechanism("JobGraphStore", ("engine/dispatcher/job_files.py",)),
        Mechanism("JobResultStore", ("engine/commit/result_record.py",)),
        Mechanism("recovery of a job under another leader", ("engine/jobmaster/job_journal.py",), 7),
    ),
    "Memory and files": (
        Mechanism("MemoryManager, MemorySegment", ("engine/memory/manager.pyx", "engine/memory/segment.pyx")),
        Mechanism("memory of a process", ("engine/memory/process_memory.py",)),
        Mechanism("IOManager", ("engine/iomanager/io_manager.py",)),
        Mechanism("BinaryRow, TypeSerializer, TypeComparator", ("engine/records/layout.py",), 1),
        Mechanism("sort-merge with normalized keys", ("engine/sort/external_sorter.pyx",), 3),
        Mechanism("hybrid hash join", ("engine/join/hash_join.pyx",)),
    ),
    "Optimizer": (
        Mechanism("enumeration of plans", ("engine/optimizer/plan_enumerator.py",)),
        Mechanism("Costs", ("engine/statistics/costs.py",)),
        Mechanism("estimates of sizes", ("engine/optimizer/estimates.py",), 16),
        Mechanism("ShipStrategyType", ("engine/graph/ship_strategy.py",)),
        Mechanism("ExecutionMode, DataExchangeMode", ("engine/graph/exchange_mode.py",)),
        Mechanism("JoinHint", ("engine/optimizer/join_alternatives.py",)),
        Mechanism("ReplicatingInputFormat", ("engine/optimizer/replication.py",)),
        Mechanism("adaptive batch scheduler, skewed joins", ("engine/adaptive/decisions.py",), 4),
    ),
    "What users write": (
        Mechanism("DataSet, Table", ("engine/api/data_set.py",)),
        Mechanism("SQL", ("engine/statements/query.py",)),
        Mechanism("map, flatMap, reduce, coGroup, rich functions", ("engine/functions/function_body.py",)),
        Mechanism("InputFormat, OutputFormat, Source, Sink: of users", ("engine/functions/function_body.py",), 30),
        Mechanism("InputFormat, OutputFormat: of the engine", ("engine/formats/source_format.py",), 10),
        Mechanism("collect of a DataSet", ("engine/api/results.py",), 18),
        Mechanism("broadcast variables", ("engine/api/functional.py",)),
    ),
}
