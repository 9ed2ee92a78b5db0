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
