/* Two texts side by side, as `ui/web/diff_view.py` has compared them. Every text becomes a text node. */

export default function ({ data, parentElement }) {
  const table = document.createElement("table");
  table.setAttribute("aria-label", data.label);
  const head = table.appendChild(document.createElement("thead")).appendChild(document.createElement("tr"));
  for (const name of data.names) {
    const cell = head.appendChild(document.createElement("th"));
    cell.scope = "col";
    cell.textContent = name;
  }
  const body = table.appendChild(document.createElement("tbody"));
  for (const row of data.rows) {
    const line = body.appendChild(document.createElement("tr"));
    if (typeof row === "string") line.append(gapOf(row));
    else row.forEach((parts, side) => line.append(cellOf(parts, side)));
  }
  const old = parentElement.querySelector("table");
  if (old) old.replaceWith(table);
  else parentElement.append(table);
  return () => table.remove();
}

/* In the place of equal lines: how many they are. */
function gapOf(words) {
  const cell = document.createElement("td");
  cell.className = "gap";
  cell.colSpan = 2;
  cell.textContent = words;
  return cell;
}

function cellOf(parts, side) {
  const cell = document.createElement("td");
  if (parts === null) {
    cell.className = "none";
    return cell;
  }
  for (const [text, mark] of parts) {
    const tag = mark === "other" ? (side ? "ins" : "del") : "span";
    const piece = cell.appendChild(document.createElement(tag));
    piece.textContent = text;
    if (mark !== "form") continue;
    piece.className = "form";
    piece.title = "only letter case or white space differs";
  }
  if (parts.some(([, mark]) => mark !== "same")) cell.className = side ? "new" : "old";
  return cell;
}
