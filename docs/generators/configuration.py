"""Writes reference/configuration.md: every declared option, from the registry that the engine reads."""

from itertools import groupby

import mkdocs_gen_files

from engine.config.config_option import ConfigOption
from engine.config.options import all_options

_HEAD = """# Configuration

`DREY_*` variables beat `conf/config.yaml`, `-D key=value` beats both, and the script beats all:
`Environment(config={"key": value})`. The variable of a key is in capitals, with `_` for `.` and `-`.
`flink-run config show --describe` prints the effective value of each key and where it comes from.

A value is an option where machines, networks or rules of a site differ, or where a job knows better than the engine.
What the engine can measure or decide by itself is no option: there is none for the sizes of buffers of an operator,
for join strategies or for when rows spill. Each section begins with the reason that its options exist.

"""

#: why the options of a group exist, by the first word of their keys
REASONS = {
    "blob": "Disks of JobManagers differ in size.",
    "client": "Scripts wait for clusters of their own speed, and an engineer of the engine reads whole tracebacks.",
    "cluster": "A site with hundreds of TaskManagers lets them ask a new leader less often.",
    "debug": "Tests of the engine and of your jobs make rare paths frequent; a cluster in use sets none of these.",
    "env": "Log files have the size and the detail that a site keeps.",
    "execution": "The defaults suit jobs that are run once. A job that is run daily, on data that its author knows, "
    "may exchange its rows otherwise, keep its parallelism, or stand still for longer.",
    "functions": "How long a function may take, and whose rights it has, only its author and the site know.",
    "heartbeat": "Networks differ: a shorter time-out finds a lost process sooner, a longer one forgives a pause.",
    "high-availability": "ZooKeeper's addresses, its security and the folder of all JobManagers are the site's.",
    "historyserver": "The history server has an address of its own, and reads the folder as often as a site needs.",
    "io": "Spill goes to the disks that are fast and large.",
    "job": "Who submits a job knows what may wait.",
    "jobmanager": "Addresses, the jobs that run at a time, and how a supervisor starts the process again.",
    "jobstore": "How long ended jobs are kept is the site's to decide.",
    "logging": "Log collectors read JSON, people read text.",
    "optimizer": "Plans of Flink 1.x can be compared with those of today.",
    "parallelism": "The default is the number of processors; a shared machine gives a job fewer.",
    "python": "A debugger needs a function in the task's thread.",
    "rest": "Addresses and ports are the site's.",
    "restart-strategy": "Flink's strategies with Flink's names. How often a failed job is tried again depends on "
    "what it costs, and on who waits for it.",
    "security": "Secrets and certificates are the site's.",
    "slot": "How long a job waits for slots depends on whether TaskManagers are started by need.",
    "spark": "The Spark that runs jobs of `-t spark` is the site's.",
    "table": "A filter that is made while a job runs can be switched off, to see what it saves.",
    "task": "Functions that close connections need a longer time to be cancelled.",
    "taskmanager": "Addresses, ports, slots and memory of a machine. Of memory one number is enough: "
    "`taskmanager.memory.process.size`; the others move the borders within it.",
    "web": "Whoever may see the pages may not be meant to cancel jobs.",
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
