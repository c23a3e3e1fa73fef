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
const events = data.events.map((event) => ({ ...event, at: Date.parse(event.startedAt) || 0 }));
events.sort((first, second) => first.at - second.at || first.number - second.number);

// Time is drawn to scale, but a pause is never wider than a minute: a history of months still fits.
let x = 0, before = events.length ? events[0].at : 0;
for (const event of events) {
  x += 9 + Math.min(event.at - before, LONGEST_GAP) / LONGEST_GAP * PIXELS;
  event.x = x;
  event.width = 7 + Math.min(event.durationMs || 0, LONGEST_GAP) / LONGEST_GAP * PIXELS;
  before = event.at;
}
const width = x + 160;
const clock = (event) => event.startedAt.replace("T", " ").replace(/\.\d+Z$/, "");

function choose(event) {
  const details = byId("details");
  const list = make("dl");
  for (const [name, value] of Object.entries(event)) {
    if (["x", "width", "at", "node"].includes(name) || value === null || value === undefined) continue;
    const text = typeof value === "object" ? Object.entries(value).map((pair) => pair.join(": ")).join(", ") : String(value);
    if (text) list.append(make("dt", "", name), make("dd", "", text));
  }
  details.replaceChildren(list);
  for (const address of data.pictures[event.operationId] || data.pictures[event.parent] || []) {
    const picture = make("img", "seen");
    picture.src = address;
    picture.alt = "what was seen";
    details.append(picture);
  }
  for (const old of document.querySelectorAll(".chosen")) old.classList.remove("chosen");
  if (event.node) event.node.classList.add("chosen");
}

function drawLanes(shown) {
  const lanes = new Map();
  for (const event of shown) {
    if (!lanes.has(event.session)) lanes.set(event.session, []);
    lanes.get(event.session).push(event);
  }
  const parts = [axis(shown)];
  for (const [session, own] of lanes) {
    const lane = make("div", "lane"), name = make("div", "name", session || "no session"), track = make("div", "track");
    name.append(make("small", "", [own[0].client, own[0].principal, own.length + " events"].filter(Boolean).join(" · ")));
    track.style.width = width + "px";
    for (const event of own) {
      const mark = make("button", "mark " + event.outcome);
      mark.type = "button";
      mark.title = [clock(event), event.op, event.target, event.outcome].filter(Boolean).join("  ");
      mark.setAttribute("aria-label", mark.title);
      mark.style.left = event.x + "px";
      mark.style.width = event.width + "px";
      mark.addEventListener("click", () => choose(event));
      event.node = mark;
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
  let free = 0;
  for (const event of shown) {
    if (event.x < free) continue;
    const tick = make("span", "tick", clock(event));
    tick.style.left = event.x + "px";
    track.append(tick);
    free = event.x + 150;
  }
  row.append(make("div", "name", "Session"), track);
  return row;
}

function drawRows(shown) {
  const rows = shown.slice(-MAX_ROWS).reverse().map((event) => {
    const row = make("tr");
    const took = event.durationMs === null ? "" : event.durationMs.toFixed(1) + " ms";
    const outcome = event.errorCode ? event.outcome + " (" + event.errorCode + ")" : event.outcome;
    row.append(make("td", "", clock(event)), make("td", "", event.op), make("td", "", event.target || ""),
      make("td", event.outcome, outcome), make("td", "", took), make("td", "", event.client || ""));
    row.addEventListener("click", () => choose(event));
    return row;
  });
  byId("rows").replaceChildren(...rows);
}

function draw() {
  const text = byId("text").value.toLowerCase(), outcome = byId("outcome").value;
  const scope = byId("scope").value, family = byId("family").value;
  const shown = events.filter((event) =>
    (!outcome || event.outcome === outcome) && (!scope || event.scope === scope)
    && (!family || event.op.startsWith(family + "."))
    && (!text || [event.op, event.target, event.client, event.session, event.errorCode].join(" ").toLowerCase().includes(text)));
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
  ? clock(events[0]) + " to " + clock(events[events.length - 1]) + (data.leftOut ? "; " + data.leftOut + " older events left out" : "")
  : "Nothing was recorded.";
offer("outcome", events.map((event) => event.outcome));
offer("scope", events.map((event) => event.scope));
offer("family", events.map((event) => event.op.split(".")[0]));
for (const id of ["text", "outcome", "scope", "family"]) byId(id).addEventListener("input", draw);
byId("filters").addEventListener("submit", (submitted) => submitted.preventDefault());
draw();
