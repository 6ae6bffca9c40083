/* Rows that `ui/web/rows_view.py` has decided on, as a table. Every text is untrusted and becomes a text node;
   nothing here parses HTML. */

const mounted = new WeakMap();
const OPEN = 140; // pixels that a column without a width has at least

export default function ({ data, parentElement, setTriggerValue }) {
  let table = mounted.get(parentElement);
  if (!table) {
    table = new Table(parentElement);
    mounted.set(parentElement, table);
  }
  table.tell = (value) => setTriggerValue("did", value);
  table.update(data);
  return () => {
    table.watch.disconnect();
    table.element.remove();
    mounted.delete(parentElement);
  };
}

class Table {
  constructor(parent) {
    this.element = parent.appendChild(node("div", "rows"));
    this.element.onkeydown = (event) => this.onKey(event);
    this.drawn = null;
    this.count = 0; // choices made here; the page knows of data.count of them
    this.chosen = new Set();
    this.columns = []; // {element, least (pixels), share (of the room that is left)}
    this.watch = new ResizeObserver(() => this.spread());
    this.watch.observe(this.element);
  }

  update(data) {
    this.data = data;
    if (data.chosen !== null && data.count >= this.count) {
      this.count = data.count;
      this.chosen = new Set(data.chosen);
    }
    const { chosen, count, ...rest } = data;
    const wanted = JSON.stringify(rest);
    if (wanted !== this.drawn) {
      this.drawn = wanted;
      this.draw();
    }
    this.mark();
  }

  draw() {
    const focused = this.focused();
    const { columns, rows, actions, chosen, label } = this.data;
    this.boxes = new Map();
    const table = node("table");
    table.setAttribute("aria-label", label);
    const widths = table.appendChild(node("colgroup"));
    const add = (least, share) => this.columns.push({ element: widths.appendChild(node("col")), least, share });
    this.columns = [];
    if (chosen !== null) add(34, 0);
    const open = columns.some((column) => column.width === null);
    for (const { width, right } of columns) add(width ?? OPEN, width === null ? 4 : open && right ? 0 : 1);
    // as wide as the buttons in it
    if (actions.length) add(actions.reduce((sum, word) => sum + 24 + 7.5 * word.length, 8), 0);
    const head = table.appendChild(node("thead")).appendChild(node("tr"));
    if (chosen !== null) head.appendChild(node("th", "box")).append(this.allBox());
    columns.forEach((column) => head.append(this.head(column)));
    if (actions.length) head.appendChild(node("td"));
    const body = table.appendChild(node("tbody"));
    rows.forEach((row) => body.append(this.row(row)));
    this.element.replaceChildren(table);
    this.spread();
    if (focused) this.focus(focused);
  }

  /* Open columns take most of the room that is left, columns of words some, figures none. */
  spread() {
    const total = (name) => this.columns.reduce((sum, column) => sum + column[name], 0);
    const left = Math.max(0, this.element.clientWidth - total("least")) / (total("share") || 1);
    let width = 0;
    for (const { element, least, share } of this.columns) {
      const pixels = Math.floor(least + left * share);
      element.style.width = `${pixels}px`;
      width += pixels;
    }
    const table = this.element.querySelector("table");
    if (table) table.style.minWidth = `${width}px`;
  }

  head(column) {
    const cell = node("th", column.right ? "right" : "");
    cell.scope = "col";
    if (!column.sortable) {
      cell.textContent = column.name;
      return cell;
    }
    cell.setAttribute("aria-sort", column.order ?? "none");
    const sign = { ascending: " ▲", descending: " ▼" }[column.order] ?? "";
    const button = control(node("button", "sort", column.name), `sort ${column.name}`, "");
    button.append(Object.assign(node("span", "sign", sign), { ariaHidden: "true" }));
    button.type = "button";
    button.onclick = () => this.tell({ what: "sort", word: column.name });
    cell.append(button);
    return cell;
  }

