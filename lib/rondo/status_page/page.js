"use strict";
// SPDX-License-Identifier: MIT
// The page draws what the control server tells it once a second. It asks for nothing else, and keeps nothing.
const SAMPLES = 300, SLOW_MS = 5000, STUCK_MS = 2000, LINES = 300, WINDOW = 10, AGAIN_MS = 3000;
const byId = (id) => document.getElementById(id);
const place = { samples: [], lives: [], log: [], stats: null, before: null, clients: new Map(), paused: false, heard: 0 };

// ---- words and numbers ----

const whole = (number) => Math.round(number).toLocaleString("en");
function rate(number) { return number >= 10 ? whole(number) : number.toFixed(1); }
function time(us) {
  if (us === null) return "–";
  if (us < 1000) return Math.round(us) + " µs";
  if (us < 1e6) return (us < 1e4 ? (us / 1000).toFixed(1) : Math.round(us / 1000)) + " ms";
  if (us < 6e7) return (us < 1e7 ? (us / 1e6).toFixed(1) : Math.round(us / 1e6)) + " s";
  return span(us / 1e6);
}
function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s / 60) % 60 + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s / 3600) % 24 + " h";
}
function memory(bytes) { return bytes < 2 ** 30 ? whole(bytes / 2 ** 20) + " MiB" : (bytes / 2 ** 30).toFixed(1) + " GiB"; }
const STATES = {
  inside: "in the application", client: "waits for its client", answering: "sends its answer",
  hung: "hangs", thread: "waits for a thread", turn: "waits for others of its connection",
};

// ---- elements ----

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}
function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function pair(term, value, look) {
  return el("div", look ? { class: look } : {}, el("dt", {}, term), el("dd", {}, ...[].concat(value)));
}

// ---- the numbers of /stats ----

function workersOf(stats) {
  if (!stats.worker_status) return [{ index: 0, ...stats.rondo }];
  return stats.worker_status.map((one) => ({ index: one.index, ...one.rondo }));
}
function stuck(worker, now) {
  if (worker.state !== "ready" || !worker.busy) return false;
  const full = worker.busy >= worker.max_threads || worker.standing_in === 1;
  return full && worker.ruby_turn_ms > 0 && now - worker.ruby_turn_ms >= STUCK_MS;
}
const sum = (rows, name) => rows.reduce((all, row) => all + (row[name] || 0), 0);
function added(samples, name) { return sum(samples, name); }
function counts(samples, name) {
  const all = new Array(place.stats.bounds_us.length + 1).fill(0);
  for (const sample of samples) for (const [bucket, count] of sample[name]) all[bucket] += count;
  return all;
}
function percentile(all, part, bounds) {
  const total = all.reduce((a, b) => a + b, 0);
  if (!total) return null;
  const rank = Math.max(1, Math.ceil(total * part));
  let below = 0;
  for (let i = 0; i < all.length; i++) {
    if (below + all[i] >= rank) {
      const low = i ? bounds[i - 1] : 0, high = bounds[i];
      return high === undefined ? low : low + (high - low) * (rank - below) / all[i];
    }
    below += all[i];
  }
  return null;
}

// ---- the parts of the page ----

