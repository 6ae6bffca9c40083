/* The recursion tree: draws the rows that `ui/web/tree_rows.py` has decided on. */

const SHORT = 40; // characters of a fan-out's label, indented, that leave room for its tokens
const COLUMNS = [
  ["", "Span"],
  ["", "Status"],
  ["number tokens", "Tokens"],
  ["number", "Cost"],
  ["number", "Time"],
  ["timeline", "Timeline"],
];

export default (component) => mount(Tree, component);

class Tree extends TreeList {
  constructor(parent, run) {
    super(parent, run, "tree", "Recursion tree of the run");
  }

  head() {
    const bar = this.element.appendChild(node("div", "bar"));
    this.total = bar.appendChild(node("span", "count"));
    bar.append(button("Expand all", () => this.setAll(true)), button("Collapse", () => this.setAll(false)));
    const head = this.element.appendChild(node("div", "head"));
    for (const [name, title] of COLUMNS) head.append(node("span", name, title));
  }

  update(data) {
    this.total.textContent = data.title;
    this.element.classList.toggle("short", data.short);
    super.update(data);
  }

  /* A group has no span of its own. */
  shows(row) {
    return this.rows.span[row] !== null;
  }

  drawRow(row, index) {
    const element = super.drawRow(row, index);
    element.title = [this.rows.label[row], this.rows.note[row]].filter(Boolean).join(" · ");
    return element;
  }

  label(cell) {
    const look = cell("look") === "fan" ? `label ${cell("tone")}` : "label";
    return [node("span", look, cell("label")), node("span", "note", cell("note"))];
  }

  cells(cell) {
    const line = node("span", `timeline line ${cell("tone")}`);
    if (cell("width") >= 0) { // else its record does not say when it was
      const bar = line.appendChild(node("i"));
      bar.style.left = `${cell("start") / 1e4}%`;
      bar.style.width = `${cell("width") / 1e4}%`;
    }
    return [
      // the label of a fan-out says what its status would, and needs the room
      ...(cell("look") === "fan" ? [] : [node("span", `status ${cell("tone")}`, cell("status"))]),
      node("span", "number tokens", cell("tokens")),
      node("span", "number", cell("cost")),
      node("span", "number", cell("time")),
      line,
    ];
  }

  classes(row) {
    const { look, label } = this.rows;
    const long = look[row] === "fan" && label[row].length + this.rows.level[row] * 2 > SHORT;
    return long ? `${look[row]} long` : look[row];
  }

  setAll(open) {
    for (let row = 0; row < this.count; row++)
      if (this.hasChildren(row)) this.kept.toggled.set(this.rows.key[row], open || this.rows.level[row] === 0);
    this.list();
  }
}
