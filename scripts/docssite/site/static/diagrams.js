// Draws the diagrams, in the reader's colours, and again when these change. Without Mermaid their text stays.
"use strict";

(() => {
  if (!window.mermaid) return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const wide = matchMedia("(min-width: 60rem)");
  const diagrams = [...document.querySelectorAll("pre.mermaid")].map((pre) => ({ box: pre.parentElement, text: pre.textContent }));

  const draw = async () => {
    window.mermaid.initialize({
      startOnLoad: false, securityLevel: "strict", fontFamily: "system-ui, sans-serif",
      theme: dark.matches ? "dark" : "neutral",
      // Mermaid's own for these two are a shade too light for the dark theme's text.
      themeVariables: dark.matches ? { edgeLabelBackground: "#30363d", noteBkgColor: "#30363d" } : {},
    });
    for (const [n, { box, text }] of diagrams.entries()) {
      const { svg } = await window.mermaid.render(`diagram-${n}`, text);
      box.innerHTML = svg;
      // Where it would be too small to be read it is scrolled.
      const picture = box.querySelector("svg");
      const width = picture.viewBox.baseVal.width;
      picture.style.maxWidth = `${width}px`;
      picture.style.minWidth = `${(wide.matches ? 0.6 : 0.65) * width}px`;
      box.dataset.drawn = dark.matches ? "dark" : "light";
    }
  };
  let last = draw();
  dark.addEventListener("change", () => { last = last.then(draw); });
})();
