/* Rows that stand below each other, closed and opened, chosen by mouse or key; only those in sight are in the
   document. Needs `view_parts.js` before it. A view is a subclass: it draws the head and the cells of a row. */

const ROW = 26; // pixels, as in the style sheets
const SPARE = 8; // rows drawn above and below what is in sight

class TreeList {
  constructor(parent, run, name, label) {
    this.run = run;
    this.names = null; // of the pieces on display
    this.rows = null; // columns, by name
    this.count = 0;
    this.visible = []; // numbers of the rows that no closed parent hides
    // `selected` and `active` are keys: row numbers change while a run grows
    this.kept = kept(`${name} ${run}`, { toggled: new Map(), active: null, top: 0, token: null });
    this.element = parent.appendChild(node("div", name));
    this.head();
    this.build(label);
  }

  build(label) {
    this.scroller = this.element.appendChild(node("div", "rows"));
    this.scroller.tabIndex = 0;
    set(this.scroller, { role: "tree", "aria-label": label });
    this.space = this.scroller.appendChild(node("div", "space"));
    this.space.setAttribute("role", "presentation");
    this.scroller.onscroll = () => {
      if (!this.scroller.clientHeight) return; // hidden or taken out: the browser's 0 is not the person's
      this.kept.top = this.scroller.scrollTop;
      this.draw();
    };
    this.scroller.onkeydown = (event) => this.onKey(event);
    this.space.onclick = (event) => this.onClick(event);
    this.laidOut = false;
    this.sizes = new ResizeObserver(() => {
      const laidOut = this.scroller.clientHeight > 0;
      // the position cannot be set before there is a layout, and is lost while there is none
      if (laidOut && !this.laidOut) this.scroller.scrollTop = this.kept.top;
      this.laidOut = laidOut;
      this.draw();
    });
    this.sizes.observe(this.scroller);
  }

  /* What stands above the rows. */
  head() {}

  /* More of a row than its name; `cell(name)` is what stands in a column of it. */
  cells() {
    return [];
  }

  /* What the name of a row is made of. */
  label(cell) {
    return [node("span", "label", cell("label"))];
  }

  classes(row) {
    return this.rows.look[row];
  }

  /* Whether a row stands for something that can be shown. */
  shows() {
    return true;
  }

  remove() {
    this.sizes.disconnect();
    this.element.remove();
    shared.shown.delete(this);
  }

  update(data) {
    this.wanted = data;
    this.follow();
  }

  /* Do what Python asks for as soon as all pieces of the rows are here; until then the old rows stay. */
  follow() {
    const { pieces: names, key, token } = this.wanted;
    if (names.join() !== this.names?.join() && !this.assemble(names)) return;
    // a selection that was made elsewhere (address, buttons) moves the rows; one made here is in place already
    if (this.kept.token !== token) this.reveal(key, token);
  }

  assemble(names) {
    const rows = assembled(names);
    if (!rows) return false;
    const fresh = !this.rows;
    forget(this.names, names);
    this.rows = rows;
    this.count = this.rows.key?.length ?? 0;
    this.names = names;
    this.indexRows();
    this.list();
    if (fresh) this.scroller.scrollTop = this.kept.top;
    return true;
  }

  /* Place among siblings, for screen readers: only the rows in sight are in the document. */
  indexRows() {
    const { level, key } = this.rows;
    this.number = new Map();
    this.parent = new Int32Array(this.count).fill(-1);
    this.place = new Int32Array(this.count);
    this.siblings = new Int32Array(this.count + 1); // by parent; the last entry is that of the top rows
    const path = [];
    for (let row = 0; row < this.count; row++) {
      this.number.set(key[row], row);
      path.length = Math.min(level[row], path.length);
      this.parent[row] = path[path.length - 1] ?? -1;
      this.place[row] = ++this.siblings[this.parent[row] < 0 ? this.count : this.parent[row]];
      path.push(row);
    }
  }

  hasChildren(row) {
    return row + 1 < this.count && this.rows.level[row + 1] > this.rows.level[row];
  }

  isOpen(row) {
    return this.kept.toggled.get(this.rows.key[row]) ?? this.rows.opened[row];
  }

  list() {
    const { level } = this.rows;
    this.visible = [];
    for (let row = 0; row < this.count; ) {
      this.visible.push(row);
      const open = this.isOpen(row);
      const depth = level[row++];
      if (!open) while (row < this.count && level[row] > depth) row++;
    }
    this.space.style.height = `${this.visible.length * ROW}px`;
    this.draw();
  }

