"""The page of a job, made of its profile: one file, without scripts, that loads nothing from anywhere.

    the sentence that names the cause, and what may be done about it
    numbers │ what went wrong │ the plan as a drawing │ attempts over time │ vertices │ decisions │ stores, settings

The same page is the dashboard's and the history server's (with links, and loading itself again while the job runs),
the report that ``job report`` writes, and what ``explain(analyze=True, format="html")`` returns.

Held by: tests/profile/test_profile_page.py
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from engine.profile.cancel_script import CANCEL_SCRIPT
from engine.profile.job_profile import JobProfile
from engine.profile.memory_drawing import STYLE, memory_drawing
from engine.profile.page_view import View
from engine.profile.plan_drawing import plan_drawing
from engine.profile.timeline import timeline
from engine.profile.vertex_sections import vertex_section, vertices_table
from engine.shown_pages import Html, cards, join, link, page, state_badge, table, tag
from engine.shown_quantities import chain_text, count_text, duration_text, time_text
from engine.shown_sizes import size_text

#: seconds after which a page loads itself again, and one more for so many subtasks: a page of many takes long to make
_REFRESH_S, _SUBTASKS_A_SECOND = 3, 2000
_OTHERS = 4
#: states of a job that will end without its result
_ENDING = ("CANCELLING", "FAILING")
#: policy of a page that is opened as a file, as strict as what servers send with it
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = (
    """
