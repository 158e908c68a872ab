"""The overview: what the cluster does, its jobs with a search, its TaskManagers and JobManagers. Pure.

    Snapshot, OverviewQuery ─► overview_parts -> HTML by the id of its element ─► overview_page, and events (the feed)

A reader on a phone has the columns that matter there; others scroll. All that can be pressed is a link or a field.

Held by: tests/rest/test_overview.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.gateways.job_queue import waiting_text
from engine.gateways.messages import JobOverview
from engine.gateways.task_executors import TaskExecutorList, TaskExecutorOverview
from engine.insight.disk_watch import DISK_COUNTED, DISK_FREE, DISK_LIMIT, DISK_USED
from engine.rest.cluster_routes import overview_document
from engine.rest.job_document import ENDED_JOB_STATES, duration_ms
from engine.rest.job_progress import left_text, progress_of
from engine.rest.overview_feed import Snapshot
from engine.rest.overview_query import STATES, WITHIN, Chosen, OverviewQuery
from engine.rest.overview_script import SCRIPT
from engine.shown_pages import Html, cards, join, link, page, state_badge, table, tag
from engine.shown_quantities import count_text, duration_text, time_text
from engine.shown_sizes import size_text

_REFRESH_S = 3
_STYLE = """
form { align-items: end; display: flex; flex-wrap: wrap; gap: 8px 12px; margin: 8px 0 12px; }
form label { color: var(--quiet); display: grid; font-size: 12px; gap: 2px; }
input, select, button { background: var(--back); border: 1px solid var(--quiet); border-radius: 6px;
  color: var(--text); font: inherit; min-height: 34px; padding: 4px 8px; }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 1px; }
progress { accent-color: var(--going); height: 8px; vertical-align: middle; width: 90px; }
.bad { color: var(--bad); font-weight: 600; } #live { float: right; }
nav { display: flex; gap: 16px; margin: 10px 0; }
@media (max-width: 640px) { .card { padding: 6px 10px; } progress { width: 60px; }
  .jobs td.fixed, .workers td.number { white-space: normal; }
  .jobs td:nth-child(n+4), .jobs th:nth-child(n+4), .workers td:nth-child(n+6), .workers th:nth-child(n+6) {
    display: none; }
  td.name { min-width: 110px; } form label { flex: 1 1 40%; } input, select { min-height: 44px; width: 100%; } }
