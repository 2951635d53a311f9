// The parts of the path: their names, their types in client-go, and what they are for.

/** The parts in the order of an item's path. now is the name in Counts, if the part has a count. */
export const parts = [
  {
    stage: "list", title: "List", type: "cache.ListerWatcher",
    text: "All objects, at the start and after a watch that cannot be continued.",
  },
  {
    stage: "watch", title: "Watch", type: "cache.Reflector",
    text: "Every change after the list, in one long response of the API server.",
  },
  {
    stage: "queue", title: "Queue", type: "cache.RealFIFO", now: "queue", unit: ["delta", "deltas"],
    text: "Changes in the order of their arrival, as deltas. A whole list is one delta.",
  },
  {
    stage: "store", title: "Store", type: "cache.Indexer", now: "store", unit: ["object", "objects"],
    text: "The latest known state of each object. Listers read from here and send no requests.",
  },
  {
    stage: "handler", title: "Handlers", type: "cache.TypedResourceEventHandler",
    text: "Your functions are called for each change, after the store has it. They enqueue the key.",
  },
  {
    stage: "waiting", title: "Waiting", type: "workqueue.Typed", now: "waiting", unit: ["key", "keys"],
    text: "Keys that wait for a worker. A key waits only once.",
  },
  {
    stage: "working", title: "Working", type: "Queue.Get … Done", now: "working", unit: ["key", "keys"],
    text: "A worker processes the key and reads the store. No other worker gets this key.",
  },
  {
    stage: "backoff", title: "Backoff", type: "workqueue.TypedRateLimitingInterface", now: "backoff", unit: ["key", "keys"],
    text: "The work failed. The rate limiter delays the key, longer after each failure, and then queues it again.",
  },
  {
    stage: "done", title: "Done", type: "Queue.Forget, Done",
    text: "The work succeeded. The rate limiter forgets the key's failures.",
  },
];

/** The titles by stage. */
export const titles = Object.fromEntries([...parts.map((part) => [part.stage, part.title]), ["control", "You"]]);

/** The stages that have keys only. */
export const keyStages = new Set(["waiting", "working", "backoff", "done"]);

/** Whether an event is the last one of its item. */
export const isLast = (event) => event.stage === "done" || Boolean(event.into);

/** A number with separators: 1,940. */
export const count = (number) => number.toLocaleString("en");

/** A time: seconds since the start of the informer. */
export const clock = (ms) => {
  const minutes = Math.floor(ms / 60000);
  const seconds = ((ms % 60000) / 1000).toFixed(3);
  return minutes ? `${minutes}:${seconds.padStart(6, "0")}` : `${seconds} s`;
};

/** The same, short enough for a card. */
export const shortClock = (ms) => ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : clock(ms).split(".")[0];

/** A duration. The server measures in milliseconds. */
export const duration = (ms) => {
  if (ms < 1) return "under 1 ms";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
};

/** Returns a new element. Text is always set as text. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (property in made) made[property] = value;
    else made.setAttribute(property, value);
  }
  made.append(...children);
  return made;
}
