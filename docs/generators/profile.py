"""Writes operating/skewed-job.html, the page of a job as an example, and skewed-job.svg, the drawing of its plan."""

import mkdocs_gen_files

from docs.generators.profile_example import example_drawing, example_page

for name, text in (("skewed-job.html", example_page()), ("skewed-job.svg", example_drawing())):
    with mkdocs_gen_files.open(f"operating/{name}", "w") as file:
        file.write(text)
