"""The script of the overview: it replaces parts of the page by those that the server sends, and searches while typing.

    EventSource(/overview/events?<query>) ─► {"jobs": "<div>...", "cards": ...} ─► innerHTML of the elements of that id

The server makes all HTML, escaped; the script makes none. Its hash is in the Content-Security-Policy, so that no other
script runs. What a person has focused or selected stays so. Without a script the page loads itself again.

Keys: ``/`` goes to the search, Escape empties it.

Held by: tests/rest/test_overview.py
"""

from __future__ import annotations

import base64
import hashlib

SCRIPT = """
(() => {
  "use strict";
  const form = document.getElementById("filters"), search = document.getElementById("name");
  const live = document.getElementById("live");
  let source = null, timer = 0;
  const say = (text) => { if (live.textContent !== text) live.textContent = text; };
  const path = () => {
    const query = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...query]) if (!value) query.delete(name);
    return query.toString() ? "?" + query : "";
  };
  const isSelected = (part) => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  };
  const replace = (part, content) => {
    if (isSelected(part)) return;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const key = focused && (focused.getAttribute("href") || focused.getAttribute("aria-label"));
    const scrolled = [...part.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    part.innerHTML = content;
    [...part.querySelectorAll(".scroll")].forEach((each, n) => { each.scrollLeft = scrolled[n] || 0; });
    if (!key) return;
    for (const each of part.querySelectorAll("a, [tabindex]"))
      if (key === (each.getAttribute("href") || each.getAttribute("aria-label"))) { each.focus(); break; }
  };
  const listen = () => {
    if (source) source.close();
    source = new EventSource("/overview/events" + location.search);
    source.onopen = () => say("live");
    source.onmessage = (event) => {
      for (const [id, content] of Object.entries(JSON.parse(event.data))) {
        const part = document.getElementById(id);
        if (part) replace(part, content);
      }
      say("live");
    };
    source.onerror = () => {
      say("not connected");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
    };
  };
  const ask = () => { history.replaceState(null, "", location.pathname + path()); listen(); };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 250); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); ask(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select")) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && event.target === search) { search.value = ""; ask(); }
  });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  listen();
})();
"""

#: source of the script as the policy names it
SCRIPT_HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
