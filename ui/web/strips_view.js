/* Strips that `ui/web/strips_view.py` has decided on. Every text is untrusted and becomes a text node; nothing
   here parses HTML. A part of a strip is for the mouse; the keyboard has the name, which opens a list of parts. */

const mounted = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let view = mounted.get(parentElement);
  if (!view) {
    view = { element: parentElement.appendChild(node("div", "strips")), drawn: null };
    mounted.set(parentElement, view);
  }
  view.tell = (value) => setTriggerValue("did", value);
  const wanted = JSON.stringify(data);
  if (wanted !== view.drawn) {
    view.drawn = wanted;
    draw(view, data);
  }
  return () => {
    view.element.remove();
    mounted.delete(parentElement);
  };
}

function draw(view, data) {
  const active = view.element.getRootNode().activeElement;
  const focused = active && view.element.contains(active) ? active.dataset.row : null;
  const table = node("table");
  table.setAttribute("aria-label", data.label);
  const widths = table.appendChild(node("colgroup"));
  widths.appendChild(node("col")).style.width = "30%";
  widths.appendChild(node("col"));
  data.columns.forEach(() => (widths.appendChild(node("col")).style.width = "60px"));
  const head = table.appendChild(node("thead")).appendChild(node("tr"));
  for (const name of ["Document", "First byte to last", ...data.columns]) {
    const cell = head.appendChild(node("th", data.columns.includes(name) ? "right" : "", name));
    cell.scope = "col";
  }
  const body = table.appendChild(node("tbody"));
  data.rows.forEach((row) => body.append(drawRow(view, data, row)));
  view.element.replaceChildren(legend(data.words), table);
  if (focused !== null) {
    [...view.element.querySelectorAll("button")]
      .find((one) => one.dataset.row === focused)
      ?.focus({ preventScroll: true });
  }
}

function drawRow(view, data, row) {
  const line = node("tr", row.key === data.chosen ? "chosen" : "");
  const button = line.appendChild(node("td")).appendChild(node("button", "", row.name));
  button.type = "button";
  button.title = row.name;
  button.dataset.row = row.key;
  if (row.key === data.chosen) button.setAttribute("aria-current", "true");
  button.onclick = () => view.tell({ key: row.key });
  line.appendChild(node("td")).append(strip(view, data, row));
  row.cells.forEach((cell) => line.append(node("td", "right", cell)));
  return line;
}

function strip(view, data, row) {
  const strip = node("div", "strip");
  strip.setAttribute("role", "img");
  strip.setAttribute("aria-label", data.columns.map((name, at) => `${name} ${row.cells[at]}`).join(", "));
  for (const [start, end, how] of row.parts) {
    const part = strip.appendChild(node("span", `part ${how}`));
    part.style.flex = `${end - start} 0 0`;
    part.title = `${data.words[how]}: bytes ${start.toLocaleString("en")} to ${end.toLocaleString("en")}`;
    part.onclick = () => view.tell({ key: row.key, start, end });
  }
  return strip;
}

function legend(words) {
  const box = node("div", "legend");
  for (const [how, word] of Object.entries(words)) {
    const entry = box.appendChild(node("span"));
    entry.append(node("i", how), document.createTextNode(word));
  }
  return box;
}

function node(tag, className = "", text = "") {
  const element = document.createElement(tag);
  element.className = className;
  if (text) element.textContent = text;
  return element;
}
