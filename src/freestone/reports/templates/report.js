// Draws every figure of the page from the document next to it. Colours are the page's variables, so a change between
// light and dark needs nothing from here.
for (const drawing of document.querySelectorAll(".drawing")) {
  const source = document.getElementById(drawing.dataset.source);
  const options = { mode: "vega-lite", renderer: "svg", actions: false };
  window.vegaEmbed(drawing, JSON.parse(source.textContent), options).catch((error) => {
    drawing.textContent = "This figure could not be drawn; its numbers are in the table below.";
    console.error(error);
  });
}

// A figure measures its container when the window is resized. The column can change without that, for instance when a
// scroll bar comes or a print preview goes.
let width = 0;
new ResizeObserver(([column]) => {
  if (width !== 0 && column.contentRect.width !== width) window.dispatchEvent(new Event("resize"));
  width = column.contentRect.width;
}).observe(document.querySelector("main"));