function line(values) {
  const most = Math.max(1, ...values), shown = values.slice(-SAMPLES);
  const points = shown.map((value, i) => `${SAMPLES - shown.length + i},${25 - 23 * value / most}`).join(" ");
  return svg("svg", { viewBox: `0 0 ${SAMPLES} 26`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points }));
}
function tile(name, value, more, values) {
  const shown = el("dd", {}, value, more ? el("small", {}, " " + more) : null, values ? line(values) : null);
  return el("div", {}, el("dt", {}, name), shown);
}
function drawTiles(stats, workers) {
  const last = place.samples.slice(-WINDOW), all = place.samples, bounds = stats.bounds_us;
  const seconds = Math.max(1, last.length), wait = counts(last, "wait"), inside = counts(last, "duration");
  const other = (stats.master_rss_bytes || 0) + (stats.mold_rss_bytes || 0);
  byId("tiles").replaceChildren(
    tile("Requests per second", rate((added(last, "requests") + added(last, "static_answers")) / seconds), "", all.map((s) => (s.requests || 0) + (s.static_answers || 0))),
    tile("Wait p99", time(percentile(wait, .99, bounds)), "p50 " + time(percentile(wait, .5, bounds)), all.map((s) => percentile(counts([s], "wait"), .99, bounds) || 0)),
    tile("In the application p99", time(percentile(inside, .99, bounds)), "p50 " + time(percentile(inside, .5, bounds)), all.map((s) => percentile(counts([s], "duration"), .99, bounds) || 0)),
    tile("Calls inside", sum(workers, "busy"), "of " + sum(workers, "max_threads"), all.map((s) => s.busy || 0)),
    tile("Queue", sum(workers, "queue"), queued(stats), all.map((s) => s.queue || 0)),
    tile("Connections", whole(sum(workers, "connections")), "", all.map((s) => s.connections || 0)),
    tile("Memory", memory(sum(workers, "rss_bytes") + other), ""));
}
function queued(stats) {
  const known = stats.accept_queues.filter((one) => one.depth !== null);
  return known.length ? "kernel " + sum(known, "depth") : "";
}

function seat(name) { return el("i", { class: name }); }
function ageOf(call, now) { return Math.max(0, now - (call.state === "client" && call.client_since_ms || call.since_ms)); }
// A process looks at its calls four times a second. What it saw is that old, unless it cannot look any more.
function seenAt(worker, now) { return now - worker.seen_ms < 1000 ? worker.seen_ms : now; }
function lookOf(call, now) {
  if (call.state === "hung") return "hung";
  return ageOf(call, now) >= SLOW_MS ? call.state + " slow" : call.state;
}
function seats(worker, calls, now) {
  const inside = calls.filter((call) => call.state !== "thread" && call.state !== "turn");
  const shown = Math.min(worker.max_threads, 64), made = inside.slice(0, shown).map((call) => seat(lookOf(call, now)));
  while (made.length < Math.min(worker.busy, shown)) made.push(seat("other"));
  while (made.length < shown) made.push(seat("idle"));
  const label = `${worker.busy} of ${worker.max_threads} calls inside the application`;
  return el("div", { class: "seats", role: "img", "aria-label": label }, ...made);
}
function callItem(call, now) {
  const state = call.state === "answering" ? `sends its answer (${call.status})` : STATES[call.state] || call.state;
  return el("li", { class: lookOf(call, now) }, el("b", {}, ageOf(call, now) ? time(ageOf(call, now) * 1000) : "< 1 ms"),
    el("span", { title: call.request }, call.request), el("em", {}, state + (call.client ? " · " + call.client : " · its client has left")));
}
function moreThan(worker, calls) {
  const more = worker.busy + (worker.waiting || 0) - calls.length;
  return more > 0 && calls.length ? el("li", {}, el("b", {}, ""), el("em", {}, `and ${more} more`)) : null;
}
function workerBox(worker, stats) {
  const now = stats.time_ms, calls = worker.calls || [], isStuck = stuck(worker, now);
  const state = isStuck ? "stuck" : worker.state;
  const facts = `${worker.connections} connections · queue ${worker.queue} · ${memory(worker.rss_bytes)}`;
  const why = isStuck ? `No call has returned to Ruby for ${time((now - worker.ruby_turn_ms) * 1000)}.` : null;
  const title = stats.worker_status ? `Worker ${worker.index}` : "This process";
  const seen = seenAt(worker, now);
  return el("div", { class: "worker " + state },
    el("div", {}, el("h3", {}, title + " ", el("span", { class: "badge " + state }, state)),
      el("p", {}, `pid ${worker.pid} · generation ${worker.generation} · ${span((now - worker.started_ms) / 1000)}`), el("p", {}, facts)),
    el("div", {}, seats(worker, calls, seen), why ? el("p", {}, why) : null,
      calls.length ? el("ul", {}, ...calls.map((call) => callItem(call, seen)), moreThan(worker, calls)) : el("p", {}, "No request is inside, none waits.")));
}

