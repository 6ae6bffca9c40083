/* One span beside the tree: figures, texts, and what else is on record. */

const SHOWN = 20000; // characters of a text that are laid out before more are asked for

/* Data that stands in the page in pieces, each read when something of it is first asked for. */
class Pieces {
  constructor(name) {
    this.elements = [...document.querySelectorAll(`script.${name}`)];
    this.firsts = this.elements.map((element) => Number(element.dataset.first));
    this.read = new Map();
  }

  piece(number) {
    if (!this.read.has(number)) this.read.set(number, JSON.parse(this.elements[number].textContent));
    return this.read.get(number);
  }

  get(index) {
    let low = 0;
    let high = this.firsts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.firsts[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return this.piece(low)[index - this.firsts[low]];
  }
}

class SpanView {
  constructor(details, texts) {
    this.details = details;
    this.texts = texts;
    this.element = node("section", "span");
    this.element.setAttribute("aria-label", "The chosen span");
    this.words = ""; // looked for
  }

  /* A row that stands for several spans. */
  group(path, label, status, tone, facts) {
    const title = node("div", "named");
    title.append(node("h2", "", label), node("span", `badge ${tone}`, status));
    this.put(path, title, this.facts(facts), node("p", "soft", "Open this row to see its calls."));
  }

  show(path, number, status, tone) {
    const detail = this.details.get(number);
    const title = node("div", "named");
    const name = node("h2", "", detail.title);
    name.dir = "auto";
    title.append(name, node("span", `badge ${tone}`, status), node("code", "", detail.id));
    const parts = [title];
    if (detail.problem && detail.problem !== status) {
      const problem = node("p", "problem", detail.problem);
      problem.dir = "auto";
      parts.push(problem);
    }
    parts.push(this.facts(detail.facts), ...this.messages(detail), ...this.ordered(detail.texts));
    for (const [name, rows] of detail.tables) parts.push(this.table(name, rows));
    this.put(path, ...parts);
    this.mark();
  }

  put(path, ...parts) {
    this.element.replaceChildren(path, ...parts);
  }

  facts(facts) {
    const list = node("dl", "facts");
    for (const [name, value, mark, why] of facts) {
      const fact = list.appendChild(node("div"));
      const said = node("dd", "", value);
      if (mark) said.append(node("small", mark === "reported" ? "ok" : "", why ? `${mark}: ${why}` : mark));
      fact.append(node("dt", "", name), said);
    }
    return list;
  }

  messages(detail) {
    if (!detail.messages) return [];
    const parts = detail.messages.map(([role, number]) => this.text(`Message: ${role}`, this.texts.get(number)));
    if (detail.prior) {
      const many = detail.prior === 1 ? "One message" : `${detail.prior.toLocaleString("en")} messages`;
      parts.unshift(node("p", "soft", `${many} before these: sent with the root calls before this one.`));
    }
    return parts;
  }

  /* The texts of a span; the root is mostly shown what was printed, which need not stand there twice. */
  ordered(texts) {
    const whole = new Map(texts.map(([name, number]) => [name, this.texts.get(number)]));
    const shown = whole.get("Output as the root was shown it");
    const same = typeof shown === "string" && shown.trim() === String(whole.get("Output")).trim();
    return texts.map(([name, number, folded]) => {
      if (same && whole.get(name) === shown && name !== "Output") return node("p", "soft", "The root was shown all of this output.");
      return folded ? this.folded(name, number) : this.text(name, this.texts.get(number));
    });
  }

  folded(name, number) {
    const details = node("details");
    details.append(node("summary", "", name));
    details.ontoggle = () => {
      if (details.open && details.children.length < 2) details.append(this.text(name, this.texts.get(number)));
    };
    return details;
  }

  text(name, text) {
    const part = node("div", "text");
    const bar = part.appendChild(node("div", "bar"));
    const title = bar.appendChild(node("h3", "", name));
    title.dir = "auto";
    if (typeof text !== "string") {
      const size = text === null ? "" : ` (${text.toLocaleString("en")} characters)`;
      bar.append(node("span", "", text === null ? "not in the record" : `left out of this page${size}`));
      return part;
    }
    const count = text.length === 1 ? "1 character" : `${text.length.toLocaleString("en")} characters`;
    bar.append(node("span", "", text ? count : "empty"));
    if (!text) return part;
    const copy = bar.appendChild(button("Copy", () => copied(text, pre, copy)));
    copy.setAttribute("aria-label", `Copy: ${name}`);
    const pre = part.appendChild(node("pre"));
    pre.dir = "auto";
    const found = this.words ? text.toLowerCase().indexOf(this.words) : -1;
    const whole = text.length <= SHOWN || found > SHOWN - this.words.length;
    pre.textContent = whole ? text : text.slice(0, SHOWN);
    if (!whole) {
      const more = button(`Show all ${count}`, () => {
        pre.textContent = text;
        more.remove();
        this.mark();
      });
      more.className = "more";
      part.append(more);
    }
    return part;
  }

  table(name, rows) {
    const details = node("details");
    details.append(node("summary", "", `${name} (${rows.length.toLocaleString("en")})`));
    details.ontoggle = () => {
      if (!details.open || details.children.length > 1) return;
      const table = details.appendChild(node("table"));
      for (const [key, value] of rows) {
        const row = table.insertRow();
        row.append(node("td", "", key), node("td", "", value));
        row.lastChild.dir = "auto";
      }
    };
    return details;
  }

  /* Colour the words looked for, where the browser can do that without changing the document. */
  mark() {
    if (!globalThis.Highlight || !CSS.highlights) return;
    const ranges = [];
    for (const pre of this.words ? this.element.querySelectorAll("pre") : []) {
      const inner = pre.firstChild;
      const low = inner.data.toLowerCase();
      if (low.length !== inner.data.length) continue; // places are not those of the text
      for (let at = low.indexOf(this.words); at >= 0 && ranges.length < 1000; at = low.indexOf(this.words, at + 1)) {
        const range = new Range();
        range.setStart(inner, at);
        range.setEnd(inner, at + this.words.length);
        ranges.push(range);
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }
}

/* A page from disk may not be allowed to write to the clipboard: then the text is selected, to be copied. */
async function copied(text, pre, from) {
  try {
    await navigator.clipboard.writeText(text);
    from.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(pre);
    from.textContent = "Selected";
  }
  setTimeout(() => (from.textContent = "Copy"), 1500);
}
