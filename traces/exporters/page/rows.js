/* The recursion tree: rows that close and open, chosen by mouse or key; only those in sight are in the
   document. Every text is untrusted and becomes a text node; nothing here parses HTML. */
"use strict";

const ROW = 26; // pixels, as in the style
const SPARE = 10; // rows drawn above and below what is in sight

function node(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

function button(text, act) {
  const element = node("button", "", text);
  element.type = "button";
  element.onclick = act;
  return element;
}

class Tree {
  /* `rows` are columns by name; `chosen` is told the number of a row. */
  constructor(rows, chosen) {
    this.rows = rows;
    this.count = rows.level.length;
    this.chosen = chosen;
    this.open = rows.opened.map(Boolean);
    this.fits = null; // numbers of the rows that are asked for; null: all
    this.active = 0;
    this.index();
    this.build();
    this.list();
  }

  /* Places among siblings, for screen readers. */
  index() {
    this.parent = new Int32Array(this.count).fill(-1);
    this.place = new Int32Array(this.count);
    this.siblings = new Int32Array(this.count + 1); // by parent; the last entry is that of the top rows
    const path = [];
    for (let row = 0; row < this.count; row++) {
      path.length = Math.min(this.rows.level[row], path.length);
      this.parent[row] = path[path.length - 1] ?? -1;
      this.place[row] = ++this.siblings[this.parent[row] < 0 ? this.count : this.parent[row]];
      path.push(row);
    }
  }

  build() {
    this.head = node("div", "head");
    this.head.setAttribute("aria-hidden", "true");
    const titles = [["", "Span"], ["", "Status"], ["number", "Tokens"], ["number", "Cost"], ["number", "Time"]];
    for (const [name, title] of [...titles, ["timeline", ""]]) this.head.append(node("span", name, title));
    this.scroller = node("div", "rows");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "tree");
    this.scroller.setAttribute("aria-label", "Recursion tree of the run");
    this.space = this.scroller.appendChild(node("div", "space"));
    this.space.setAttribute("role", "presentation");
    this.none = this.scroller.appendChild(node("p", "none", "No span matches."));
    this.none.hidden = true;
    this.scroller.onscroll = () => this.draw();
    this.scroller.onkeydown = (event) => this.onKey(event);
    this.space.onclick = (event) => this.onClick(event);
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  hasChildren(row) {
    return row + 1 < this.count && this.rows.level[row + 1] > this.rows.level[row];
  }

  list() {
    const { level } = this.rows;
    this.visible = [];
    for (let row = 0; row < this.count; ) {
      if (this.shown && !this.shown.has(row)) {
        const depth = level[row++];
        while (row < this.count && level[row] > depth) row++;
        continue;
      }
      this.visible.push(row);
      const depth = level[row];
      const open = this.open[row++];
      if (!open) while (row < this.count && level[row] > depth) row++;
    }
    this.space.style.height = `${this.visible.length * ROW}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const last = Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / ROW) + SPARE;
    const drawn = this.visible.slice(first, last).map((row, index) => this.drawRow(row, first + index));
    this.space.replaceChildren(...drawn);
    const active = drawn.some((element) => element.id === `row-${this.active}`);
    if (active) this.scroller.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  drawRow(row, index) {
    const of = (name) => this.rows[name][row];
    const fan = of("fan") === 1;
    const element = node("div", `row${fan ? " fan" : ""}${this.fits && !this.fits.has(row) ? " parent" : ""}`);
    element.id = `row-${row}`;
    element.style.top = `${index * ROW}px`;
    element.title = [of("label"), of("note")].filter(Boolean).join(" · ");
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", of("level") + 1);
    element.setAttribute("aria-posinset", this.place[row]);
    element.setAttribute("aria-setsize", this.siblings[this.parent[row] < 0 ? this.count : this.parent[row]]);
    element.setAttribute("aria-selected", row === this.active);
    const inner = this.hasChildren(row);
    if (inner) element.setAttribute("aria-expanded", this.open[row]);
    const name = node("span", "name");
    // deep levels are set in less and less, so that their names stay in sight
    name.style.paddingLeft = `${Math.min(of("level"), 8) * 14 + Math.min(Math.max(of("level") - 8, 0), 20) * 2}px`;
    name.append(
      node("span", "twist", inner ? (this.open[row] ? "▾" : "▸") : ""),
      node("span", fan ? `title ${of("tone")}` : "title", of("label")),
      node("span", "note", of("note")),
    );
    const line = node("span", `line ${of("tone")}`);
    if (of("width")) {
      const bar = line.appendChild(node("i"));
      bar.style.left = `${of("start") / 100}%`;
      bar.style.width = `${of("width") / 100}%`;
    }
    element.append(name);
    if (!fan) element.append(node("span", `state ${of("tone")}`, of("status")));
    for (const column of ["tokens", "cost", "time"]) element.append(node("span", `number ${column}`, of(column)));
    element.append(line);
    return element;
  }

  onClick(event) {
    const element = event.target.closest(".row");
    if (!element) return;
    const row = Number(element.id.slice(4));
    if (event.target.classList.contains("twist") || (this.rows.fan[row] && this.active === row)) this.toggle(row);
    else this.choose(row);
  }

  onKey(event) {
    const here = Math.max(0, this.visible.indexOf(this.active));
    const row = this.visible[here];
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const inner = this.hasChildren(row);
    const act = {
      ArrowDown: () => this.step(here + 1),
      ArrowUp: () => this.step(here - 1),
      PageDown: () => this.step(here + page),
      PageUp: () => this.step(here - page),
      Home: () => this.step(0),
      End: () => this.step(this.visible.length - 1),
      ArrowRight: () => (inner && !this.open[row] ? this.toggle(row) : inner && this.step(here + 1)),
      ArrowLeft: () =>
        inner && this.open[row] ? this.toggle(row) : this.parent[row] >= 0 && this.choose(this.parent[row]),
      Enter: () => inner && this.toggle(row),
      " ": () => inner && this.toggle(row),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  step(index) {
    this.choose(this.visible[Math.max(0, Math.min(index, this.visible.length - 1))]);
  }

  toggle(row) {
    if (!this.hasChildren(row)) return;
    this.open[row] = !this.open[row];
    if (!this.open[row] && this.isInside(this.active, row)) this.choose(row);
    this.list();
  }

  isInside(row, top) {
    for (let up = this.parent[row]; up >= 0; up = this.parent[up]) if (up === top) return true;
    return false;
  }

  /* Make a row the chosen one, and see to it that it is in sight. */
  choose(row) {
    this.active = row;
    let opened = false;
    for (let up = this.parent[row]; up >= 0; up = this.parent[up])
      if (!this.open[up]) opened = this.open[up] = true;
    if (opened) this.list();
    const top = this.visible.indexOf(row) * ROW;
    const height = this.scroller.clientHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW > this.scroller.scrollTop + height) this.scroller.scrollTop = top + ROW - height;
    this.draw();
    this.chosen(row);
  }

  setAll(open) {
    for (let row = 0; row < this.count; row++) this.open[row] = open || this.rows.level[row] === 0;
    for (; !open && this.rows.level[this.active] > 1; ) this.active = this.parent[this.active];
    this.list();
    this.choose(this.active);
  }

  /* Show only these rows and what stands above them; null shows all. */
  narrow(fits) {
    this.fits = fits;
    this.shown = null;
    if (fits) {
      this.shown = new Set(fits);
      for (const row of fits)
        for (let up = this.parent[row]; up >= 0 && !(this.shown.has(up) && this.open[up]); up = this.parent[up]) {
          this.shown.add(up);
          this.open[up] = true;
        }
    }
    this.scroller.scrollTop = 0;
    this.list();
  }
}