function heat(name, stats) {
  const canvas = byId(name), dots = window.devicePixelRatio || 1;
  const width = Math.max(1, canvas.clientWidth), height = canvas.clientHeight, left = 52, rows = stats.bounds_us.length + 1;
  canvas.width = width * dots; canvas.height = height * dots;
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft");
  pen.scale(dots, dots);
  const step = (width - left) / SAMPLES, high = (height - 14) / rows, y = (us) => {
    const row = us <= stats.bounds_us[0] ? us / stats.bounds_us[0] : Math.min(rows, 1 + Math.log2(us / stats.bounds_us[0]));
    return height - 14 - row * high;
  };
  const most = Math.max(1, ...place.samples.flatMap((sample) => sample[name].map((pair) => pair[1])));
  const from = SAMPLES - place.samples.length;
  place.samples.forEach((sample, i) => sample[name].forEach(([bucket, count]) => {
    pen.fillStyle = `rgba(${style.getPropertyValue("--heat")}, ${.12 + .88 * Math.log2(1 + count) / Math.log2(1 + most)})`;
    pen.fillRect(left + (from + i) * step, height - 14 - (bucket + 1) * high, Math.max(1, step), Math.max(1, high - .5));
  }));
  [[.5, "--good"], [.95, "--warm"], [.99, "--bad"]].forEach(([part, color]) => {
    pen.strokeStyle = style.getPropertyValue(color); pen.lineWidth = 1.4; pen.beginPath();
    let down = false;
    place.samples.forEach((sample, i) => {
      const at = percentile(counts(place.samples.slice(Math.max(0, i - WINDOW + 1), i + 1), name), part, stats.bounds_us);
      if (at === null) { down = false; return; }
      const x = left + (from + i + .5) * step;
      down ? pen.lineTo(x, y(at)) : pen.moveTo(x, y(at)); down = true;
    });
    pen.stroke();
  });
  pen.fillStyle = ink; pen.font = "11px system-ui, sans-serif"; pen.textAlign = "right";
  for (const us of [100, 1000, 10000, 100000, 1e6, 1e7]) pen.fillText(time(us), left - 6, y(us) + 4);
  pen.textAlign = "left"; pen.fillText("5 minutes ago", left, height - 2); pen.textAlign = "right"; pen.fillText("now", width, height - 2);
  const recent = counts(place.samples.slice(-WINDOW), name), words = [.5, .95, .99].map((part) => `p${part * 100} ${time(percentile(recent, part, stats.bounds_us))}`).join(", ");
  byId(name + "-now").textContent = words;
  canvas.setAttribute("aria-label", `${name === "wait" ? "Waits for the application" : "Time in the application"} over five minutes; in the last ten seconds ${words}`);
}

// ---- fairness ----

