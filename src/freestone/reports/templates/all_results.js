// Shows the results that hold every word of the search, as one types. all_results.py decides the same of an address.
const box = document.getElementById("q");
const count = document.getElementById("count");
const rows = [...document.querySelectorAll("ol.results > li")];

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !words.every((word) => row.dataset.text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  count.textContent = `${shown} of ${rows.length} results`;
  history.replaceState(null, "", words.length ? `/?q=${encodeURIComponent(box.value)}` : "/");
}

box.addEventListener("input", filter);
// A browser that comes back may have kept what was typed.
window.addEventListener("pageshow", filter);
