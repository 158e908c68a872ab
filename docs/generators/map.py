"""Writes how-it-works/map.md: mechanisms by name, and every room, module and test with what its header says first."""

from pathlib import Path

import mkdocs_gen_files

from docs.generators.flink_mechanisms import MECHANISMS
from docs.generators.mechanisms import map_page

with mkdocs_gen_files.open("how-it-works/map.md", "w") as page:
    page.write(map_page(Path(__file__).resolve().parents[2], MECHANISMS))