function takeClients(workers, now) {
  for (const worker of workers) {
    if (!worker.clients_end_ms) continue;
    const key = worker.pid + "/" + worker.clients_end_ms;
    if (!place.clients.has(key)) place.clients.set(key, { end: worker.clients_end_ms, ms: worker.clients_ms, busiest: worker.busiest, longest: worker.longest });
  }
  for (const [key, period] of place.clients) if (now - period.end > WINDOW * 1000) place.clients.delete(key);
}
function merge(name) {
  const all = new Map();
  for (const period of place.clients.values()) for (const one of period[name]) {
    const key = one.client || "gone", row = all.get(key) || { client: key, requests: 0, longest_us: 0, waits: one.waits.map(() => 0) };
    row.requests += one.requests; row.longest_us = Math.max(row.longest_us, one.longest_us);
    one.waits.forEach((count, i) => { row.waits[i] += count; });
    all.set(key, row);
  }
  return [...all.values()];
}
function allWaits(stats) {
  const bands = stats.client_bounds_us, waits = new Array(bands.length + 1).fill(0);
  counts(place.samples.slice(-WINDOW), "wait").forEach((count, i) => {
    const low = i ? stats.bounds_us[i - 1] : 0, at = bands.findIndex((bound) => low < bound);
    waits[at < 0 ? bands.length : at] += count;
  });
  return waits;
}
function fairRow(title, row, seconds, color, look) {
  const total = row.waits.reduce((a, b) => a + b, 0);
  const cells = row.waits.map((count) => {
    const cell = el("td", {}, count && total ? Math.max(1, Math.round(100 * count / total)) + "%" : "");
    if (count) cell.style.background = `rgba(${color}, ${.1 + .6 * count / total})`;
    return cell;
  });
  return el("tr", look ? { class: look } : {}, el("th", { scope: "row" }, title), el("td", {}, rate(row.requests / seconds)), ...cells,
    el("td", {}, row.longest_us === undefined ? "" : time(row.longest_us)));
}
function drawFair(stats) {
  const style = getComputedStyle(document.documentElement), blue = style.getPropertyValue("--heat"), red = style.getPropertyValue("--late");
  const busiest = merge("busiest").sort((a, b) => b.requests - a.requests).slice(0, 6);
  const longest = merge("longest").sort((a, b) => b.longest_us - a.longest_us).slice(0, 6);
  const head = stats.client_bounds_us.map((bound) => "≤ " + time(bound)).concat("more");
  const waits = allWaits(stats), requests = added(place.samples.slice(-WINDOW), "requests");
  const row = (one, color) => fairRow(one.client, one, WINDOW, color);
  const median = percentile(counts(place.samples.slice(-WINDOW), "wait"), .5, stats.bounds_us);
  byId("fair").replaceChildren(
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "connection"), el("th", { scope: "col" }, "req/s"), ...head.map((text) => el("th", { scope: "col" }, text)), el("th", { scope: "col" }, "longest"))),
    el("tbody", {}, ...busiest.map((one) => row(one, blue)), fairRow("all connections", { waits, requests }, WINDOW, blue, "median"), ...longest.map((one) => row(one, red))));
  byId("fair-note").textContent = busiest.length
    ? `How long requests waited, in the last ten seconds: above the busiest connections, below those that waited longest, between them all of them (median ${time(median)}). In a fair server these rows look alike.`
    : requests ? "Connections are counted from now on." : "No requests in the last ten seconds.";
}

// ---- processes, memory, lists ----

