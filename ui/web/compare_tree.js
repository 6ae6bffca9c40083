/* The aligned trees of two runs: draws the rows that `ui/web/compare_rows.py` has decided on. */

const HEAD = ["What", "Difference", "A", "B", "Tokens", "Cost", "Time"];

export default (component) => mount(Aligned, component);

class Aligned extends TreeList {
  constructor(parent, runs) {
    super(parent, runs, "aligned", "Both runs, row by row");
  }

  head() {
    const head = this.element.appendChild(node("div", "head"));
    HEAD.forEach((words, place) => head.append(node("span", place > 3 ? "number" : "", words)));
  }

  /* What stands for rows that are not shown. */
  shows(row) {
    return this.rows.span[row] !== null;
  }

  cells(cell) {
    if (cell("look") === "gap") return [];
    return [
      node("span", `status ${cell("tone")}`, cell("word")),
      text(cell("a")),
      text(cell("b")),
      ...["tokens", "cost", "time"].map((column) => node("span", "number", cell(column))),
    ];
  }
}

/* The beginning of a text; a line where the run has no such row. */
function text(words) {
  const element = node("span", words === null ? "text none" : "text", words ?? "");
  if (words) element.title = words; // it may be cut
  return element;
}
