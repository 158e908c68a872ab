"""Writes reference/forms.md: defaults of sorts and patterns, decimals of results, texts of values in files."""

import mkdocs_gen_files

from docs.generators.forms_page import forms_page

with mkdocs_gen_files.open("reference/forms.md", "w") as page:
    page.write(forms_page())