  draw() {
    if (!this.rows) return;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const last = Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / ROW) + SPARE;
    const drawn = this.visible.slice(first, last).map((row, index) => this.drawRow(row, first + index));
    this.space.replaceChildren(...drawn);
    const active = drawn.find((element) => element.classList.contains("active"));
    if (active) this.scroller.setAttribute("aria-activedescendant", active.id);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  drawRow(row, index) {
    const cell = (name) => this.rows[name][row];
    const active = cell("key") === this.kept.active ? "active" : "";
    const element = node("div", `row ${this.classes(row)} ${active}`);
    element.id = `row-${row}`;
    element.style.top = `${index * ROW}px`;
    const inner = this.hasChildren(row);
    const parent = this.parent[row] < 0 ? this.count : this.parent[row];
    set(element, {
      role: "treeitem",
      "aria-level": cell("level") + 1,
      "aria-posinset": this.place[row],
      "aria-setsize": this.siblings[parent],
      "aria-selected": cell("key") === this.kept.selected,
    });
    if (inner) element.setAttribute("aria-expanded", this.isOpen(row));
    const name = node("span", "name");
    name.style.paddingLeft = `${indent(cell("level"))}px`;
    name.append(node("span", "twist", inner ? (this.isOpen(row) ? "▾" : "▸") : ""), ...this.label(cell));
    element.append(name, ...this.cells(cell));
    return element;
  }

  onClick(event) {
    const element = event.target.closest(".row");
    if (!element) return;
    const row = Number(element.id.slice(4));
    if (event.target.classList.contains("twist") || !this.shows(row)) this.toggle(row);
    else this.choose(row);
  }

  onKey(event) {
    const here = Math.max(0, this.visible.indexOf(this.number.get(this.kept.active)));
    const row = this.visible[here];
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const inner = row !== undefined && this.hasChildren(row);
    const act = {
      ArrowDown: () => this.moveTo(here + 1),
      ArrowUp: () => this.moveTo(here - 1),
      PageDown: () => this.moveTo(here + page),
      PageUp: () => this.moveTo(here - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.visible.length - 1),
      ArrowRight: () => (inner && !this.isOpen(row) ? this.toggle(row) : inner && this.moveTo(here + 1)),
      ArrowLeft: () =>
        inner && this.isOpen(row) ? this.toggle(row) : this.moveTo(this.visible.indexOf(this.parent[row])),
      Enter: () => (this.shows(row) ? this.choose(row) : this.toggle(row)),
    };
    act[" "] = act.Enter;
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey || !act[event.key]) return;
    event.preventDefault();
    event.stopPropagation(); // the page has shortcuts of its own
    act[event.key]();
  }

  moveTo(index) {
    if (index < 0) return;
    const place = Math.min(index, this.visible.length - 1);
    this.kept.active = this.rows.key[this.visible[place]];
    this.scrollTo(place, false);
    this.draw();
  }

  scrollTo(place, centre) {
    const top = place * ROW;
    // the lower part of the rows may be below the window until the page is scrolled
    const inWindow = window.innerHeight - this.scroller.getBoundingClientRect().top;
    const height = Math.min(this.scroller.clientHeight, Math.max(inWindow, 4 * ROW));
    if (top >= this.scroller.scrollTop && top + ROW <= this.scroller.scrollTop + height) return;
    const above = top < this.scroller.scrollTop;
    this.scroller.scrollTop = centre ? top - height / 3 : above ? top : top + ROW - height;
  }

  toggle(row) {
    this.kept.active = this.rows.key[row];
    if (!this.hasChildren(row)) return this.draw();
    this.kept.toggled.set(this.rows.key[row], !this.isOpen(row));
    return this.list();
  }

  choose(row) {
    this.kept.active = this.kept.selected = this.rows.key[row];
    this.draw();
    this.select(this.rows.span[row]);
  }

  reveal(key, token) {
    this.kept.token = token;
    this.kept.selected = key;
    const row = this.number.get(key);
    if (row !== undefined) {
      this.kept.active = key;
      for (let up = this.parent[row]; up >= 0; up = this.parent[up])
        if (!this.isOpen(up)) this.kept.toggled.set(this.rows.key[up], true);
    }
    this.list();
    if (row !== undefined) this.scrollTo(this.visible.indexOf(row), true);
    this.draw();
  }
}

/* Deep levels are set in less and less, so that their names stay in sight. */
function indent(level) {
  return Math.min(level, 8) * 14 + Math.min(Math.max(level - 8, 0), 20) * 2;
}
