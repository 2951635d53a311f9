// The path: one box for each part, with its counts and its cards.

import { card, Cards, detail, trail } from "./cards.js";
import { count, duration, element, parts } from "./parts.js";

/** How many cards a part shows at once. Below them it says how many more there are. */
const mostCards = 40;

export class Path {
  constructor(root, model) {
    Object.assign(this, { root, model });
    this.boxes = parts.map((part) => new Box(part, model));
    root.append(...this.boxes.map((box) => box.root));
  }

  /** Draws the current state. followed is the id of the followed item, or undefined. */
  draw(followed) {
    const focused = document.activeElement?.closest?.(".card");
    const item = focused?.dataset.item;
    const stage = focused?.closest("[data-stage]").dataset.stage;
    for (const box of this.boxes) box.draw(followed);
    this.tabStops();
    if (focused && document.activeElement !== focused) this.refocus(focused, item, stage);
  }

  /** Sets the focus again after a card was moved, or moves it with its item. */
  refocus(card, item, stage) {
    const cards = [...this.root.querySelectorAll(".card")].filter((one) => one.dataset.item === item && item !== "");
    const now = cards.find((one) => one.dataset.look === "here") ?? cards.find((one) => one.dataset.look === "held");
    const target = card.isConnected ? card : now ?? cards[0]
      ?? this.root.querySelector(`[data-stage="${stage}"] .card`) ?? this.root.querySelector(".card");
    target?.focus({ preventScroll: true });
  }

  /** Tab moves to one card of each part, the arrow keys to the others. */
  tabStops() {
    for (const { root } of this.boxes) {
      const cards = [...root.querySelectorAll(".card")];
      const stop = cards.find((one) => one === document.activeElement) ?? cards.find((one) => one.classList.contains("followed")) ?? cards[0];
      for (const one of cards) {
        const wanted = one === stop ? 0 : -1;
        if (one.tabIndex !== wanted) one.tabIndex = wanted;
      }
    }
  }

  /** Moves the focus by arrow keys: up and down in a part, left and right to the next part that has cards. */
  move(from, key) {
    const box = from.closest("[data-stage]");
    const cards = [...box.querySelectorAll(".card")];
    if (key === "ArrowUp" || key === "ArrowDown") {
      cards[cards.indexOf(from) + (key === "ArrowDown" ? 1 : -1)]?.focus();
      return;
    }
    const full = this.boxes.map(({ root }) => root).filter((root) => root === box || root.querySelector(".card"));
    const next = full[full.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
    if (!next) return;
    // To the same item there, if that part shows it.
    const there = [...next.querySelectorAll(".card")];
    (there.find((one) => one.dataset.item === from.dataset.item) ?? there[0]).focus();
  }
}

/** One part of the path. */
class Box {
  constructor(part, model) {
    Object.assign(this, { part, model });
    const list = (name) => element("ul", { "className": name, "aria-label": `${part.title}: ${names[name]}`, "hidden": true });
    const [held, here, past] = ["held", "here", "past"].map(list);
    this.number = element("b", { className: "number" });
    this.unit = element("span", { className: "unit" });
    this.total = element("p", { className: "total" });
    this.note = element("p", { className: "note" });
    this.mark = element("p", { className: "mark", hidden: true });
    this.more = element("p", { className: "more", hidden: true });
    this.before = element("p", { className: "before", hidden: true, textContent: "before:" });
    this.root = element("section", { "className": "part", "data-stage": part.stage, "aria-label": part.title },
      element("div", { className: "top" }, element("h3", { textContent: part.title }), this.number, this.unit),
      typeName(part.type),
      element("p", { className: "explains", textContent: part.text }),
      this.note, this.total, this.mark,
      element("div", { className: "cards" }, held, here, this.more, this.before, past));
    this.lists = { held, here, past };
  }

  draw(followed) {
    const { model, part } = this;
    this.cards ??= Object.fromEntries(Object.entries(this.lists).map(([name, list]) => [name, new Cards(list, this.crowded())]));
    const held = this.held();
    this.cards.held.show(held, followed);
    const { cards, left } = this.here();
    this.cards.here.show(cards, followed);
    write(this.more, left > 0 ? `… and ${count(left)} more` : "");
    const past = part.stage === "store" ? [] : trail(model, part.stage);
    this.cards.past.show(past, followed);
    const alone = held.length + cards.length + Math.max(left, 0) === 0;
    this.before.hidden = past.length === 0 || alone;
    this.drawCounts(past.length > 0 && alone);
    this.drawMark(followed);
  }

