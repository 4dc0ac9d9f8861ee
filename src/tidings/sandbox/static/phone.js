// Keeps the sandbox phone live. The server renders all rows and messages; this script inserts them.
"use strict";

const root = document.body.dataset.root;
const at = (id) => document.getElementById(id);
let faults = JSON.parse(at("faults").dataset.faults || "[]").map(timed);

function time(moment, exact) {
  const seconds = exact ? { second: "2-digit" } : {};
  return moment.toLocaleTimeString([], { hour: "numeric", minute: "2-digit", ...seconds });
}

// Show times in the reader's time zone, with the date unless it is today.
function localize(scope) {
  const today = new Date().toDateString();
  for (const stamp of scope.querySelectorAll("time:not([data-local])")) {
    const moment = new Date(stamp.dateTime);
    const inRow = stamp.closest(".row");
    const clock = time(moment, !inRow);
    const day = moment.toLocaleDateString([], { month: "short", day: "numeric" });
    stamp.textContent = moment.toDateString() === today ? clock : inRow ? day : `${day}, ${clock}`;
    stamp.title = moment.toLocaleString();
    stamp.dataset.local = "";
  }
}

function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  localize(template.content);
  return template.content.firstElementChild;
}

function isAtEnd(list) {
  return list.scrollHeight - list.scrollTop - list.clientHeight < 80;
}

function toEnd() {
  const thread = at("thread");
  if (thread) thread.scrollTop = thread.scrollHeight;
}

document.addEventListener("toggle", (event) => {
  const message = event.target.closest(".thread > :last-child");
  if (message) toEnd();
}, true);

// Updates from the stream

async function place(news) {
  if (refreshing) await refreshing; // otherwise the refresh would undo this
  const first = !at("thread") && news.rows.length > 0;
  if (news.counts) showCounts(news.counts);
  if (news.faults) { faults = news.faults.map(timed); showFaults(); }
  if (news.sessions) at("sessions").innerHTML = news.sessions;
  if (first) return refresh();
  const open = at("screen").dataset.key;
  for (const row of news.rows) placeRow(row, open);
  const thread = at("thread");
  if (!thread) return;
  const follow = isAtEnd(thread);
  for (const message of news.messages) {
    if (message.key !== open || thread.querySelector(`[data-n="${message.n}"]`)) continue;
    const item = element(message.html);
    item.classList.add("new");
    thread.append(item);
  }
  while (thread.children.length > 500) thread.firstElementChild.remove();
  if (follow) toEnd();
}

function placeRow({ key, html }, open) {
  const rows = at("rows");
  const row = element(html);
  const old = [...rows.children].find((child) => child.dataset.key === key);
  if (key === open) { row.classList.add("open"); row.setAttribute("aria-current", "true"); }
  if (key !== open) row.classList.add("unread");
  if (old) old.remove();
  rows.prepend(row);
  while (rows.children.length > 201) rows.lastElementChild.remove();
}

function showCounts(counts) {
  for (const cell of document.querySelectorAll("[data-count]")) {
    cell.textContent = counts[cell.dataset.count].toLocaleString("en");
    if (cell.dataset.count === "duplicates") cell.parentElement.classList.toggle("some", counts.duplicates > 0);
  }
}

// Fetch the page again and replace its parts: after a lost stream, a burst, or a selection in the list.

let refreshing = null;
function refresh() {
  // Errors are ignored: the stream shows when the sandbox is unreachable.
  refreshing ??= swap().catch(() => {}).finally(() => { refreshing = null; });
  return refreshing;
}

// Refresh at most once a second: in a burst, every batch asks for it.
let due = null;
let refreshedAt = 0;
function refreshSoon() {
  due ??= setTimeout(() => { due = null; refreshedAt = Date.now(); (refreshing ?? Promise.resolve()).then(refresh); },
    Math.max(0, refreshedAt + 1000 - Date.now()));
}

async function swap() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const sameThread = page.getElementById("screen").dataset.key === at("screen").dataset.key;
  const follow = !sameThread || !at("thread") || isAtEnd(at("thread"));
  const scrolled = at("thread")?.scrollTop;
  const unread = new Set([...document.querySelectorAll(".row.unread")].map((row) => row.dataset.key));
  for (const id of ["rows", "screen", "counts", "whom", "sessions"]) {
    const chosen = at(id).value;
    at(id).replaceWith(document.adoptNode(page.getElementById(id)));
    if (id === "whom" && sameThread && chosen) at(id).value = chosen;
  }
  faults = JSON.parse(page.getElementById("faults").dataset.faults).map(timed);
  document.body.className = page.body.className;
  document.title = page.title;
  for (const row of document.querySelectorAll(".row:not(.open)")) row.classList.toggle("unread", unread.has(row.dataset.key));
  localize(document);
  showFaults();
  if (follow) toEnd(); else at("thread").scrollTop = scrolled;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.row, a.back");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  (refreshing ?? Promise.resolve()).then(refresh);
});
addEventListener("popstate", () => (refreshing ?? Promise.resolve()).then(refresh));