  row(row) {
    const { columns, actions, chosen } = this.data;
    const line = node("tr");
    if (row.note) line.title = row.note;
    if (chosen !== null) line.appendChild(node("td", "box")).append(this.box(row));
    row.cells.forEach((cell, index) => {
      const place = line.appendChild(node("td", columns[index]?.right ? "right" : ""));
      place.append(index === 0 && row.href ? this.link(row, cell) : content(cell));
    });
    if (actions.length) {
      const place = line.appendChild(node("td", "actions"));
      for (const word of actions) {
        const button = control(node("button", "action", word), word, row.key);
        button.type = "button";
        button.setAttribute("aria-label", `${word}: ${words(row.cells[0])}`);
        button.onclick = () => this.tell({ what: "act", word, key: row.key });
        place.append(button);
      }
    }
    return line;
  }

  link(row, cell) {
    const link = control(node("a"), "open", row.key);
    const target = new URL(row.href, document.baseURI);
    if (target.origin === location.origin) link.href = target.href; // never anything but the app
    link.append(content(cell));
    link.onclick = (event) => {
      if (!this.data.opens || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.tell({ what: "open", key: row.key });
    };
    return link;
  }

  box(row) {
    const box = checkbox(`Choose: ${words(row.cells[0])}`);
    control(box, "choose", row.key);
    this.boxes.set(row.key, box);
    box.onchange = () => {
      if (box.checked) this.chosen.add(row.key);
      else this.chosen.delete(row.key);
      this.choose();
    };
    return box;
  }

  allBox() {
    this.all = checkbox("Choose all rows of this page");
    control(this.all, "choose all", "");
    this.all.onchange = () => {
      this.chosen = new Set(this.all.checked ? this.boxes.keys() : []);
      this.choose();
    };
    return this.all;
  }

  choose() {
    this.count += 1;
    this.mark();
    this.tell({ what: "choose", keys: [...this.chosen], count: this.count });
  }

  mark() {
    if (this.data.chosen === null) return;
    let checked = 0;
    for (const [key, box] of this.boxes) {
      box.checked = this.chosen.has(key);
      checked += box.checked;
      box.closest("tr").classList.toggle("chosen", box.checked);
    }
    this.all.checked = checked > 0 && checked === this.boxes.size;
    this.all.indeterminate = checked > 0 && checked < this.boxes.size;
  }

  /* The arrow keys go to the same control of the next row. */
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const from = event.target.closest?.("[data-name]");
    if (!step || !from) return;
    event.preventDefault();
    event.stopPropagation(); // the page has shortcuts of its own
    const column = [...this.element.querySelectorAll("tbody [data-name]")].filter(
      (one) => one.dataset.name === from.dataset.name,
    );
    column[column.indexOf(from) + step]?.focus();
  }

  focused() {
    const active = this.element.getRootNode().activeElement;
    return active && this.element.contains(active) ? { ...active.dataset } : null;
  }

  focus({ name, row }) {
    const same = (one) => one.dataset.name === name && one.dataset.row === row;
    [...this.element.querySelectorAll("[data-name]")].find(same)?.focus({ preventScroll: true });
  }
}

function content(cell) {
  if (Array.isArray(cell)) return node("span", `badge ${cell[1]}`, cell[0]);
  const text = node("span", "text", cell);
  if (cell.length > 24) text.title = cell; // it may be cut
  return text;
}

function words(cell) {
  return Array.isArray(cell) ? cell[0] : cell;
}

function control(element, name, row) {
  element.dataset.name = name;
  element.dataset.row = row;
  return element;
}

function checkbox(label) {
  const box = node("input");
  box.type = "checkbox";
  box.setAttribute("aria-label", label);
  return box;
}

function node(tag, className = "", text = "") {
  const element = document.createElement(tag);
  element.className = className;
  if (text) element.textContent = text;
  return element;
}
