// Draws the figures of the page, each from the document next to it, in the look that they share. Colours are the page's
// variables, so a change between light and dark needs nothing from here. What is folded is drawn when it is opened: a
// report of many workloads has thousands of figures, and folded they have no width.
function draw(drawing) {
  const source = document.getElementById(drawing.dataset.source);
  const options = { mode: "vega-lite", renderer: "svg", actions: false, config: look };
  delete drawing.dataset.source;
  window.vegaEmbed(drawing, JSON.parse(source.textContent), options).catch((error) => {
    drawing.textContent = "This figure could not be drawn; its numbers are in the table below.";
    console.error(error);
  });
}

function drawVisible() {
  for (const drawing of document.querySelectorAll(".drawing[data-source]")) {
    if (!drawing.closest("details:not([open])")) draw(drawing);
  }
}

// What a link leads to is opened.
function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  drawVisible();
  target.scrollIntoView();
}

drawVisible();
document.addEventListener("toggle", drawVisible, true);
window.addEventListener("hashchange", reveal);
reveal();

// On paper nothing can be opened.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.fold:not([open])")];
  for (const fold of opened) fold.open = true;
  drawVisible();
});
window.addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
});

// A figure measures its container when the window is resized. The column can change without that, for instance when a
// scroll bar comes or a print preview goes.
let width = 0;
new ResizeObserver(([column]) => {
  if (width !== 0 && column.contentRect.width !== width) window.dispatchEvent(new Event("resize"));
  width = column.contentRect.width;
}).observe(document.querySelector("main"));
