"""Writes how-it-works/rooms.md: every room with its layer and what its header says first."""

from pathlib import Path

import mkdocs_gen_files

from docs.generators.room_page import rooms_page
from tests.tidy.layers import LAYERS

with mkdocs_gen_files.open("how-it-works/rooms.md", "w") as page:
    page.write(rooms_page(Path(__file__).resolve().parents[2], LAYERS))
