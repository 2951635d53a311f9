// The page: puts the line to the server, what is known and what is drawn together, and listens to the reader.

import { Feed } from "./feed.js";
import { Follow, Log } from "./follow.js";
import { Model } from "./model.js";
import { count } from "./parts.js";
import { Path } from "./path.js";

/** While this many events a second come or more, cards are drawn a few times a second only, so that they can be read. */
const many = 100;
const calm = 250; // milliseconds

const byId = (id) => document.getElementById(id);
const model = new Model();
const path = new Path(byId("path"), model);
const follow = new Follow(byId("follow"), model, { say, draw: soon });
const log = new Log(byId("log-list"), model);
const feed = new Feed(model, { changed: soon, connection, say });

// What is spoken: one sentence at a time, the newest.
function say(text) { byId("live").textContent = text; }

const states = { connecting: "connecting", connected: "connected", lost: "connection lost, trying again" };

function connection(state) {
  const lamp = byId("connection");
  if (lamp.dataset.is === state) return;
  if (state === "lost") say("The connection is lost. What you see is how it was.");
  else if (lamp.dataset.is === "lost" && state === "connected") say("Connected again.");
  lamp.dataset.is = state;
  lamp.textContent = states[state];
  document.body.classList.toggle("lost", state === "lost");
}

// Drawing: at most once a frame, and calmer while much happens.
let planned = false;
let drawn = { at: 0, seq: 0 };

/** Sees to it that what has changed is drawn. */
function soon() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(frame);
}

function frame(now) {
  const events = model.seq - drawn.seq;
  const passed = now - drawn.at;
  if (passed < calm && events > many * passed / 1000 && events > 20) {
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
  const fails = resource.failEvery ? `, every ${resource.failEvery === 1 ? "" : `${ordinal(resource.failEvery)} `}piece of work fails` : "";
  const only = resource.metadataOnly ? ", metadata only: the content stays in the API server" : "";
  write(byId("resource"), `${resource.name}${group}${where}${fails}${only}`);

  const lamp = byId("running");
  const state = now.paused ? "paused" : now.synced ? "running" : "listing";
  if (lamp.dataset.is !== state) {
    lamp.dataset.is = state;
    lamp.textContent = { paused: "paused", running: "running", listing: "running, first list under way" }[state];
    document.body.classList.toggle("paused", now.paused);
  }
  const pause = byId("pause");
  const wanted = now.paused ? "Resume " : "Pause ";
  if (pause.firstChild.data !== wanted) pause.firstChild.data = wanted;
  pause.disabled = byId("step").disabled = false;

  const warning = byId("warning");
  write(warning, missed ? `${count(missed)} ${missed === 1 ? "event was" : "events were"} dropped because this page was too slow. What you see was drawn anew and is right; histories may have gaps.` : "");
  if (missed && missed !== drawHead.said) say(warning.textContent);
  drawHead.said = missed;
  warning.hidden = !missed;
}

const ordinal = (number) => number % 100 > 10 && number % 100 < 14 ? `${number}th` : `${number}${["th", "st", "nd", "rd"][number % 10] ?? "th"}`;

function write(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

// What the reader does.
async function control(what) {
  try {
    const response = await fetch(what, { method: "POST", signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error(await response.text());
    const { now, stepped } = await response.json();
    model.stand(now);
    if (what === "pause") say("Paused. Every part holds what it has.");
    if (what === "resume") say("Everything goes on.");
    if (what === "step") say(stepped ? `Step: ${stepped.key ?? "the list"} to ${stepped.to}.` : "Nothing is held, so that nothing moved.");
  } catch {
    say(`The server did not ${what}: it does not answer.`);
  }
  soon();
}

const toggle = () => model.now && control(model.now.paused ? "resume" : "pause");
let steps = 0;
let stepping = Promise.resolve();

/** Steps, one after the other. A key that is held down does not get ahead of the server. */
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
  // Space and Enter press a button that has the focus. A card is followed as soon as it has it, so that space is free there.
  // One that is no longer shown, because the help was closed just now, may still have it for a moment.
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

// A key that is kept back counts down.
setInterval(() => {
  if (model.now?.counts.backoff) soon();
}, calm);

feed.begin();
