"""Writes coming-from/traps.md: names by which others mean something else, from a table that a test holds."""

import mkdocs_gen_files

from docs.generators.trap_rows import trap_page

with mkdocs_gen_files.open("coming-from/traps.md", "w") as page:
    page.write(trap_page())
