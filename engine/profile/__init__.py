"""The profile of a job: one document about a run, and the page that is made of it.

    JobDetails ──profile_of()──► JobProfile ──┬─ causes_of()     sentences that name what the time went into
                                              ├─ JSON            GET /jobs/ID/profile, job report ID --json
                                              └─ profile_page()  HTML: the dashboard, the history server,
                                                                 explain(analyze=True, format="html"), job report ID

job_profile.py      JobProfile: the document
profile_making.py   profile_of(): JobDetails as a JobProfile
time_parts.py       what the time of an attempt went into
finding.py          what rules find, and how they say it
spreads.py          least, median and largest of the subtasks of a vertex
causes.py           the table of rules that find a cause; cause_rules.py, wait_rules.py: the rules
profile_page.py     the page: its head, failures, decisions, settings
vertex_sections.py  what it says of each vertex
page_view.py        where it is shown, and what is open on it
cancel_script.py    its only script: the button that cancels a job
plan_drawing.py     the plan as a drawing
timeline.py         attempts over time
memory_drawing.py   memory and spill over time

Everything is a pure function of plain data: it asks no component, and a page says the same wherever it is made.
"""
