/* Progressive enhancement: every page works without this script. It adds live updates (SSE with a polling fallback),
   relative times, parsing feedback for times, and form previews. */
"use strict";

const body = document.body;
const clockSkew = Date.parse(body.dataset.now) - Date.now(); // server time minus browser time

/* Times */

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function relative(at) {
  const seconds = (at - Date.now() - clockSkew) / 1000;
  const size = Math.abs(seconds);
  if (size < 1.5) return "now";
  const first = UNITS.findIndex(([, unit]) => size >= unit);
  const [name, unit] = UNITS[first];
  let words = `${Math.floor(size / unit)} ${name}`;
  if (first < 3 && size / unit < 10) {
    const [small, part] = UNITS[first + 1];
    const rest = Math.floor((size % unit) / part);
    if (rest && first < 2) words += ` ${rest} ${small}`;
  }
  return seconds > 0 ? `in ${words}` : `${words} ago`;
}

function tick(root = document) {
  for (const time of root.querySelectorAll("time[data-ago]")) {
    if (!time.title) time.title = time.textContent;
    const at = Date.parse(time.dateTime);
    const words = at - Date.now() - clockSkew < 0 ? `${time.dataset.ago} ${relative(at)}`.trim() : relative(at);
    if (time.textContent !== words) time.textContent = words;
  }
}

tick();
setInterval(tick, 1000);

/* Live fragments */

const liveStatus = document.getElementById("live");

function showStatus(text, isGood) {
  if (!liveStatus) return;
  liveStatus.textContent = text;
  liveStatus.className = isGood ? "live good" : "live bad";
}

function fill(fragments) {
  for (const [id, html] of Object.entries(fragments)) {
    const element = document.getElementById(id);
    if (!element) continue;
    const seen = new Set([...element.querySelectorAll("a.row")].map((row) => row.getAttribute("href")));
    element.innerHTML = html;
    if (seen.size) {
      for (const row of element.querySelectorAll("a.row")) {
        if (!seen.has(row.getAttribute("href"))) row.classList.add("new");
      }
    }
    tick(element);
  }
}

const source = body.dataset.live;

function listen() {
  const stream = new EventSource(source);
  let polling = 0;
  stream.onopen = () => { clearInterval(polling); polling = 0; showStatus("live", true); };
  stream.onmessage = (event) => fill(JSON.parse(event.data));
  stream.onerror = () => {
    showStatus("reconnecting", false);
    if (!polling) polling = setInterval(poll, 3000);
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { clearInterval(polling); listen(); }, 15000);
  };
  addEventListener("pagehide", () => stream.close(), { once: true });
}

async function poll() {
  try {
    const response = await fetch(`${source}?now=1`, { headers: { accept: "application/json" } });
    if (response.status === 401) { location.reload(); return; }
    if (!response.ok) throw new Error(response.status);
    fill(await response.json());
    showStatus("live, every 3 s", true);
  } catch {
    showStatus("engine not responding", false);
  }
}

if (source) {
  if (window.EventSource) listen();
  else setInterval(poll, 3000);
}
addEventListener("pageshow", (event) => { if (event.persisted && source) location.reload(); });

/* Show how a typed time is interpreted */

let hintTimer = 0;

document.addEventListener("input", (event) => {
  const hint = document.getElementById(event.target.dataset.when || "");
  if (!hint) return;
  clearTimeout(hintTimer);
  hintTimer = setTimeout(async () => {
    const text = event.target.value.trim();
    if (!text) { hint.textContent = ""; hint.className = "hint"; return; }
    const response = await fetch(`/when?${new URLSearchParams({ text })}`);
    const parsed = await response.json();
    hint.textContent = parsed.when || parsed.problem;
    hint.className = parsed.when ? "hint good" : "hint bad";
  }, 200);
});

/* Form previews */

let previewTimer = 0;

async function preview(form) {
  const response = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (response.ok) fill(await response.json());
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (!form) return;
  clearTimeout(previewTimer);
  previewTimer = setTimeout(() => preview(form).catch(() => {}), 350);
});

/* Keyboard shortcuts: j and k move through a list, / focuses its filter */

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const field = document.querySelector(".filter input:not([type=hidden])");
    if (field) { event.preventDefault(); field.focus(); }
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("a.row")];
    const next = rows[rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1)];
    if (next) next.focus();
  }
});

/* Buttons */

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-tick]");
  if (!button) return;
  const boxes = [...button.form.querySelectorAll(`input[type=checkbox][name="${button.dataset.tick}"]`)];
  const isOn = boxes.some((box) => !box.checked);
  for (const box of boxes) box.checked = isOn;
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
