"""Writes coming-from/names-*.md: every name of Polars, PySpark and pandas, from the table that a test holds."""

import mkdocs_gen_files

from docs.generators.names_page import PAGES, names_page

for library, path in PAGES.items():
    with mkdocs_gen_files.open(path, "w") as page:
        page.write(names_page(library))