""".strip()
_TIMES = {"1h": "the last hour", "24h": "the last day", "7d": "the last week"}


def overview_page(snapshot: Snapshot, query: OverviewQuery, *, is_history: bool = False) -> Html:
    """Return the whole page."""
    parts = overview_parts(snapshot, query, is_history=is_history)
    overview = overview_document(snapshot.executors, snapshot.jobs)
    title = "Drey: jobs that have ended" if is_history else "Drey"
    sections = (
        tag("h2", "Jobs"),
        _filters(query),
        _part("jobs", parts),
        *(() if is_history else (tag("h2", "TaskManagers"), _part("workers", parts))),
        *(() if is_history else (tag("h2", "JobManagers"), _part("managers", parts))),
    )
    return page(
        "History – Drey" if is_history else "Drey",
        tag("span", "", id="live", class_="quiet", role="status"),
        tag("h1", title),
        tag("div", f"version {overview['flink-version']}, protocol {overview['protocol']}", class_="quiet"),
        _part("cards", parts),
        *sections,
        Html(f"<script>{SCRIPT}</script>"),
        head=(
            Html(f"<style>{_STYLE}</style>"),
            Html(f'<noscript><meta http-equiv="refresh" content="{_REFRESH_S}"></noscript>'),
        ),
    )


def overview_parts(snapshot: Snapshot, query: OverviewQuery, *, is_history: bool = False) -> dict[str, Html]:
    """Return the parts that change, by the id of their element."""
    chosen = query.choose(snapshot.jobs.jobs, snapshot.now_ms)
    parts = {"cards": _cards(snapshot, is_history=is_history), "jobs": _jobs(chosen, query, snapshot.now_ms)}
    if not is_history:
        parts["workers"] = _workers(snapshot)
        parts["managers"] = _managers(snapshot)
    return parts


def _part(name: str, parts: Mapping[str, Html]) -> Html:
    return tag("div", parts[name], id=name, class_=name if name != "cards" else "parts")


def _cards(snapshot: Snapshot, *, is_history: bool) -> Html:
    overview = overview_document(snapshot.executors, snapshot.jobs)
    ended = (("finished", "jobs-finished"), ("failed", "jobs-failed"), ("cancelled", "jobs-cancelled"))
    of_history = [(label, overview[name]) for label, name in ended]
    if is_history:
        return cards(of_history)
    present = (("TaskManagers", "taskmanagers"), ("slots", "slots-total"), ("free slots", "slots-available"))
    waits = [snapshot.now_ms - job.start_ms for job in snapshot.jobs.jobs if job.waiting is not None]
    going_on = [job for job in snapshot.jobs.jobs if job.status not in ENDED_JOB_STATES]
    numbers: list[tuple[str, object]] = [(label, overview[name]) for label, name in present]
    numbers += [("running jobs", len(going_on) - len(waits)), ("waiting jobs", len(waits))]
    if waits:
        numbers.append(("longest wait", duration_text(max(waits))))
    return cards([*numbers, *of_history])


def _filters(query: OverviewQuery) -> Html:
    """Return the form that makes the address of the page; without a script it has to be sent."""
    fields = (
        _field("name", "name or id, key /", query.name, type_="search"),
        _field("user", "user", query.user),
        _choice("state", "state", query.state, {each: each.lower() for each in STATES}),
        _choice("within", "running or ended in", query.within, {each: _TIMES[each] for each in WITHIN}),
        tag("button", "Search"),
    )
    return tag("form", *fields, id="filters", role="search", action="/", aria_label="jobs")


def _field(name: str, label: str, value: str, type_: str = "text") -> Html:
    written = tag("input", type_=type_, id=name, name_=name, value=value, autocomplete="off")
    return tag("label", label, Html(written.removesuffix("</input>")))


def _choice(name: str, label: str, value: str, choices: Mapping[str, str]) -> Html:
    options = (
        tag("option", text, value=key, **({"selected": ""} if key == value else {}))
        for key, text in {"": "any", **choices}.items()
    )
    return tag("label", label, tag("select", *options, id=name, name_=name))


def _jobs(chosen: Chosen, query: OverviewQuery, now_ms: int) -> Html:
    if not chosen.total:
        return tag("p", "No job is known yet.", class_="quiet")
    said = f"{count_text(chosen.fitting)} of {count_text(chosen.total)} jobs"
    if chosen.fitting < chosen.total or query != OverviewQuery(page=query.page):
        said = f"{said} fit"
    everything = [] if query == OverviewQuery(page=query.page) else [" · ", link("/", "show all")]
    shown = [tag("p", said, *everything, class_="quiet")]
    if chosen.jobs:
        has_users = any(job.user for job in chosen.jobs)
        heads = ("job*", "state", "progress!", *(("user",) if has_users else ()), "started!", "duration#", "id")
        shown.append(table("jobs", heads, (_job(job, now_ms, has_users=has_users) for job in chosen.jobs)))
    if chosen.pages > 1:
        shown.append(_pages(chosen, query))
    return join(shown)


def _pages(chosen: Chosen, query: OverviewQuery) -> Html:
    number = chosen.page
    steps = [tag("span", f"page {number} of {chosen.pages}", class_="quiet")]
    if number > 1:
        steps.insert(0, link(query.address(page=number - 1), "← earlier page"))
    if number < chosen.pages:
        steps.append(link(query.address(page=number + 1), "next page →"))
    return tag("nav", *steps, aria_label="pages of jobs")


def _job(job: JobOverview, now_ms: int, *, has_users: bool) -> tuple[object, ...]:
    waiting = job.waiting
    badge = state_badge(job.status)
    if waiting is not None:
        badge = join((state_badge("WAITING"), " ", tag("span", waiting_text(waiting), class_="quiet")))
    return (
        link(f"/jobs/{job.job_id}/page", job.name or "(no name)"),
        badge,
        _progress(job, now_ms),
        *((_user(job),) if has_users else ()),
        time_text(job.start_ms),
        duration_text(duration_ms(job.start_ms, job.end_ms, now_ms)),
        tag("code", job.job_id),
    )


def _user(job: JobOverview) -> object:
    return link(OverviewQuery(user=job.user).address(), job.user) if job.user else ""


def _progress(job: JobOverview, now_ms: int) -> object:
    progress = progress_of(job, now_ms)
    if progress is None:
        return ""
    counted = f"{count_text(progress.finished)} of {count_text(progress.total)}"
    if job.status in ENDED_JOB_STATES or job.waiting is not None:
        return counted
    bar = tag("progress", max=100, value=progress.percent, aria_label=f"{progress.percent} % of {job.name}")
    share = f" {progress.percent}\u00a0% · {counted}"
    if job.status != "RUNNING":
        return join((bar, share))
    left = tag("div", left_text(progress.left_ms), class_="quiet", title=f"at the rate of {counted} subtasks")
    return join((bar, share, left))


def _workers(snapshot: Snapshot) -> Html:
    executors: TaskExecutorList = snapshot.executors
    if not executors.task_executors:
        return tag("p", "No TaskManager is registered: bin/taskmanager.sh start", class_="quiet")
    heads = (
        "TaskManager",
        "free slots#",
        "tasks#",
        "memory#",
        "free disk#",
        "managed memory#",
        "host",
        "version",
        "last heard of#",
        "its log",
    )
    rows = (_worker(each, snapshot.used.get(each.resource_id.value, {}), snapshot) for each in executors.task_executors)
    return table("TaskManagers", heads, rows)


def _worker(executor: TaskExecutorOverview, used: Mapping[str, float], snapshot: Snapshot) -> tuple[object, ...]:
    path = f"/taskmanagers/{executor.resource_id}"
    managed = size_text(executor.hardware.managed_memory)
    if "Status.Memory.Managed.Used" in used:
        managed = f"{size_text(used['Status.Memory.Managed.Used'])} of {managed}"
    silent = tag("span", "does not answer", class_="bad")
    resident = used.get("Status.Process.Memory.Resident")
    versions = {each.program.version for each in snapshot.executors.task_executors}
    return (
        link(f"{path}/page", executor.resource_id.value[:8]),
        f"{executor.free_slot_count} of {executor.slot_count}",
        count_text(int(used["Status.Tasks.Running"])) if "Status.Tasks.Running" in used else "",
        size_text(resident) if resident is not None else silent,
        _free_disk(used),
        managed,
        executor.hardware.host or executor.address,
        tag("span", executor.program.version, **({"class_": "bad"} if len(versions) > 1 else {})),
        f"{duration_text(max(0, snapshot.now_ms - executor.seen_ms))} ago",
        link(f"{path}/log", "log"),
    )


def _free_disk(used: Mapping[str, float]) -> object:
    """Return the free bytes of the fullest of a process's disks, or of its limits."""
    shares: list[tuple[float, float, str]] = []
    for name, free in used.items():
        folder = name.removeprefix(DISK_FREE)
        if folder != name:
            size = free + used.get(f"{DISK_USED}{folder}", 0.0)
            shares.append((free / size if size else 0.0, free, folder))
        folder = name.removeprefix(DISK_LIMIT)
        if folder != name:
            left = free - used.get(f"{DISK_COUNTED}{folder}", 0.0)
            shares.append((left / free, left, f"limit of {folder}"))
    if not shares:
        return ""
    share, free, folder = min(shares)
    kind = {"class_": "bad"} if share < 0.1 else {}
    of_limit = " of limit" if folder.startswith("limit of ") else ""
    return tag("span", f"{size_text(free)} ({int(share * 100)} %){of_limit}", title=folder, **kind)


def _managers(snapshot: Snapshot) -> Html:
    own = snapshot.own
    lines: list[object] = [link("/jobmanager/page", "the JobManager that leads: configuration, log files, threads")]
    if own.get("Status.Leader.Epoch"):
        lines.append(f"it leads under epoch {int(own['Status.Leader.Epoch'])}")
    if "Status.ZooKeeper.Connected" in own:
        has_quorum = bool(own["Status.ZooKeeper.Connected"])
        lines.append(
            "connected to ZooKeeper" if has_quorum else tag("span", "no connection to ZooKeeper", class_="bad")
        )
    lines.extend(_standbys(snapshot.job_managers))
    return tag("ul", *(tag("li", line) for line in lines))


def _standbys(job_managers: Iterable[tuple[str, bool]]) -> list[object]:
    there = [address for address, answers in job_managers if answers]
    gone = [address for address, answers in job_managers if not answers]
    lines: list[object] = []
    if there:
        lines.append(f"standing by: {', '.join(there)}")
    if gone:
        lines.append(tag("span", f"of conf/masters, not there: {', '.join(gone)}", class_="bad"))
    return lines
