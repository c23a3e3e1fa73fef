"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const LONGEST_GAP = 60000, PIXELS = 140, MAX_ROWS = 500;
const OWN = ["x", "width", "at", "mark", "row", "words", "summary", "approval", "number"];
const two = (number) => String(number).padStart(2, "0");
const day = (event) => {
  const at = new Date(event.at);
  return at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate());
};
const clock = (event) => {
  const at = new Date(event.at);
  return two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds());
};
// A program that failed was run, and is not shown as a success.
const tone = (event) => event.outcome === "done" && event.summary.exitCode ? "failed" : event.outcome;
const events = data.events.map((event) => ({ ...event, at: Date.parse(event.startedAt) || 0 }));
events.sort((first, second) => first.at - second.at || first.number - second.number);

// Time is drawn to scale, but a pause is never wider than a minute: a history of months still fits.
let x = 0, before = events.length ? events[0].at : 0;
for (const event of events) {
  x += 9 + Math.min(event.at - before, LONGEST_GAP) / LONGEST_GAP * PIXELS;
  event.x = x;
  event.width = 8 + Math.min(event.durationMs || 0, LONGEST_GAP) / LONGEST_GAP * PIXELS;
  before = event.at;
}
const width = x + 160;

function facts(event) {
  const list = make("dl");
  const add = (name, value) => {
    if (value !== null && value !== undefined && value !== "") list.append(make("dt", "", name), make("dd", "", String(value)));
  };
  for (const [name, value] of Object.entries(event)) if (!OWN.includes(name)) add(name, value);
  for (const [name, value] of Object.entries(event.approval || {})) add("approval " + name, value);
  for (const [name, value] of Object.entries(event.summary || {})) add(name, value);
  return list;
}

function choose(event) {
  const details = byId("details");
  details.replaceChildren(
    make("h2", "", event.words.what),
    make("p", tone(event), event.words.outcome + (event.words.took ? ", " + event.words.took : "")),
    make("p", "", event.words.who + ", " + day(event) + " " + clock(event)),
    facts(event),
    make("code", "", "computer-linker history show " + event.words.id),
  );
  for (const address of data.pictures[event.operationId] || data.pictures[event.parent] || []) {
    const picture = make("img", "seen");
    picture.src = address;
    picture.alt = "what was seen";
    details.append(picture);
  }
  for (const old of document.querySelectorAll(".chosen")) old.classList.remove("chosen");
  for (const node of [event.mark, event.row]) if (node) node.classList.add("chosen");
  // Beside the rows where there is room, and below the chosen one where there is not.
  if (event.row && getComputedStyle(byId("list")).display === "block") event.row.parentNode.append(details);
  else byId("list").append(details);
}

function drawLanes(shown) {
  const lanes = new Map();
  for (const event of shown) {
    if (!lanes.has(event.words.who)) lanes.set(event.words.who, []);
    lanes.get(event.words.who).push(event);
  }
  const parts = [axis(shown)];
  for (const [client, own] of lanes) {
    const lane = make("div", "lane"), name = make("div", "name", client), track = make("div", "track");
    const failed = own.filter((event) => tone(event) !== "done").length;
    name.title = client;
    name.append(make("small", "", own.length + " events" + (failed ? ", " + failed + " failed" : "")));
    track.style.width = width + "px";
    for (const event of own) {
      const mark = make("button", "mark " + tone(event));
      mark.type = "button";
      mark.title = [day(event), clock(event), event.words.what, event.words.outcome].join("  ");
      mark.setAttribute("aria-label", mark.title);
      mark.style.left = event.x + "px";
      mark.style.width = event.width + "px";
      mark.addEventListener("click", () => choose(event));
      event.mark = mark;
      track.append(mark);
    }
    lane.append(name, track);
    parts.push(lane);
  }
  byId("lanes").replaceChildren(...parts);
}

function axis(shown) {
  const row = make("div", "lane axis"), track = make("div", "track");
  track.style.width = width + "px";
  let free = 0, last = "";
  for (const event of shown) {
    if (event.x < free) continue;
    const tick = make("span", "tick", (day(event) === last ? "" : day(event) + " ") + clock(event));
    last = day(event);
    tick.style.left = event.x + "px";
    track.append(tick);
    free = event.x + 150;
  }
  row.append(make("div", "name", "Client"), track);
  return row;
}

function drawRows(shown) {
  const rows = [];
  let last = "";
  for (const event of shown.slice(-MAX_ROWS).reverse()) {
    if (day(event) !== last) rows.push(make("li", "day", last = day(event)));
    const item = make("li"), row = make("button", "event");
    row.type = "button";
    row.append(make("span", "when", clock(event)), make("span", "who", event.words.who), make("span", "what", event.words.what),
      make("span", "outcome " + tone(event), event.words.outcome), make("span", "took", event.words.took));
    row.addEventListener("click", () => choose(event));
    event.row = row;
    item.append(row);
    rows.push(item);
  }
  byId("list").append(byId("details"));
  byId("rows").replaceChildren(...rows);
}

function draw() {
  const text = byId("text").value.toLowerCase(), outcome = byId("outcome").value;
  const scope = byId("scope").value, client = byId("client").value;
  for (const event of events) event.mark = event.row = null;
  const shown = events.filter((event) =>
    (!outcome || event.outcome === outcome) && (!scope || event.scope === scope) && (!client || event.words.who === client)
    && (!text || [event.op, event.words.what, event.words.who, event.words.outcome, event.session, event.operationId]
      .join(" ").toLowerCase().includes(text)));
  drawLanes(shown);
  drawRows(shown);
  byId("count").textContent = shown.length + " of " + events.length + " events";
}

function offer(id, values) {
  for (const value of [...new Set(values)].filter(Boolean).sort()) {
    const option = make("option", "", value);
    option.value = value;
    byId(id).append(option);
  }
}
byId("title").textContent = data.title;
byId("summary").textContent = events.length
  ? day(events[0]) + " " + clock(events[0]) + " to " + day(events[events.length - 1]) + " " + clock(events[events.length - 1])
    + (data.leftOut ? "; " + data.leftOut + " older events left out" : "")
  : "Nothing was recorded.";
offer("outcome", events.map((event) => event.outcome));
offer("scope", events.map((event) => event.scope));
offer("client", events.map((event) => event.words.who));
for (const id of ["text", "outcome", "scope", "client"]) byId(id).addEventListener("input", draw);
byId("filters").addEventListener("submit", (submitted) => submitted.preventDefault());
draw();

// An address such as timeline.html#9T09KJK shows one event.
const named = location.hash.length > 6 ? events.find((event) => event.operationId.endsWith(location.hash.slice(1))) : undefined;
if (named) choose(named);