:root { --p-slot: #9aa3b2; --p-start: #c4cad4; --p-input: #7dd3fc; --p-buffers: #c4b5fd; --p-function: #f59e0b;
  --p-work: #22a06b; --p-processor: #5eead4; --p-spill: #dc2626; --p-store: #e879a6; --p-disk: #a16207;
  --p-pause: #fca5a5; }
.found { background: var(--soft); border-left: 6px solid var(--bad); border-radius: 6px; margin: 16px 0;
  padding: 12px 18px; }
.found.calm { border-color: var(--good); } .found p { margin: 0; } .found p:first-child { font-size: 19px;
  font-weight: 600; line-height: 1.4; overflow-wrap: anywhere; text-wrap: pretty; }
.found ul { margin: 8px 0 0; padding-left: 20px; }
button { background: var(--back); border: 1px solid var(--bad); border-radius: 6px; color: var(--bad); cursor: pointer;
  font: inherit; min-height: 34px; padding: 4px 12px; } button:focus-visible { outline: 2px solid var(--mark); }
#log pre { max-height: 420px; }
td.number b.bad { display: block; }
.bad { color: var(--bad); } svg text.bad { fill: var(--bad); font-weight: 600; } p.bad { margin: 4px 0; }
section { border-top: 1px solid var(--line); margin-top: 18px; scroll-margin-top: 12px; }
section:target { outline: 3px solid var(--mark); outline-offset: 6px; border-radius: 4px; }
h3 { font-size: 14px; margin: 12px 0 6px; overflow-wrap: anywhere; } section table { width: auto; }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
svg rect.cause { stroke: var(--bad); stroke-width: 3.5; } svg rect.rail, svg rect.part { stroke: none; }
svg rect.rail { fill: var(--line); } svg rect.part { fill: var(--mark); } svg g.off path { stroke: var(--bad);
  stroke-width: 2.5; } svg g.off text { fill: var(--bad); font-weight: 600; } svg a:focus-visible rect:first-of-type {
  stroke: var(--mark); stroke-width: 4; } svg path.tick { stroke: var(--line); } svg.time rect { stroke: none; }
svg.time rect.failed { fill: none; stroke: var(--bad); stroke-width: 2.5; }
svg .label { paint-order: stroke; stroke: var(--back); stroke-width: 3px; }
svg.time, svg.memory { height: auto; min-width: 900px; width: 100%; }
.parts { display: flex; height: 14px; margin: 8px 0; border-radius: 4px; overflow: hidden; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 0 0 8px; padding: 0; }
.legend i { border-radius: 2px; display: inline-block; height: 11px; margin-right: 6px; width: 11px; }
@media (max-width: 600px) { body { padding: 12px; } .found p:first-child { font-size: 16px; }
  .card { flex: 1 1 40%; } h1 { font-size: 19px; } }
@media print { .scroll { overflow: visible; } }
""".strip()
    + STYLE
    + "".join(
        f"\n.p-{name} {{ background: var(--p-{name}); }} svg.time rect.p-{name} {{ fill: var(--p-{name}); }}"
        for name in (
            "slot",
            "start",
            "input",
            "buffers",
            "function",
            "work",
            "processor",
            "spill",
            "store",
            "disk",
            "pause",
        )
    )
)


#: view of a page that stands alone
_ALONE = View()


class ProfilePage(str):
    """A whole page as text, which notebooks show in a frame of its own."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return a frame: the page can neither reach the notebook nor be reached by its styles."""
        return (
            f'<iframe sandbox="" srcdoc="{html.escape(self)}" title="profile of the job" '
            'style="border:0;width:100%;height:720px"></iframe>'
        )


def profile_page(job: JobProfile, view: View = _ALONE) -> ProfilePage:
    """Return the page of a job."""
    content = page(
        f"{job.name} – Drey",
        tag("p", link("/", "← all jobs")) if view.job else "",
        tag("h1", job.name or "(no name)", " ", *_state(job)),
        tag("div", tag("code", job.job_id), f" started {time_text(job.started_at_ms)}", class_="quiet"),
        _refreshing(job, view) if view.job and not job.has_ended else "",
        _cancelling(job, view) if view.job and not job.has_ended else "",
        _found(job),
        _numbers(job),
        _failures(job),
        _log(view),
        tag("h2", "Plan"),
        tag(
            "p",
            "A dashed line: the result is stored before it is read. Red: rows are more than ten times, or less than a "
            "tenth, of what was expected. The bar: the longest subtask's part of the job's time.",
            class_="quiet",
        ),
        plan_drawing(job),
        _section("Time", timeline(job)),
        _section("Memory and spill", memory_drawing(job)),
        _section("Decided while it ran", _decisions(job)),
        tag("h2", "Vertices"),
        vertices_table(job, view),
        *(vertex_section(job, place, view) for place in range(len(job.vertices))),
        _section("Stores", _stores(job)),
        _section("Counted by functions", _counters(job)),
        _settings(job),
        _further(job, view),
        Html(f"<script>{CANCEL_SCRIPT}</script>") if _is_cancellable(job, view) else "",
        refresh_s=_refresh_s(job) if view.refreshes and view.job and not job.has_ended else None,
        style=_STYLE,
        policy="" if _is_cancellable(job, view) else _POLICY,  # the server sends one with a script's hash
    )
    return ProfilePage(content)


def _state(job: JobProfile) -> tuple[object, ...]:
    if not job.waiting:
        return (state_badge(job.state),)
    return (state_badge("WAITING"), " ", tag("span", job.waiting, class_="quiet"))


def _section(title: str, content: Html) -> Html:
    return join((tag("h2", title), content)) if content else Html("")


def _refresh_s(job: JobProfile) -> int:
    return _REFRESH_S + sum(vertex.parallelism for vertex in job.vertices) // _SUBTASKS_A_SECOND


def _refreshing(job: JobProfile, view: View) -> Html:
    address = view.address(view.opened, refreshes=not view.refreshes, log=view.log)
    does = f"loads itself again every {_refresh_s(job)} s" if view.refreshes else "stands still"
    again = link(address, "stop" if view.refreshes else "begin again")
    return tag("div", f"This page {does}: ", again, class_="quiet")


def _is_cancellable(job: JobProfile, view: View) -> bool:
    return bool(view.job) and view.may_cancel and not job.has_ended and job.state not in _ENDING


def _cancelling(job: JobProfile, view: View) -> Html:
    """Return a button where the person that sees the page may cancel the job, else the command that does it."""
    if job.state in _ENDING:
        return Html("")
    if not _is_cancellable(job, view):
        return tag("div", "To cancel it: ", tag("code", f"flink-run job cancel {job.job_id}"), class_="quiet")
    address = f"{view.job}?mode=cancel"
    button = tag("button", "Cancel the job", id="cancel", type_="button", data_address=address)
    return tag("p", button, " ", tag("span", "", id="cancelled", role="status", class_="bad"))


def _log(view: View) -> Html:
    """Return the end of the log file that is open on the page."""
    if not view.log:
        return Html("")
    whole = link(f"{view.job}/logs/{view.log}", "the whole file")
    closed = link(view.address(view.opened, refreshes=view.refreshes), "close")
    return tag(
        "section",
        tag("h2", f"End of {view.log}"),
        tag("pre", view.log_end or "(empty)", tabindex=0),
        tag("p", whole, " · ", closed),
        id="log",
    )


def _found(job: JobProfile) -> Html:
    """Return the sentence that names the cause, and the next ones below it."""
    if not job.causes:
        return Html("")
    first, *others = job.causes
    listed = [tag("li", each.text) for each in others[:_OTHERS]]
    return tag(
        "div",
        tag("p", first.text),
        tag("p", first.advice, class_="quiet") if first.advice else "",
        tag("ul", *listed) if listed else "",
        class_="found calm" if first.kind == "longest" else "found",
        role="note",
        aria_label="what the time went into",
    )


def _numbers(job: JobProfile) -> Html:
    current = [each for vertex in job.vertices for each in vertex.current]
    again = sum(len(vertex.attempts) for vertex in job.vertices) - len(current)
    requests = sum(store.requests for store in job.stores)
    shown = [
        ("duration", duration_text(job.duration_ms)),
        (
            "subtasks finished",
            f"{count_text(sum(each.state == 'FINISHED' for each in current))} of {count_text(len(current))}",
        ),
        ("spilled", size_text(sum(each.spilled_bytes for each in current))),
        ("restarted attempts", count_text(again)),
    ]
    if requests:
        shown.append(("requests to stores", count_text(requests)))
    if len(job.task_managers) > 1:
        shown.append(("TaskManagers", count_text(len(job.task_managers))))
    return cards(shown)


def _failures(job: JobProfile) -> Html:
    listed = [
        tag(
            "details",
            tag(
                "summary",
                f"{time_text(job.started_at_ms + each.time_ms)} {chain_text(each.task or 'the job')}: {each.type_name}",
            ),
            *_failure(each.text),
            **({"open": "open"} if position == 0 else {}),
        )
        for position, each in enumerate(job.failures)
    ]
    return _section("What went wrong", join(listed))


def _failure(text: str) -> Iterator[Html]:
    """Yield the text of a failure, and folded below it its traceback, which is longer than a screen."""
    told, traceback, frames = text.partition("\nTraceback (most recent call last):\n")
    yield tag("pre", told, tabindex=0)
    if frames:
        yield tag("details", tag("summary", "traceback"), tag("pre", traceback.lstrip() + frames, tabindex=0))


def _decisions(job: JobProfile) -> Html:
    if not job.decisions:
        return Html("")
    return tag("ul", *(tag("li", chain_text(decision.text)) for decision in job.decisions))


def _stores(job: JobProfile) -> Html:
    if not job.stores:
        return Html("")
    rows = (
        (each.name, count_text(each.requests), size_text(each.read_bytes), size_text(each.written_bytes))
        for each in job.stores
    )
    return table("requests to stores", ("store*", "requests#", "read#", "written#"), rows)


def _counters(job: JobProfile) -> Html:
    if not job.counters:
        return Html("")
    rows = ((name, count_text(value)) for name, value in job.counters.items())
    return table("counters of functions", ("counter*", "value#"), rows)


def _settings(job: JobProfile) -> Html:
    if not job.settings:
        return Html("")
    rows = ((tag("code", key), value) for key, value in job.settings.items())
    return tag(
        "details",
        tag("summary", f"Settings that came with the job ({len(job.settings)})"),
        table("settings of the job", ("key", "value*"), rows),
    )


def _further(job: JobProfile, view: View) -> Html:
    if not view.job:
        return Html("")
    path = view.job
    processes = [link(f"{path}/log-files", "log files"), " · "] if view.has_processes else []
    documents = (("profile", "/profile"), ("job", ""), ("exceptions", "/exceptions"), ("plan", "/plan"))
    as_json = [part for name, rest in documents for part in (" ", link(f"{path}{rest}", name))]
    return tag("p", *processes, "as JSON:", *as_json)
