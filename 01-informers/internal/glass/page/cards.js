// Cards: the items of one part. A list of cards is updated by moving, adding and removing as few as possible, so that a card
// with the focus keeps it.

import { element, isLast, keyStages, shortClock } from "./parts.js";

const signs = { add: "+", update: "~", delete: "−" };
const spoken = { add: "new", update: "changed", delete: "deleted" };

/** What a card says beside the name of its item. */
const details = {
  waiting: { dirty: "dirty", merged: "merged" },
  working: { started: "processed" },
};

/** What a card says of its event: the type, or more if that is not clear by itself. */
export function detail(event, model) {
  if (event.stage === "backoff" && !event.into) {
    const left = event.time + event.delayMs - model.time();
    return `attempt ${event.attempt}, ${left > 0 ? `queued in ${(left / 1000).toFixed(1)} s` : "backoff expired"}`;
  }
  if (event.tombstone) return `${event.type}, tombstone`;
  return details[event.stage]?.[event.type] ?? event.type;
}

/** The data of a card: id is unique in its list, look is "here", "past", "kept" or "held". */
export function card(id, item, stage, look, text) {
  return { id, item: item.id, name: item.name, namespace: item.namespace, version: item.version, change: item.change, stage, look, text };
}

/** Cards of items that were in a part and have moved on. */
export function trail(model, stage) {
  return model.trail[stage]
    .filter(({ item }) => item.event.stage !== stage || isLast(item.event))
    .map(({ item, event }) => card(`past ${event.seq}`, item, stage, "past", pastText(event)));
}

function pastText(event) {
  const what = event.stage === "backoff" ? `attempt ${event.attempt} failed` : details[event.stage]?.[event.type] ?? event.type;
  return `${what}, ${shortClock(event.time)}`;
}

/** A list of cards. */
export class Cards {
  constructor(list, namespaced) {
    Object.assign(this, { list, namespaced });
    this.made = new Map(); // by id: the list item, and what it was drawn from
  }

  /** Shows these cards in this order. followed is the item to mark. */
  show(wanted, followed) {
    const ids = new Set(wanted.map((one) => one.id));
    for (const [id, { row }] of this.made) {
      if (ids.has(id)) continue;
      row.remove();
      this.made.delete(id);
    }
    let next = this.list.firstElementChild;
    for (const one of wanted) {
      const row = this.draw(one, one.item !== "" && one.item === followed);
      if (row === next) next = next.nextElementSibling;
      else this.list.insertBefore(row, next);
    }
    this.list.hidden = wanted.length === 0;
  }

  draw(one, isFollowed) {
    let known = this.made.get(one.id);
    if (!known) {
      known = { row: makeRow(), drawn: "" };
      this.made.set(one.id, known);
    }
    const wanted = `${one.item} ${one.look} ${one.change} ${one.text} ${isFollowed}`;
    if (known.drawn === wanted) return known.row;
    known.drawn = wanted;
    const button = known.row.firstElementChild;
    const [sign, name, text] = button.children;
    button.dataset.item = one.item;
    button.dataset.look = one.look;
    button.classList.toggle("round", keyStages.has(one.stage));
    button.classList.toggle("followed", isFollowed);
    button.setAttribute("aria-pressed", String(isFollowed));
    const key = one.namespace ? `${one.namespace}/${one.name}` : one.name;
    button.title = one.version ? `${key}, version ${one.version}` : key;
    sign.className = `sign ${one.change}`;
    sign.textContent = one.look === "held" ? "▸" : signs[one.change] ?? "";
    sign.ariaLabel = one.look === "held" ? "held" : spoken[one.change] ?? "";
    name.textContent = this.namespaced && one.namespace ? key : one.name;
    text.textContent = one.text;
    return known.row;
  }
}

function makeRow() {
  const sign = element("span", { className: "sign", role: "img" });
  const button = element("button", { type: "button", className: "card", tabIndex: -1 },
    sign, element("span", { className: "name" }), element("span", { className: "text" }));
  return element("li", {}, button);
}