  /** Whether two objects may have the same name. */
  crowded() { return this.model.resource.namespaced && !this.model.resource.namespace; }

  drawCounts(passed) {
    const { part, model } = this;
    const total = count(model.now.totals[part.stage] ?? 0);
    write(this.total, `${total} ${part.stage === "store" ? "changes " : ""}so far${passed ? ", before:" : ""}`);
    if (part.now) {
      const now = model.now.counts[part.now];
      const workers = part.stage === "working" ? `of ${count(model.resource.workers)}` : part.unit[now === 1 ? 0 : 1];
      write(this.number, count(now));
      write(this.unit, workers);
    }
    const note = part.stage === "list" || part.stage === "watch" ? model.notes[part.stage] : undefined;
    write(this.note, note?.text ?? "");
    this.note.title = this.note.textContent;
  }

  /** The items that wait to enter this part while paused. */
  held() {
    const { model, part } = this;
    return model.now.held.flatMap((held, place) => {
      if (held.to !== part.stage) return [];
      const id = held.item ?? "";
      const slash = (held.key ?? "").lastIndexOf("/");
      const item = model.item(id) ?? {
        id, name: held.key ? held.key.slice(slash + 1) : "the whole list", namespace: (held.key ?? "").slice(0, Math.max(slash, 0)),
        version: id.split("@")[1] ?? "", change: "update",
      };
      return [card(`held ${place} ${id}`, item, part.stage, "held", place === 0 ? "next step" : "waits")];
    });
  }

  /** The items in this part: cards for the first ones, and how many more there are. */
  here() {
    const { model, part } = this;
    const items = [...model.here[part.stage].values()];
    if (part.stage === "store") return this.stored(items);
    if (part.stage === "backoff") items.sort((a, b) => a.event.time + a.event.delayMs - b.event.time - b.event.delayMs);
    const cards = items.slice(0, mostCards).map((item) => card(item.id, item, part.stage, "here", detail(item.event, model)));
    // A whole list is one delta in the queue, and a dirty key does not count as waiting: then the cards are counted.
    const counted = part.now && part.stage !== "queue" ? model.now.counts[part.now] : 0;
    return { cards, left: Math.max(counted, items.length) - cards.length };
  }

  /** The objects of the store, and before them the items that have just arrived. */
  stored(arrived) {
    const { model } = this;
    const gone = arrived.filter((item) => item.event.type === "delete");
    const cards = gone.slice(0, mostCards).map((item) => card(item.id, item, "store", "here", "removed"));
    const fresh = new Set(arrived.map((item) => item.id));
    const objects = [...model.objects.values()];
    for (let at = objects.length - 1; at >= 0 && cards.length < mostCards; at--) {
      const { key, item, resourceVersion } = objects[at];
      const slash = key.lastIndexOf("/");
      const known = model.item(item) ?? { id: item, name: key.slice(slash + 1), namespace: key.slice(0, Math.max(slash, 0)), version: resourceVersion, change: "kept" };
      // An item that moves on has a card of its own, so that the focus moves with it and does not stay with the object.
      const passing = fresh.has(item);
      cards.push(card(passing ? item : key, known, "store", passing ? "here" : "kept", `version ${resourceVersion}`));
    }
    return { cards, left: model.now.counts.store - (cards.length - Math.min(gone.length, mostCards)) };
  }

  /** The time from the first event of the followed item to its last arrival here. */
  drawMark(followed) {
    const item = this.model.item(followed);
    const event = item?.history.findLast((one) => one.stage === this.part.stage);
    this.root.classList.toggle("passed", Boolean(event));
    this.root.classList.toggle("is-here", Boolean(event) && item.event === event && !event.into);
    const since = event && event.time - item.history[0].time;
    write(this.mark, event ? (event === item.history[0] ? "started here" : `+ ${duration(since)}`) : "");
  }
}

const names = { held: "waiting to enter", here: "here now", past: "was here before" };

/** The name of a type, with line breaks between its words only. */
function typeName(name) {
  const made = element("code");
  for (const word of name.split(/(?<=\.)|(?<=[a-z])(?=[A-Z])/)) made.append(word, element("wbr"));
  return made;
}

/** Sets a text if it differs, and hides an element without text. */
function write(where, text) {
  if (where.textContent === text) return;
  where.textContent = text;
  where.hidden = text === "";
}
