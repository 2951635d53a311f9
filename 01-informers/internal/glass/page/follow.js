// The item that is followed: its history, the other versions of its object, and the object itself.

import { clock, duration, element, isLast, titles } from "./parts.js";

/** How long to wait before the object is requested again, in milliseconds. */
const patience = 1000;

export class Follow {
  constructor(panel, model, { say, draw }) {
    Object.assign(this, { model, say, draw, of: undefined, id: undefined, drawn: "" });
    this.title = panel.querySelector("h2");
    this.body = panel.querySelector("div");
    this.hint = element("p", { className: "hint" });
    this.stop = element("button", { type: "button", className: "plain stop", onclick: () => this.end() }, "Stop following ", element("kbd", {}, "esc"));
    this.where = element("p", { className: "where" });
    this.history = element("ol", { className: "history" });
    this.versions = element("p", { className: "versions" });
    this.yaml = element("pre", { tabIndex: 0, ariaLabel: "The object, as YAML" });
    this.object = element("details", { className: "object", ontoggle: () => this.drawObject() },
      element("summary", {}, "The object in the store"), this.yaml);
    this.shown = element("div", { className: "followed-item" }, this.where, this.stop, this.history, this.versions, this.object);
    this.body.append(this.hint, this.shown);
  }

  /** Follows an item. */
  begin(id) {
    if (!id || id === this.id) return;
    this.item = this.model.item(id);
    this.id = id;
    this.key = this.item?.key ?? [...this.model.objects.values()].find((object) => object.item === id)?.key;
    this.yamlOf = undefined;
    this.said = undefined;
    this.draw();
  }

  end() {
    if (!this.id) return;
    this.id = this.item = this.key = undefined;
    this.object.open = false;
    this.say("No item is followed.");
    this.draw();
  }

  /** Draws the panel, if there is something new. */
  show() {
    this.item = this.model.item(this.id) ?? this.item;
    const versions = this.key ? this.model.versions(this.key) : [];
    const wanted = [this.id, this.item?.event.seq, this.item?.left, ...versions.map((one) => `${one.id} ${one.event.stage}`)].join(" ");
    this.drawObject();
    if (wanted === this.drawn) return;
    this.drawn = wanted;
    this.hint.hidden = Boolean(this.id);
    this.shown.hidden = !this.id;
    this.title.textContent = this.id ? `Following ${this.key}` : "Follow an item";
    if (!this.id) {
      const { name } = this.model.resource;
      this.hint.textContent = "Choose a card: click it, or use Tab and the arrow keys. The page then marks it in every part that it has entered, and shows its history here. "
        + `To see an item move, change an object: kubectl label ${name} NAME seen=yes`;
      return;
    }
    this.drawHistory();
    this.drawVersions(versions);
  }

  drawHistory() {
    const { item } = this;
    if (!item) {
      this.where.textContent = "It was added to the store before this page was opened.";
      this.history.replaceChildren();
      return;
    }
    const { event } = item;
    const grew = this.of === item.id && this.history.childElementCount > 0;
    this.of = item.id;
    this.where.textContent = `Version ${item.version}. ${place(event)}`;
    this.history.replaceChildren(...item.history.map((one, at) => this.row(one, item.history[at - 1])));
    if (!["list", "watch"].includes(item.history[0].stage)) {
      this.history.prepend(element("li", { className: "gap" }, "The page does not have earlier events."));
    }
    if (item.left) this.history.append(element("li", { className: "gap" }, `The page does not keep ${item.left} events in between.`));
    if (grew) this.body.scrollTop += Math.max(0, this.history.getBoundingClientRect().bottom - this.body.getBoundingClientRect().bottom);
    // A screen reader says where the followed item is, but not faster than a user can listen.
    if (this.said !== event.stage && (this.model.now.paused || performance.now() - (this.saidAt ?? 0) > patience)) {
      this.said = event.stage;
      this.saidAt = performance.now();
      this.say(`${this.key}: ${place(event)}`);
    }
  }

  row(event, before) {
    const between = before ? `+ ${duration(event.time - before.time)}` : clock(event.time);
    return element("li", { "data-stage": event.stage },
      element("b", {}, titles[event.stage]), element("span", { className: "said" }, event.text), element("span", { className: "between" }, between));
  }

  /** Buttons for the other versions of the object. */
  drawVersions(versions) {
    const others = versions.filter((one) => one.id !== this.id).slice(0, 6);
    this.versions.hidden = others.length === 0;
    this.versions.replaceChildren("Other versions of this object: ", ...others.map((one) => element("button", {
      type: "button", className: "plain", onclick: () => this.begin(one.id),
    }, `${one.version}, ${one.id === this.item?.event.into ? "continues for this one" : isLast(one.event) ? "ended" : titles[one.event.stage]}`)));
  }

  /** Requests the object while its panel is open, and again when the store has another version. */
  async drawObject() {
    if (!this.object.open || !this.key) return;
    const stored = this.model.objects.get(this.key)?.item ?? "";
    const wanted = `${this.key} ${stored}`;
    if (this.yamlOf === wanted || this.asking) return;
    this.yamlOf = wanted;
    if (!stored) {
      this.yaml.textContent = "The store has no such object.";
      return;
    }
    this.asking = true;
    try {
      const response = await fetch(`object?key=${encodeURIComponent(this.key)}`, { signal: AbortSignal.timeout(10000) });
      const text = await response.text();
      if (this.yamlOf === wanted) this.yaml.textContent = text;
    } catch {
      this.yaml.textContent = "The server does not respond.";
      this.yamlOf = undefined;
    }
    // A version that arrived meanwhile is requested after a wait.
    setTimeout(() => {
      this.asking = false;
      this.drawObject();
    }, patience);
  }
}

/** Where an item is, in words. */
function place(event) {
  if (event.into) return "It ended here: its key waited already, and the other item continues.";
  if (event.stage === "done") return "It ended here: the work is done.";
  return `It is in: ${titles[event.stage]}.`;
}

/** The list of events. */
export class Log {
  constructor(list, model) { Object.assign(this, { list, model, drawn: 0 }); }

  show(followed) {
    const wanted = `${this.model.run} ${this.model.seq} ${followed}`;
    if (wanted === this.drawn) return;
    this.drawn = wanted;
    const rows = this.model.log.slice(-rowsShown).reverse();
    while (this.list.childElementCount < rows.length) {
      this.list.append(element("li", {}, element("time"), element("b"), element("span")));
    }
    while (this.list.childElementCount > rows.length) this.list.lastElementChild.remove();
    rows.forEach((event, at) => {
      const row = this.list.children[at];
      const [time, stage, text] = row.children;
      time.textContent = clock(event.time);
      stage.textContent = titles[event.stage];
      text.textContent = event.text;
      row.dataset.stage = event.stage;
      row.classList.toggle("followed", Boolean(followed) && event.item === followed);
    });
  }
}

const rowsShown = 40;
