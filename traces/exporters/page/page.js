/* Puts tree and span beside each other, and lets a person search, filter and go round by keys. */

const SLICE = 12; // milliseconds of a search between two looks at what the person does

class Page {
  constructor(rows) {
    this.rows = rows;
    this.texts = new Pieces("texts");
    this.view = new SpanView(new Pieces("details"), this.texts);
    this.tree = new Tree(rows, (row) => this.show(row));
    this.rowOf = new Map([...rows.attempt.map((id, row) => [id, row]), ...rows.id.map((id, row) => [id, row])]);
    this.rowOf.delete(""); // rows that stand for several spans
    this.bad = rows.bad.flatMap((bad, row) => (bad ? [row] : []));
    this.onlyBad = false;
    this.hits = null; // of the search; null: nothing is looked for
    this.searches = 0;
    this.build();
  }

  build() {
    const pane = node("div", "tree");
    const tools = pane.appendChild(node("div", "tools"));
    tools.setAttribute("role", "search");
    this.field = tools.appendChild(node("input"));
    Object.assign(this.field, { type: "search", placeholder: "Search", spellcheck: false });
    this.field.setAttribute("aria-label", "Search in names and texts");
    this.field.oninput = () => this.search();
    this.only = button(`Failed or empty (${this.bad.length.toLocaleString("en")})`, () => this.toggleBad());
    this.only.setAttribute("aria-pressed", "false");
    this.only.disabled = !this.bad.length;
    this.only.title = "Only what failed, was cancelled or lost, or came back empty";
    const all = [button("Expand all", () => this.tree.setAll(true)), button("Collapse", () => this.tree.setAll(false))];
    this.said = node("output");
    tools.append(this.only, ...all, this.said);
    const keys = node("p", "keys");
    for (const [key, what] of [["↑ ↓", "walk"], ["← →", "close, open"], ["/", "search"], ["n p", "next, previous failed"]])
      keys.append(node("kbd", "", key), ` ${what}   `);
    pane.append(this.tree.head, this.tree.scroller, keys);
    const panes = node("div", "panes");
    panes.append(pane, this.view.element);
    document.getElementById("run").append(panes);
    document.documentElement.classList.add("scripted");
    document.onkeydown = (event) => this.onKey(event);
    onhashchange = () => this.goTo(location.hash.slice(1));
    this.count();
    if (!this.goTo(location.hash.slice(1))) this.tree.choose(this.bad[0] ?? 0);
  }

  /* Go to a span by its id. */
  goTo(id) {
    const row = this.rowOf.get(id);
    if (!id || row === undefined) return false;
    this.tree.choose(row);
    return true;
  }

  show(row) {
    const path = node("nav", "path");
    path.setAttribute("aria-label", "Above this span");
    const above = [];
    for (let up = this.tree.parent[row]; up >= 0; up = this.tree.parent[up]) above.unshift(up);
    for (const up of above.length > 12 ? [...above.slice(0, 4), ...above.slice(-8)] : above)
      path.append(button(this.rows.label[up], () => this.tree.choose(up)), "›");
    const span = this.rows.span[row];
    const [status, tone] = [this.rows.status[row], this.rows.tone[row]];
    const figures = ["tokens", "cost", "time"].map((name) => [name[0].toUpperCase() + name.slice(1), this.rows[name][row]]);
    if (span < 0) this.view.group(path, this.rows.label[row], status, tone, figures.filter(([, value]) => value));
    else this.view.show(path, span, status, tone);
    if (this.rows.id[row]) this.remember(this.rows.id[row]);
    // what is shown begins above: the person looks at the beginning of the next one
    const top = this.view.element.getBoundingClientRect().top;
    if (top < 0) scrollBy(0, top - 12);
  }

  /* The address names the span, so that it can be sent along; some browsers refuse that for files. */
  remember(id) {
    try {
      history.replaceState(null, "", `#${id}`);
    } catch {
      /* the page does without */
    }
  }

  toggleBad() {
    this.onlyBad = !this.onlyBad;
    this.only.setAttribute("aria-pressed", this.onlyBad);
    this.narrow();
  }

  narrow() {
    let fits = this.hits;
    if (this.onlyBad) fits = new Set(this.bad.filter((row) => !this.hits || this.hits.has(row)));
    this.tree.narrow(fits);
    this.count();
    if (fits?.size && !fits.has(this.tree.active)) this.tree.choose(fits.values().next().value);
    else if (fits === null) this.tree.choose(this.tree.active);
  }

  count() {
    const all = this.rowOf.size.toLocaleString("en"); // with those that stand in the row of their call
    const fits = this.tree.fits;
    this.said.textContent = fits ? `${fits.size.toLocaleString("en")} of ${all} spans` : `${all} spans`;
    this.tree.none.hidden = !fits || fits.size > 0;
  }

  /* Look for words in names, notes and texts, in slices: the page stays quick, and new words end the search. */
  async search() {
    const mine = ++this.searches;
    const words = this.field.value.trim().toLowerCase();
    this.view.words = words;
    if (!words) {
      this.hits = null;
      return this.narrow();
    }
    let began = performance.now();
    const pause = async () => {
      if (performance.now() - began < SLICE) return;
      await new Promise((resolve) => setTimeout(resolve));
      began = performance.now();
    };
    const found = new Set();
    for (let piece = 0; piece < this.texts.elements.length; piece++) {
      this.texts.piece(piece).forEach((text, index) => {
        if (typeof text === "string" && text.toLowerCase().includes(words)) found.add(this.texts.firsts[piece] + index);
      });
      await pause();
      if (mine !== this.searches) return;
    }
    const { label, note, texts, span, id, attempt } = this.rows;
    this.hits = new Set();
    for (let row = 0; row < this.tree.count; row++) {
      if (span[row] < 0) continue;
      const named = `${label[row]} ${note[row]} ${id[row]} ${attempt[row]}`.toLowerCase().includes(words);
      if (named || texts[row].some((number) => found.has(number))) this.hits.add(row);
    }
    this.narrow();
    if (this.hits.has(this.tree.active)) this.show(this.tree.active);
    else this.view.mark();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === this.field;
    if (typing && event.key === "Escape") {
      this.field.value = "";
      this.search();
      this.tree.scroller.focus();
    } else if (typing && (event.key === "Enter" || event.key === "ArrowDown")) {
      this.tree.scroller.focus();
    } else if (!typing && event.key === "/") {
      this.field.focus();
      this.field.select();
    } else if (!typing && (event.key === "n" || event.key === "p")) {
      this.nextBad(event.key === "n" ? 1 : -1);
    } else return;
    event.preventDefault();
  }

  nextBad(by) {
    const here = this.tree.active;
    const ahead = this.bad.filter((row) => (by > 0 ? row > here : row < here));
    const next = by > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (next === undefined) return;
    if (this.tree.shown && !this.tree.shown.has(next)) return;
    this.tree.choose(next);
  }
}

new Page(JSON.parse(document.querySelector("script.rows").textContent));
