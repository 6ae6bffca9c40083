// Brings the column that a view stands in to the top of the page, once for each `key`.
const DONE = new Set();

export default function (component) {
  const { parentElement, data } = component;
  if (DONE.has(data.key)) return;
  DONE.add(data.key);
  const root = parentElement.getRootNode();
  const column = (root.host ?? parentElement).closest("[data-testid=stColumn]");
  if (!column) return;
  column.style.scrollMarginTop = "5rem"; // the links of the pages lie over the top
  column.scrollIntoView({ block: "start" });
}
