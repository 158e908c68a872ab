"""Writes reference/errors.md: each class of errors, why it is raised, what to do, and a program that raises it."""

import mkdocs_gen_files

from docs.generators.errors_page import errors_page

with mkdocs_gen_files.open("reference/errors.md", "w") as page:
    page.write(errors_page())