function bars(label, parts, value, description) {
  return el("div", { class: "bar", role: "listitem" }, el("span", {}, label),
    svg("svg", { viewBox: "0 0 1000 16", preserveAspectRatio: "none", role: "img", "aria-label": description }, ...parts.map(([look, from, to]) =>
      svg("rect", { class: look, x: from, y: 1, width: Math.max(2, to - from), height: 14 }))), el("b", {}, value));
}
function drawLives(stats) {
  const now = stats.time_ms, shown = place.lives.slice(-40);
  const begin = Math.min(now - 60000, Math.max(now - 3600000, ...[Math.min(...shown.map((life) => life.started_ms), now)]));
  const x = (ms) => 1000 * Math.min(1, Math.max(0, (ms - begin) / (now - begin)));
  const box = shown.sort((a, b) => a.worker - b.worker || a.started_ms - b.started_ms).map((life) => {
    const end = life.ended_ms || now, ready = life.ready_ms || end, drain = life.draining_ms || end;
    const parts = [["boot", x(life.started_ms), x(Math.min(ready, drain))]];
    if (life.ready_ms) parts.push(["ready", x(ready), x(drain)]);
    if (life.draining_ms) parts.push(["drain", x(drain), x(end)]);
    if (life.lost) parts.push(["lost", x(end) - 8, x(end)]);
    const words = life.lost ? "ended by itself" : life.ended_ms ? "ended" : life.draining_ms ? "finishes its requests" : life.ready_ms ? "serves" : "boots";
    return bars(`${life.worker} · ${life.pid} · gen ${life.generation}`, parts, span((end - life.started_ms) / 1000), `Worker ${life.worker}, process ${life.pid}, generation ${life.generation}: ${words}`);
  });
  byId("lives").replaceChildren(...box);
}
function drawMemory(stats, workers) {
  const rows = workers.map((worker) => [stats.worker_status ? `Worker ${worker.index} (${worker.pid})` : `Process ${worker.pid}`, worker.rss_bytes]);
  if (stats.master_rss_bytes) rows.push(["Master", stats.master_rss_bytes]);
  if (stats.mold_rss_bytes) rows.push(["Molds", stats.mold_rss_bytes]);
  const most = Math.max(1, ...rows.map((row) => row[1]));
  byId("memory").replaceChildren(...rows.map(([name, bytes]) => bars(name, [["memory", 0, 1000 * bytes / most]], memory(bytes), `${name}: ${memory(bytes)}`)));
}
function drawPush(workers) {
  const last = place.samples.slice(-WINDOW), seconds = Math.max(1, last.length);
  byId("push").replaceChildren(
    pair("WebSockets, event streams, raw connections", whole(sum(workers, "upgraded"))), pair("Subscriptions", whole(sum(workers, "subscriptions"))),
    pair("Messages published per second", rate(added(last, "published") / seconds)), pair("Waiting for slow workers", memory(sum(workers, "relay_queue"))),
    pair("Messages that slow clients did not get", whole(sum(workers, "messages_dropped")), sum(workers, "messages_dropped") ? "bad" : ""),
    pair("Gaps in the history", whole(sum(workers, "replay_gaps")), sum(workers, "replay_gaps") ? "bad" : ""),
    ...(sum(workers, "presence_rooms") ? [pair("Presence: ids, rooms, refused", ["ids", "rooms", "refused"].map((name) => whole(sum(workers, `presence_${name}`))).join(", "))] : []),
    pair("Tasks running, waiting", `${sum(workers, "tasks_running")}, ${sum(workers, "tasks_waiting")}`), pair("Timers", whole(sum(workers, "timers"))));
}
function drawChannels(workers) {
  const all = new Map();
  for (const worker of workers) for (const one of worker.largest_channels || []) all.set(one.name, (all.get(one.name) || 0) + one.subscribers);
  const shown = [...all].sort((a, b) => b[1] - a[1]).slice(0, 8);
  byId("channels").replaceChildren(...shown.map(([name, count]) => el("li", {}, name, el("span", { class: "soft" }, ` · ${whole(count)}`))));
}
function drawIncidents(workers) {
  const lost = place.lives.filter((life) => life.lost).length, last = place.samples.slice(-60);
  const row = (term, name) => pair(term, [whole(sum(workers, name)), el("small", { class: "soft" }, ` · ${whole(added(last, name))} in the last minute`)], added(last, name) ? "bad" : "");
  byId("incidents").replaceChildren(
    row("Refused: they broke a rule", "refused"), row("503: waited too long, or the queue was full", "dropped"), row("503: the application took too long", "timed_out"),
    row("Clients that did not read", "write_timeouts"), row("Answers cut", "answers_cut"), pair("Processes that ended by themselves", whole(lost), lost ? "bad" : ""));
}
function drawDoors(stats) {
  const queues = stats.accept_queues.map((one) => pair(one.url + (one.worker === null ? "" : ` (worker ${one.worker})`), one.depth === null ? "–" : `${one.depth} of ${one.limit} wait in the kernel`, one.depth > .8 * one.limit ? "bad" : ""));
  const certificates = (stats.certificates || []).map((one) => pair("Certificate of " + one.names.join(", "), `${one.days_left} days left`, one.days_left < 14 ? "bad" : ""));
  byId("doors").replaceChildren(...queues, ...certificates);
}
function drawLog(lines, stats) {
  const list = byId("log"), wall = Date.now() - stats.time_ms;
  for (const one of lines) {
    const at = new Date(wall + one.time_ms), who = one.worker === null ? "" : `worker ${one.worker} · `;
    const short = one.text.split("\n")[0];
    list.prepend(el("li", { class: one.level }, el("details", {}, el("summary", {}, el("time", { datetime: at.toISOString(), class: "soft" }, at.toLocaleTimeString() + " "), el("b", {}, short)),
      el("pre", {}, one.text + (one.cut ? "\n… (the log has the whole line)" : "")), el("p", { class: "note" }, `${who}pid ${one.pid} · ${one.level}`))));
  }
  while (list.children.length > LINES) list.lastElementChild.remove();
}

