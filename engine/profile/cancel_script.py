"""The script behind the button that cancels a job: it asks the person, and then the server.

    button ─► confirm ─► PATCH /jobs/ID?mode=cancel ─► the page again, or what the server says

A form cannot send PATCH, and what a page of another site sends is refused before it comes to that. The page has the
script only where the person that sees it may cancel the job, and its hash is in the policy of that page alone.

Held by: tests/rest/test_job_page.py
"""

from __future__ import annotations

import base64
import hashlib

CANCEL_SCRIPT = """
(() => {
  "use strict";
  const button = document.getElementById("cancel"), said = document.getElementById("cancelled");
  button.addEventListener("click", async () => {
    if (!confirm("Cancel this job? What it has done is lost.")) return;
    button.disabled = true;
    try {
      const answer = await fetch(button.dataset.address, {method: "PATCH"});
      if (answer.ok) { location.reload(); return; }
      const text = await answer.text();
      try { said.textContent = JSON.parse(text).errors[0]; } catch { said.textContent = text; }
    } catch (error) { said.textContent = String(error); }
    button.disabled = false;
  });
})();
"""

#: source of the script as the policy names it
CANCEL_HASH = "sha256-" + base64.b64encode(hashlib.sha256(CANCEL_SCRIPT.encode()).digest()).decode()
