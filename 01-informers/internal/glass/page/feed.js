// The connection to the server: a state first, and then every event after it.

/** How long to wait before another attempt, in milliseconds. */
const patience = 2000;

export class Feed {
  /**
   * model receives states and events. changed is called after every change of it, and connection with "connecting",
   * "connected" or "lost". say gets sentences for a screen reader.
   */
  constructor(model, { changed, connection, say }) {
    Object.assign(this, { model, changed, connection, say });
    this.pending = null; // batches that arrive during a request for a state
    this.wanted = false; // another state is needed after that one
  }

  /** Begins, also with a server that was restarted. */
  async begin() {
    this.source?.close();
    this.connection("connecting");
    const cursor = await this.refresh();
    if (cursor === undefined) setTimeout(() => this.begin(), patience);
    else this.listen(cursor);
  }

  /** Replaces the model by /state, and applies the batches that arrived meanwhile. */
  async refresh() {
    if (this.pending) {
      this.wanted = true;
      return undefined;
    }
    this.pending = [];
    let state;
    try {
      const response = await fetch("state", { signal: AbortSignal.timeout(10000) });
      if (response.ok) state = await response.json();
    } catch {
      // The server does not respond: the caller retries.
    }
    const pending = this.pending;
    this.pending = null;
    if (!state) {
      this.connection("lost");
      return undefined;
    }
    this.model.begin(state);
    for (const batch of pending) this.take(batch);
    this.changed();
    if (this.wanted) {
      this.wanted = false;
      this.redraw();
    }
    return state.cursor;
  }

  /** Refreshes until it succeeds, while the connection stays open. */
  async redraw() {
    if (await this.refresh() === undefined && !this.pending) setTimeout(() => this.redraw(), patience);
  }

  listen(cursor) {
    const source = new EventSource(`events?after=${encodeURIComponent(cursor)}`);
    this.source = source;
    let last = cursor;
    const on = (type, take) => source.addEventListener(type, (message) => {
      last = message.lastEventId || last;
      take(message);
    });
    source.onopen = () => this.connection("connected");
    on("batch", (message) => this.take(JSON.parse(message.data)));
    on("dropped", (message) => this.dropped(JSON.parse(message.data)));
    on("reset", () => {
      this.say("The server was restarted. The page shows its new state.");
      this.begin();
    });
    source.onerror = () => {
      this.connection("lost");
      // The browser reconnects by itself, but not after a response with an error.
      if (source.readyState === EventSource.CLOSED && source === this.source) setTimeout(() => this.listen(last), patience);
    };
  }

  take(batch) {
    if (this.pending) this.pending.push(batch);
    else if (!this.model.take(batch)) this.redraw();
    this.changed();
  }

  dropped({ count }) {
    this.model.missed += count;
    this.redraw();
  }
}
