/* Comfort only: every page works without this file. It keeps a page live, times relative, says how a time in
   words is understood, and shows what a form would do. */
"use strict";

const body = document.body;
const ahead = Date.parse(body.dataset.now) - Date.now(); // how far the server's clock is ahead of ours

/* Times */

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function away(at) {
  const seconds = (at - Date.now() - ahead) / 1000;
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
    const words = at - Date.now() - ahead < 0 ? `${time.dataset.ago} ${away(at)}`.trim() : away(at);
    if (time.textContent !== words) time.textContent = words;
  }
}

tick();
setInterval(tick, 1000);

/* Live fragments */

const state = document.getElementById("state");

function say(words, isGood) {
  if (!state) return;
  state.textContent = words;
  state.className = isGood ? "state good" : "state bad";
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
  stream.onopen = () => { clearInterval(polling); polling = 0; say("live", true); };
  stream.onmessage = (event) => fill(JSON.parse(event.data));
  stream.onerror = () => {
    say("reconnecting", false);
    if (!polling) polling = setInterval(poll, 3000);
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { clearInterval(polling); listen(); }, 15000);
  };
  addEventListener("pagehide", () => stream.close(), { once: true });
}

async function poll() {
  try {
    const answer = await fetch(`${source}?now=1`, { headers: { accept: "application/json" } });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) throw new Error(answer.status);
    fill(await answer.json());
    say("live, every 3 s", true);
  } catch {
    say("the engine does not answer", false);
  }
}

if (source) {
  if (window.EventSource) listen();
  else setInterval(poll, 3000);
}
addEventListener("pageshow", (event) => { if (event.persisted && source) location.reload(); });

/* A time in words, told back while it is being typed */

let asking = 0;

document.addEventListener("input", (event) => {
  const heard = document.getElementById(event.target.dataset.when || "");
  if (!heard) return;
  clearTimeout(asking);
  asking = setTimeout(async () => {
    const text = event.target.value.trim();
    if (!text) { heard.textContent = ""; heard.className = "heard"; return; }
    const answer = await fetch(`/when?${new URLSearchParams({ text })}`);
    const told = await answer.json();
    heard.textContent = told.when || told.problem;
    heard.className = told.when ? "heard good" : "heard bad";
  }, 200);
});

/* What a form would do, shown while it is being filled in */

let showing = 0;

async function preview(form) {
  const answer = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (answer.ok) fill(await answer.json());
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (!form) return;
  clearTimeout(showing);
  showing = setTimeout(() => preview(form).catch(() => {}), 350);
});

/* Keys: j and k walk through a list, / goes to its filter */

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
