"""Writes reference/sql.md: functions and forms of SQL, from the tables that tests run."""

import mkdocs_gen_files

from docs.generators.sql_page import sql_page

with mkdocs_gen_files.open("reference/sql.md", "w") as page:
    page.write(sql_page())
