// The state of the informer: where each item is, the last events of each part, the objects of the store. All of it comes from
// the server (event.go is its API), and all of it is bounded.

import { isLast, parts } from "./parts.js";

/** How much is kept. The counts of a part include what is left out: they are those of the server. */
const most = { live: 4000, ended: 500, objects: 5000, log: 200, trail: 8, history: 48 };

/** One object at one resourceVersion, and its events. */
class Item {
  constructor(event) {
    this.id = event.item;
    this.key = event.key;
    const slash = event.key.lastIndexOf("/");
    this.namespace = event.key.slice(0, Math.max(slash, 0));
    this.name = event.key.slice(slash + 1);
    this.version = event.resourceVersion ?? "";
    this.change = "update";
    this.history = [];
    this.left = 0; // events left out of the middle of the history
  }

  /** The latest event. */
  get event() { return this.history.at(-1); }

  add(event) {
    this.change = changes[event.type] ?? this.change;
    this.history.push(event);
    if (this.history.length > most.history) {
      this.history.splice(most.history / 4, 1);
      this.left++;
    }
  }
}

/** The kind of change of a type. Other types, such as those of a worker, do not say it. */
const changes = {
  ADDED: "add", Added: "add", add: "add", LISTED: "add",
  MODIFIED: "update", Updated: "update", update: "update",
  DELETED: "delete", Deleted: "delete", delete: "delete",
};

export class Model {
  constructor() {
    this.run = "";
    this.missed = 0; // events dropped because this page was too slow
    this.items = new Map();
    this.empty();
  }

  empty() {
    this.seq = 0;
    this.items = new Map(); // items that have not ended, by id; the one that has not moved for the longest time is the first
    this.ended = new Map(); // the same for those that have ended
    this.here = {}; // by stage: the items that are there, by id, in the order of their arrival
    this.trail = {}; // by stage: the last events there, newest first
    this.notes = {}; // by stage: the last event about the part itself
    for (const { stage } of parts) {
      this.here[stage] = new Map();
      this.trail[stage] = [];
    }
    this.objects = new Map(); // the objects of the store, by key, the latest change last
    this.log = [];
  }

  /** Begins with a State. */
  begin(state) {
    const [run] = state.cursor.split(".");
    const known = run === this.run ? new Map([...this.items, ...this.ended]) : new Map();
    if (run !== this.run) this.missed = 0;
    this.empty();
    this.run = run;
    this.resource = state.resource;
    this.offset = performance.now() - state.time;

    for (const object of state.objects.toReversed()) this.objects.set(object.key, object);
    // The latest event of every item, with its earlier events from the log and from the old model.
    const paths = Map.groupBy(state.log.filter((event) => event.item), (event) => event.item);
    for (const newest of state.items) {
      const item = new Item(newest);
      const before = known.get(newest.item);
      const path = new Map([...before?.history ?? [], ...paths.get(newest.item) ?? [], newest].map((event) => [event.seq, event]));
      for (const seq of [...path.keys()].sort((a, b) => a - b)) item.add(path.get(seq));
      item.left += before?.left ?? 0;
      this.place(item, null);
    }
    for (const event of state.log) {
      const item = this.item(event.item);
      if (event.key && item) this.leaveTrail(item, event);
      else if (!event.key) this.notes[event.stage] = event;
    }
    this.log = state.log.slice();
    this.seq = state.now.seq;
    this.now = state.now;
  }

  /** Applies a Batch. It returns false if events before it are missing. */
  take(batch) {
    for (const event of batch.events) {
      if (event.seq <= this.seq) continue;
      if (event.seq !== this.seq + 1) return false;
      this.apply(event);
    }
    this.stand(batch.now);
    return true;
  }

  /** Sets a Snapshot, unless it is older than the current one. */
  stand(now) {
    if (now.seq >= this.now.seq) this.now = now;
  }

  apply(event) {
    this.seq = event.seq;
    this.log.push(event);
    if (this.log.length > 2 * most.log) this.log.splice(0, most.log);
    if (!event.item) {
      this.notes[event.stage] = event;
      return;
    }
    const item = this.item(event.item) ?? new Item(event);
    const before = item.event;
    item.add(event);
    this.place(item, before);
    this.leaveTrail(item, event);
    if (event.stage === "store") this.keep(event);
  }

  item(id) { return this.items.get(id) ?? this.ended.get(id); }

  /** Moves an item to the stage of its latest event. */
  place(item, before) {
    this.items.delete(item.id);
    this.ended.delete(item.id);
    if (before) this.here[before.stage].delete(item.id);
    const last = isLast(item.event);
    const among = last ? this.ended : this.items;
    among.set(item.id, item);
    if (!last) this.here[item.event.stage].set(item.id, item);
    if (among.size > (last ? most.ended : most.live)) this.forget(among);
  }

  forget(among) {
    const [oldest] = among.values();
    among.delete(oldest.id);
    this.here[oldest.event.stage].delete(oldest.id);
  }

  leaveTrail(item, event) {
    const trail = this.trail[event.stage];
    trail.unshift({ item, event });
    if (trail.length > most.trail) trail.pop();
  }

  keep({ type, key, item, resourceVersion }) {
    this.objects.delete(key);
    if (type === "delete") return;
    this.objects.set(key, { key, item, resourceVersion });
    if (this.objects.size > most.objects) this.objects.delete(this.objects.keys().next().value);
  }

  /** The server's time now, in milliseconds since the start of the run. */
  time() { return performance.now() - this.offset; }

  /** The items of an object, newest first. */
  versions(key) {
    return [...this.items.values(), ...this.ended.values()]
      .filter((item) => item.key === key)
      .sort((a, b) => b.event.seq - a.event.seq);
  }
}
