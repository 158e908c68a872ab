"""Writes reference/dialects.md: what is answered of each dialect, from the tables that tests hold."""

import mkdocs_gen_files

from docs.generators.dialects_page import dialects_page

with mkdocs_gen_files.open("reference/dialects.md", "w") as page:
    page.write(dialects_page())
