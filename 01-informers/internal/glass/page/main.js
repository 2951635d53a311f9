// The page: connects the feed, the model and the views, and handles input.

import { Feed } from "./feed.js";
import { Follow, Log } from "./follow.js";
import { Model } from "./model.js";
import { count } from "./parts.js";
import { Path } from "./path.js";

/** With more events a second than this, the page is drawn less often, so that cards can be read. */
const many = 100;
const interval = 250; // milliseconds between two drawings then

const byId = (id) => document.getElementById(id);
const model = new Model();
const path = new Path(byId("path"), model);
const follow = new Follow(byId("follow"), model, { say, draw: soon });
const log = new Log(byId("log-list"), model);
const feed = new Feed(model, { changed: soon, connection, say });

// What a screen reader says: one sentence at a time, the latest.
function say(text) { byId("live").textContent = text; }

const states = { connecting: "connecting", connected: "connected", lost: "connection lost, reconnecting" };

function connection(state) {
  const lamp = byId("connection");
  if (lamp.dataset.is === state) return;
  if (state === "lost") say("The connection is lost. The page shows the last known state.");
  else if (lamp.dataset.is === "lost" && state === "connected") say("Connected again.");
  lamp.dataset.is = state;
  lamp.textContent = states[state];
  document.body.classList.toggle("lost", state === "lost");
}

// Drawing: at most once a frame, and less often with many events.
let planned = false;
let drawn = { at: 0, seq: 0 };

/** Draws the page with the next frame. */
function soon() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(frame);
}

function frame(now) {
  const events = model.seq - drawn.seq;
  const passed = now - drawn.at;
  if (passed < interval && events > many * passed / 1000 && events > 20) {
    requestAnimationFrame(frame);
    return;
  }
  planned = false;
  if (!model.now) return;
  drawn = { at: now, seq: model.seq };
  draw();
}

function draw() {
  path.draw(follow.id);
  follow.show();
  log.show(follow.id);
  drawHead();
  document.documentElement.dataset.seq = model.seq;
}

function drawHead() {
  const { resource, now, missed } = model;
  const group = resource.group ? `.${resource.group}` : "";
  const where = resource.namespaced ? (resource.namespace ? ` in ${resource.namespace}` : " in all namespaces") : "";
  const fails = resource.failEvery ? (resource.failEvery === 1 ? ", all work fails" : `, the work fails every ${ordinal(resource.failEvery)} time`) : "";
  const only = resource.metadataOnly ? ", metadata only: the API server does not send the content" : "";
  write(byId("resource"), `${resource.name}${group}${where}${fails}${only}`);

  const lamp = byId("running");
  const state = now.paused ? "paused" : now.synced ? "running" : "listing";
  if (lamp.dataset.is !== state) {
    lamp.dataset.is = state;
    lamp.textContent = { paused: "paused", running: "running", listing: "running, first list not complete" }[state];
    document.body.classList.toggle("paused", now.paused);
  }
  const pause = byId("pause");
  const wanted = now.paused ? "Resume " : "Pause ";
  if (pause.firstChild.data !== wanted) pause.firstChild.data = wanted;
  pause.disabled = byId("step").disabled = false;

  const warning = byId("warning");
  write(warning, missed ? `${count(missed)} ${missed === 1 ? "event was" : "events were"} dropped because this page was too slow. The page shows the current state; histories may have gaps.` : "");
  if (missed && missed !== drawHead.said) say(warning.textContent);
  drawHead.said = missed;
  warning.hidden = !missed;
}

const ordinal = (number) => number % 100 > 10 && number % 100 < 14 ? `${number}th` : `${number}${["th", "st", "nd", "rd"][number % 10] ?? "th"}`;

function write(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

// What the user does.
async function control(what) {
  try {
    const response = await fetch(what, { method: "POST", signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error(await response.text());
    const { now, stepped } = await response.json();
    model.stand(now);
    if (what === "pause") say("Paused. No item moves.");
    if (what === "resume") say("Resumed. All items move.");
    if (what === "step") say(stepped ? `Step: ${stepped.key ?? "the list"} to ${stepped.to}.` : "No item waits, so none moved.");
  } catch {
    say(`The server does not respond to ${what}.`);
  }
  soon();
}

const toggle = () => model.now && control(model.now.paused ? "resume" : "pause");
let steps = 0;
let stepping = Promise.resolve();

/** Steps, one after the other. A key that is held down sends the next step after the response to the last. */
function step(event) {
  if (event.repeat && steps > 0) return;
  steps++;
  stepping = stepping.then(() => control("step")).finally(() => { steps--; });
}

byId("pause").addEventListener("click", toggle);
byId("step").addEventListener("click", step);
byId("help-open").addEventListener("click", () => byId("help").showModal());

const cardOf = (event) => event.target.closest(".card");
for (const type of ["focusin", "click"]) {
  byId("path").addEventListener(type, (event) => {
    const card = cardOf(event);
    if (card) follow.begin(card.dataset.item);
  });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const card = cardOf(event);
  // Space and Enter press a button with the focus. A card is followed when it gets the focus, so that space can pause there.
  // A button of the help may still have the focus just after the help was closed.
  const pressed = !card && event.target.closest("button, summary, a")?.checkVisibility();
  const scrolled = event.target.closest("#log-list, pre");
  const act = {
    " ": () => !pressed && !event.repeat && toggle(),
    "s": () => step(event),
    "?": () => byId("help").showModal(),
    "Escape": () => follow.end(),
    "Enter": () => card && byId("follow").focus(),
  }[event.key] ?? (event.key.startsWith("Arrow") && card && !scrolled ? () => path.move(card, event.key) : undefined);
  if (!act || act() === false || event.key === "Enter" && !card) return;
  event.preventDefault();
});

// Keys in backoff show the time until they are queued.
setInterval(() => {
  if (model.now?.counts.backoff) soon();
}, interval);

feed.begin();
