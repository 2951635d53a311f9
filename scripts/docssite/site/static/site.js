// The search, the buttons that copy commands, and the list of chapters, which is open where there is room for it.
"use strict";

(() => {
  const script = document.currentScript;
  // The address of the site's root: it may be any folder.
  const root = new URL(".", script.src).href;

  for (const menu of document.querySelectorAll(".menu")) {
    const wide = matchMedia("(min-width: 60rem)");
    const fit = () => { menu.open = wide.matches; };
    wide.addEventListener("change", fit);
    fit();
    menu.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  for (const block of document.querySelectorAll(".code-sh")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.querySelector("pre").innerText);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(block.querySelector("pre"));
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }

  const report = (text) => {
    const line = document.querySelector("#progress");
    line.textContent = text;
    line.hidden = false;
  };
  if (window.progress?.done) {
    const boxes = [...document.querySelectorAll("[data-exercise]")];
    const done = boxes.filter((item) => window.progress.done.includes(item.dataset.exercise));
    for (const item of done) {
      item.classList.add("done");
      item.append(Object.assign(document.createElement("span"), { textContent: " done" }));
    }
    report(`${done.length} of ${boxes.length} are done. make learn opens the next one.`);
  } else if (window.progress?.error) {
    report(window.progress.error);
  }

  const box = document.querySelector(".search");
  const input = box.querySelector("input");
  const found = box.querySelector("ol");
  box.hidden = false;

  let loading;
  const load = () => loading ??= new Promise((resolve, reject) => {
    const index = document.createElement("script");
    index.src = root + "search-index.js";
    index.onload = () => resolve(window.searchIndex.map((one) => ({ ...one, small: one.text.toLowerCase(), head: `${one.page} ${one.title}`.toLowerCase() })));
    index.onerror = () => { loading = undefined; reject(new Error("the index of the search cannot be loaded")); };
    document.head.append(index);
  });

  // How well a section fits: every word has to be in it, and counts more in a heading and as a whole word.
  const score = (section, words) => {
    let sum = 0;
    for (const word of words) {
      const whole = new RegExp(`(^|[^a-z0-9])${word.replace(/[^a-z0-9]/g, "\\$&")}([^a-z0-9]|$)`);
      const inHead = section.head.includes(word);
      const times = section.small.split(word).length - 1;
      if (!inHead && times === 0) return 0;
      sum += (inHead ? 20 : 0) + (whole.test(section.head) ? 20 : 0) + Math.min(times, 5) + (whole.test(section.small) ? 5 : 0);
    }
    return sum;
  };

  // The words around the first one that was looked for, with all of them marked.
  const excerpt = (section, words) => {
    const at = Math.max(0, Math.min(...words.map((word) => section.small.indexOf(word)).filter((place) => place >= 0)) - 50);
    const from = Number.isFinite(at) ? at : 0;
    const text = (from > 0 ? "… " : "") + section.text.slice(from, from + 160) + "…";
    const small = document.createElement("small");
    const pattern = new RegExp(`(${words.map((word) => word.replace(/[^a-z0-9]/g, "\\$&")).join("|")})`, "gi");
    text.split(pattern).forEach((part, n) => {
      const node = n % 2 ? document.createElement("mark") : document.createTextNode("");
      node.textContent = part;
      small.append(node);
    });
    return small;
  };

  const show = (sections, words) => {
    found.replaceChildren(...sections.map((section) => {
      const link = document.createElement("a");
      link.href = root + section.url.slice(1);
      const title = document.createElement("b");
      title.textContent = section.title === section.page ? section.page : `${section.page}: ${section.title}`;
      link.append(title, excerpt(section, words));
      const item = document.createElement("li");
      item.append(link);
      return item;
    }));
    if (sections.length === 0) found.append(Object.assign(document.createElement("li"), { textContent: "Nothing found" }));
    found.hidden = false;
  };

  input.addEventListener("input", async () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
    if (words.length === 0) { found.hidden = true; return; }
    const asked = input.value;
    const sections = await load();
    if (asked !== input.value) return;
    const best = sections.map((section) => [score(section, words), section]).filter(([points]) => points > 0);
    best.sort((a, b) => b[0] - a[0]);
    show(best.slice(0, 15).map(([, section]) => section), words);
  });

  box.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Escape") { input.value = ""; found.hidden = true; input.focus(); }
    else if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? links[at - 1] : input).focus();
    else if (event.key === "Enter" && document.activeElement === input) links[0]?.click();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea")) return;
    event.preventDefault();
    input.focus();
  });
})();
