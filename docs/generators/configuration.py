"""Writes reference/configuration.md: every declared option, from the registry that the engine reads."""

from itertools import groupby

import mkdocs_gen_files

from engine.config.config_option import ConfigOption
from engine.config.options import all_options

_HEAD = """# Configuration

`DREY_*` variables beat `conf/config.yaml`, `-D key=value` beats both, and the script beats all:
`Environment(config={"key": value})`. The variable of a key is in capitals, with `_` for `.` and `-`.
`flink-run config show --describe` prints the effective value of each key and where it comes from.

"""


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
        lines += [f"## {title}", ""]
        for option in options:
            lines += _entry(option)
    return "\n".join(lines)


with mkdocs_gen_files.open("reference/configuration.md", "w") as page:
    page.write(_page())