// ---- the head ----

function drawState() {
  const stats = place.stats, badge = byId("state"), silent = performance.now() - place.heard;
  let [word, look] = ["connecting", ""];
  if (stats) {
    const workers = workersOf(stats), ready = workers.filter((worker) => worker.state === "ready"), hanging = ready.filter((worker) => stuck(worker, stats.time_ms));
    const moving = workers.some((worker) => worker.state !== "ready");
    if (silent > 4000) [word, look] = [`no news for ${span(silent / 1000)}`, "lost"];
    else if (hanging.length) [word, look] = [stats.worker_status ? `${hanging.length} of ${workers.length} stuck` : "stuck", "stuck"];
    else if (moving) [word, look] = [`${ready.length} of ${workers.length} ready`, "busy"];
    else [word, look] = [stats.worker_status ? `${ready.length} workers ready` : "ready", "ready"];
  }
  if (badge.textContent !== word) badge.textContent = word;
  badge.className = "badge " + look;
}
function draw() {
  const stats = place.stats;
  if (!stats || place.paused) return;
  const workers = workersOf(stats);
  byId("version").textContent = stats.versions.rondo || "";
  const ruby = stats.versions.ruby ? `${stats.versions.ruby.engine} ${stats.versions.ruby.version}` : "";
  const doors = [...new Set(stats.accept_queues.map((one) => one.url))].join(" ");
  byId("about").textContent = [doors, ruby, `up ${span((Date.now() - Date.parse(stats.started_at)) / 1000)}`].filter(Boolean).join(" · ");
  takeClients(workers, stats.time_ms);
  drawTiles(stats, workers);
  byId("workers").replaceChildren(...workers.map((worker) => workerBox(worker, stats)));
  heat("wait", stats); heat("duration", stats);
  drawFair(stats); drawLives(stats); drawPush(workers); drawChannels(workers); drawIncidents(workers); drawMemory(stats, workers); drawDoors(stats);
  drawLog(place.log.splice(0), stats);
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
}

// ---- events ----

function listen() {
  // The origin has no password, where the address of the page has one.
  const source = new EventSource(location.origin + location.pathname.replace(/\/?$/, "/events") + location.search);
  const on = (name, take) => source.addEventListener(name, (event) => { place.heard = performance.now(); take(JSON.parse(event.data)); });
  // A browser comes back after a cut, but not after another answer: of a proxy without the server, or 503, no place is free.
  source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN_MS); });
  // The stream begins with everything, also after it was cut.
  source.addEventListener("open", () => { place.fresh = true; });
  on("log", (lines) => {
    if (place.fresh) { byId("log").replaceChildren(); place.log = []; }
    place.log = place.log.concat(lines).slice(-LINES);
  });
  on("lives", (lives) => { place.lives = lives; });
  on("samples", (samples) => {
    place.samples = place.fresh ? samples : place.samples.concat(samples).slice(-SAMPLES);
    place.fresh = false;
  });
  on("stats", (stats) => { place.stats = stats; drawState(); draw(); });
}
function pause() {
  place.paused = !place.paused;
  byId("pause").setAttribute("aria-pressed", String(place.paused));
  draw();
}
byId("pause").addEventListener("click", pause);
document.addEventListener("keydown", (event) => {
  if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey) pause();
});
for (const button of document.querySelectorAll("[data-level]")) button.addEventListener("click", () => {
  byId("log").dataset.level = button.dataset.level;
  for (const other of document.querySelectorAll(".filter button")) other.setAttribute("aria-pressed", String(other === button));
});
addEventListener("resize", draw);
setInterval(drawState, 1000);
listen();
