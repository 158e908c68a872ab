"""Writes reference/types.md: what becomes of each type, from the table that tests hold."""

import mkdocs_gen_files

from docs.generators.types_page import types_page

with mkdocs_gen_files.open("reference/types.md", "w") as page:
    page.write(types_page())
