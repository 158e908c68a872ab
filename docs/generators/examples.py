"""Writes examples/*.md: every job of engine/examples with what it reads, prints and plans, and an index of them."""

import mkdocs_gen_files

from docs.generators.example_pages import example_pages
from docs.generators.example_runs import shown_run

for name, text in example_pages().items():
    with mkdocs_gen_files.open(f"examples/{name}.md", "w") as page:
        page.write(text if name == "index" else f"{text}\n{shown_run(name)}\n")
