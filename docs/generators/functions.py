"""Writes reference/functions.md: every function of expressions, from the table that plans are checked with."""

import mkdocs_gen_files

from docs.generators.function_page import function_page

with mkdocs_gen_files.open("reference/functions.md", "w") as page:
    page.write(function_page())