// Faults

function timed(fault) {
  return { ...fault, ends: fault.for_seconds === null ? null : performance.now() + fault.for_seconds * 1000 };
}

function describe(fault) {
  const what = {
    500: "500", 429: `429, Retry-After ${fault.seconds} s`, 404: "404", error: `error ${fault.code}`, slow: `slow by ${fault.seconds} s`,
    lost: "responses lost", cut: "disconnected", drip: `drip for ${fault.seconds} s`, html: "HTML instead of a response",
    huge: "10 MB error page", banned: "account banned", logged_out: "logged out",
  }[fault.kind];
  const rate = fault.rate < 1 ? ` for ${Math.round(fault.rate * 1000) / 10} %` : "";
  const above = fault.per_second ? ` above ${fault.per_second}/s` : "";
  const whom = fault.recipient ? ` for ${fault.recipient}` : "";
  const times = fault.times === null ? "" : fault.times === 1 ? ", once" : `, ${fault.times} times`;
  const left = fault.ends === null ? "" : `, ${Math.max(0, Math.ceil((fault.ends - performance.now()) / 1000))} s left`;
  return what + above + rate + whom + times + left;
}

function showFaults() {
  faults = faults.filter((fault) => fault.ends === null || fault.ends > performance.now());
  const list = at("faults");
  const items = faults.map((fault) => {
    const item = list.querySelector(`[data-id="${fault.id}"]`) ?? faultItem(fault);
    item.firstChild.textContent = describe(fault);
    return item;
  });
  list.replaceChildren(...items);
  at("clear").disabled = faults.length === 0;
}

function faultItem(fault) {
  const item = document.createElement("li");
  item.dataset.id = fault.id;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "×";
  button.setAttribute("aria-label", "Clear this fault");
  button.addEventListener("click", () => send("DELETE", `/sandbox/faults/${fault.id}`));
  item.append(document.createElement("span"), button);
  return item;
}

async function send(method, path, body) {
  const problem = at("problem");
  try {
    const answer = await fetch(root + path, { method, body: body && JSON.stringify(body) });
    problem.textContent = answer.ok || answer.status === 404 ? "" : (await answer.json()).error.message;
  } catch {
    problem.textContent = "The sandbox is not responding. Is it still running?";
  }
}

for (const button of document.querySelectorAll("[data-fault]")) {
  button.addEventListener("click", () => {
    const fault = JSON.parse(button.dataset.fault);
    const screen = at("screen").dataset;
    if (at("long").value) fault.for_seconds = Number(at("long").value);
    if (at("whom").value) { fault.recipient = screen.to; fault.channel = screen.channel; }
    send("POST", "/sandbox/faults", fault);
  });
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-path]");
  if (!button) return;
  const body = JSON.parse(button.dataset.body);
  send("POST", button.dataset.path, body);
  if (body.for_seconds) setTimeout(refreshSoon, body.for_seconds * 1000 + 300); // when the state has ended
});
at("clear").addEventListener("click", () => send("DELETE", "/sandbox/faults"));
at("inbound").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  await send("POST", "/sandbox/said", Object.fromEntries(new FormData(form)));
  form.elements.text.value = "";
  form.elements.text.focus();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-report]");
  if (button) send("POST", "/sandbox/receipts", { n: Number(button.dataset.of), what: button.dataset.report });
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(at(button.dataset.copy).textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(at(button.dataset.copy));
  }
});

// Start

function tick() {
  showFaults();
  at("clock").textContent = time(new Date(), false).replace(/\s*[AP]M$/i, "");
}

function listen() {
  const stream = new EventSource(`${root}/sandbox/stream`);
  const live = at("live");
  stream.addEventListener("open", () => { live.textContent = "live"; live.classList.remove("off"); });
  stream.addEventListener("error", () => { live.textContent = "not running, reconnecting"; live.classList.add("off"); });
  stream.addEventListener("news", (event) => place(JSON.parse(event.data)));
  stream.addEventListener("stale", refreshSoon);
}

localize(document);
toEnd();
tick();
setInterval(tick, 1000);
listen();
