"""Writes reference/configuration.md: every declared option, from the registry that the engine reads."""

from itertools import groupby

import mkdocs_gen_files

from engine.config.config_option import ConfigOption
from engine.config.options import all_options

_HEAD = """# Configuration

`DREY_*` variables override `conf/config.yaml`, `-D key=value` overrides both, and the script overrides all of them:
`Environment(config={"key": value})`. The variable of a key is in capitals, with `_` for `.` and `-`.
`flink-run config show --describe` prints the effective value of each key and where it comes from.

Options exist for differences between machines, networks and sites, and for facts about a job that the engine cannot
know. There are none for what the engine measures or decides by itself, such as buffer sizes of operators, join
strategies and the time to spill. Each section begins with the reason for its options.

"""

#: why the options of a group exist, by the first word of their keys
REASONS = {
    "blob": "Disks of JobManagers differ in size.",
    "client": "Clusters recover at different speeds, and developers of the engine need whole tracebacks.",
    "cluster": "With hundreds of TaskManagers, a new leader should be asked less often.",
    "debug": "Tests use these to make rare paths frequent. Do not set them on a cluster in production.",
    "env": "Sites differ in how much they log and keep.",
    "execution": "The defaults suit jobs that run once. For a job that runs daily on known data, another exchange "
    "mode, parallelism or time-out may be better.",
    "flight-sql": "A server for tools has its own token, and as many statements at once as its machine bears.",
    "functions": "Only the author and the site know how long a function may take, and which rights it needs.",
    "heartbeat": "Networks differ: a shorter time-out finds a lost process sooner, a longer one tolerates pauses.",
    "high-availability": "ZooKeeper's addresses and security, and the JobManagers' shared folder, depend on the site.",
    "historyserver": "The history server has its own address, and a refresh interval.",
    "io": "Spilled rows should go to fast and large disks.",
    "job": "Users know which of their jobs may wait, and sites how much a job may take.",
    "jobmanager": "Addresses, the number of running jobs, and restarts of the process.",
    "jobstore": "Sites differ in how long they keep ended jobs.",
    "lineage": "A site either collects lineage or does not.",
    "logging": "Log collectors read JSON, people read text.",
    "opentelemetry": "A receiver of metrics has an address of the site's, or there is none.",
    "optimizer": "Plans can be compared with those of Flink 1.x.",
    "parallelism": "The default is the number of processors; a shared machine gives a job fewer.",
    "python": "A debugger needs a function in the task's thread.",
    "rest": "Addresses and ports depend on the site.",
    "restart-strategy": "Flink's strategies, with Flink's names. The right number of restarts depends on the cost of "
    "the job and its urgency.",
    "security": "Secrets and certificates depend on the site.",
    "slot": "The right time-out depends on whether TaskManagers are started on demand.",
    "spark": "The Spark cluster for `-t spark` depends on the site.",
    "sql": "Statements of strangers should not name files. How many rounds a recursive query may take depends on its "
    "data: the length of a path, the depth of a tree.",
    "storage": "Endpoints and credentials of object stores depend on the site. They travel with no job: each process "
    "has its own.",
    "table": "Runtime filters can be switched off, to measure their effect.",
    "task": "Functions that close connections may need more time when they are cancelled.",
    "taskmanager": "Addresses, ports, slots, memory and disk of a machine. Of memory, `taskmanager.memory.process.size`"
    " is enough; the other options change how it is divided.",
    "user": "Sites differ in how much of a cluster one user may take.",
    "web": "Readers of the pages need not be allowed to cancel jobs.",
}


def _group(option: ConfigOption) -> str:
    return option.key.partition(".")[0]


def _entry(option: ConfigOption) -> list[str]:
    kind = option.kind + (f", one of {', '.join(map(str, option.choices))}" if option.choices else "")
    least = f", at least {option.minimum:g}" if option.minimum is not None else ""
    default = f"`{option.default}`" if option.default is not None else "none"
    text = option.description.replace("<", "&lt;").replace("*", "\\*")
    return [f"### `{option.key}`", "", f"{text}", "", f"Type: {kind}{least}. Default: {default}.", ""]


def _page() -> str:
    lines = [_HEAD]
    for title, options in groupby(all_options(), _group):
        lines += [f"## {title}", "", REASONS[title], ""]
        for option in options:
            lines += _entry(option)
    return "\n".join(lines)


with mkdocs_gen_files.open("reference/configuration.md", "w") as page:
    page.write(_page())
