/* The run on its time line: every span a bar below the one that made it, calls at the same time side by side.

   It paints the rows that `ui/web/tree_rows.py` has decided on. Bars in the figures of the rows' time line: the
   whole run is WHOLE long. What is painted is read out in the line below, which screen readers follow. */

const WHOLE = 1e6; // as PARTS in ui/web/tree_words.py
const AXIS = 20; // pixels for the times above the bars
const LANE = 20; // pixels of a bar's lane where there is room
const THIN = 6; // and where there is none
const LETTERED = 14; // pixels of a lane that has room for letters
const CLOSEST = 20; // millionths that a window shows at least

export default (component) => mount(Flame, component);

class Flame {
  constructor(parent, run) {
    this.run = run;
    this.names = null;
    this.rows = null;
    const first = { from: 0, to: WHOLE, active: null, selected: null, token: null, top: 0 };
    this.kept = kept(`flame ${run}`, first); // `selected` and `active` are keys of rows
    this.build(parent);
  }

  build(parent) {
    this.element = node("div", "flame");
    const bar = node("div", "bar");
    this.total = bar.appendChild(node("span", "count"));
    bar.append(
      button("Zoom in", () => this.zoom(0.5)),
      button("Zoom out", () => this.zoom(2)),
      button("Whole run", () => this.window(0, WHOLE)),
    );
    this.scroller = node("div", "lanes");
    this.scroller.tabIndex = 0;
    set(this.scroller, {
      role: "application",
      "aria-roledescription": "flame chart",
      "aria-label":
        "Spans on the time line. Arrow keys go from span to span, Enter chooses, plus, minus and 0 zoom.",
    });
    this.space = this.scroller.appendChild(node("div", "space"));
    this.canvas = this.space.appendChild(node("canvas"));
    this.canvas.setAttribute("aria-hidden", "true");
    this.words = node("div", "words");
    set(this.words, { role: "status", "aria-live": "polite", "aria-label": "Span" });
    this.element.append(bar, this.scroller, this.words);
    parent.append(this.element);
    this.listen();
    this.laidOut = false;
    this.sizes = new ResizeObserver(() => {
      const laidOut = this.scroller.clientHeight > 0;
      // the position cannot be set before there is a layout, and is lost while there is none
      if (laidOut && !this.laidOut) this.scroller.scrollTop = this.kept.top;
      this.laidOut = laidOut;
      this.measure();
    });
    this.sizes.observe(this.scroller);
  }

  listen() {
    const scroller = this.scroller;
    scroller.onscroll = () => {
      if (!scroller.clientHeight) return;
      this.kept.top = scroller.scrollTop;
      this.draw();
    };
    scroller.onkeydown = (event) => this.onKey(event);
    scroller.onfocus = () => this.say(this.number?.get(this.kept.active) ?? this.first);
    scroller.onwheel = (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls, as everywhere
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event));
    };
    this.canvas.onpointerdown = (event) => this.onDown(event);
    this.canvas.onpointermove = (event) => this.say(this.rowAt(event));
    this.canvas.ondblclick = (event) => this.zoomTo(this.rowAt(event));
  }

  remove() {
    this.sizes.disconnect();
    this.element.remove();
    shared.shown.delete(this);
  }

  update(data) {
    this.wanted = data;
    this.total.textContent = data.title;
    this.follow();
  }

  /* Do what Python asks for as soon as all pieces of the rows are here; until then the old bars stay. */
  follow() {
    const { pieces: names, key, token } = this.wanted;
    if (names.join() !== this.names?.join()) {
      const rows = assembled(names);
      if (!rows) return;
      forget(this.names, names);
      this.rows = rows;
      this.names = names;
      this.layOut();
    }
    if (this.kept.token !== token) {
      this.kept.token = token;
      this.kept.selected = key;
      if (this.number.has(key)) this.goTo(this.number.get(key));
    }
    this.draw();
  }

  /* Find each span its lane: below its parent, in the first of the lanes there that is free when it begins. */
  layOut() {
    const { span, level, key, start, width } = this.rows;
    const count = key?.length ?? 0;
    this.number = new Map();
    this.parent = new Int32Array(count).fill(-1);
    this.lane = new Int32Array(count); // below its parent's, then from the top
    this.below = Array.from({ length: count }, () => []);
    this.tops = [];
    const path = [];
    for (let row = 0; row < count; row++) {
      while (path.length && level[path[path.length - 1]] >= level[row]) path.pop();
      if (span[row] === null) continue; // a group is a line of the tree, and took no time of its own
      this.number.set(key[row], row);
      const parent = path[path.length - 1] ?? -1;
      this.parent[row] = parent;
      (parent < 0 ? this.tops : this.below[parent]).push(row);
      path.push(row);
    }
    const height = new Int32Array(count).fill(1);
    const place = (members) => {
      const lanes = []; // {free, height}
      const chosen = new Map();
      members.sort((one, other) => start[one] - start[other]);
      for (const row of members) {
        let lane = lanes.find((each) => each.free <= start[row]);
        if (!lane) lanes.push((lane = { free: 0, height: 1 }));
        lane.free = start[row] + width[row];
        lane.height = Math.max(lane.height, height[row]);
        chosen.set(row, lane);
      }
      let top = 0;
      for (const lane of lanes) [lane.top, top] = [top, top + lane.height];
      for (const [row, lane] of chosen) this.lane[row] = lane.top;
      return top;
    };
    for (let row = count - 1; row >= 0; row--) if (this.below[row].length) height[row] += place(this.below[row]);
    this.lanes = place(this.tops);
    for (let row = 0; row < count; row++)
      if (this.parent[row] >= 0) this.lane[row] += this.lane[this.parent[row]] + 1;
    this.first = this.tops[0];
    this.measure();
  }

  /* How thick lanes are: all in sight if they can be. */
  measure() {
    if (!this.rows) return;
    const room = Math.max(240, window.innerHeight - (this.wanted.short ? 560 : 320));
    this.thick = Math.min(LANE, Math.max(THIN, Math.floor(room / Math.max(this.lanes, 1))));
    const height = AXIS + this.lanes * this.thick + 4;
    this.space.style.height = `${height}px`;
    this.scroller.style.height = `${Math.min(height + 2, room + AXIS)}px`;
    this.draw();
  }

  draw() {
    const { clientWidth: wide, clientHeight: high } = this.scroller;
    if (!this.rows || !wide || !high) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = wide * scale;
    this.canvas.height = high * scale;
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${high}px`;
    const style = getComputedStyle(this.element);
    const colour = (name) => style.getPropertyValue(`--st-${name}-color`).trim();
    this.colours = { ok: colour("primary"), bad: colour("red"), warn: colour("orange"), live: colour("blue") };
    const paint = this.canvas.getContext("2d");
    paint.scale(scale, scale);
    paint.font = `12px ${style.fontFamily}`;
    paint.textBaseline = "middle";
    this.drawBars(paint, wide, high, colour("text"));
    this.drawAxis(paint, wide, colour("background"), colour("text"), colour("border"));
  }

  /* What did not go well is painted last: over ten thousand that did, it is seen. */
  drawBars(paint, wide, high, ink) {
    const { span, tone } = this.rows;
    for (const strong of [false, true]) {
      const painted = new Map(); // by lane: up to where, so that what falls on one spot is painted once
      for (let row = 0; row < tone.length; row++)
        if (span[row] !== null && (tone[row] !== "ok") === strong) this.drawRow(paint, row, wide, high, ink, painted);
    }
  }

  drawRow(paint, row, wide, high, ink, painted) {
    const { from, to, selected, active } = this.kept;
    const { start, width, key, label, look } = this.rows;
    if (width[row] < 0) return; // its record does not say when it was
    const perPart = wide / (to - from);
    const [x, y, long] = [(start[row] - from) * perPart, this.y(row), Math.max(width[row] * perPart, 2)];
    if (y + this.thick < AXIS || y > high || x > wide || x + long < 0) return;
    const lane = this.lane[row];
    const marked = key[row] === selected || key[row] === active;
    if (!marked && x + long < (painted.get(lane) ?? -1) + 1) return;
    painted.set(lane, x + long);
    this.drawBar(paint, row, Math.max(x, 0), y, Math.min(x + long, wide) - Math.max(x, 0), look[row]);
    if (this.thick >= LETTERED && long > 30) this.letter(paint, label[row], x, y, long, wide, ink);
  }

  drawBar(paint, row, x, y, long, look) {
    const { selected, active } = this.kept;
    const high = this.thick - (this.thick > 8 ? 2 : 1);
    const gap = long > 4 ? 1 : 0;
    const colour = this.colours[this.rows.tone[row]];
    paint.fillStyle = colour;
    paint.globalAlpha = look === "parent" ? 0.1 : this.thick >= LETTERED ? 0.28 : 0.75;
    paint.fillRect(x, y, long - gap, high);
    paint.globalAlpha = look === "parent" ? 0.3 : long > 8 || this.rows.tone[row] !== "ok" ? 1 : 0.45;
    paint.fillRect(x, y, Math.min(2, long), high);
    paint.globalAlpha = 1;
    const key = this.rows.key[row];
    if (key !== selected && key !== active) return;
    paint.strokeStyle = this.colours.ok;
    paint.lineWidth = 2;
    paint.setLineDash(key === selected ? [] : [3, 2]);
    paint.strokeRect(x + 1, y, Math.max(long - 2, 2), high);
    paint.setLineDash([]);
  }

  letter(paint, text, x, y, long, wide, ink) {
    const left = Math.max(x, 0) + 6;
    const room = Math.min(x + long, wide) - left - 4;
    if (room < 20) return;
    paint.save();
    paint.beginPath();
    paint.rect(left, y, room, this.thick);
    paint.clip();
    paint.fillStyle = ink;
    paint.fillText(text, left, y + this.thick / 2 - 1);
    paint.restore();
  }

  drawAxis(paint, wide, ground, ink, border) {
    paint.fillStyle = ground;
    paint.fillRect(0, 0, wide, AXIS);
    paint.fillStyle = border;
    paint.fillRect(0, AXIS - 1, wide, 1);
    const { from, to } = this.kept;
    const seconds = this.wanted.seconds / WHOLE; // of one part
    const about = ((to - from) * seconds) / Math.max(2, wide / 110);
    const tens = 10 ** Math.floor(Math.log10(about || 1e-9));
    const step = [1, 2, 5, 10].map((each) => each * tens).find((each) => each >= about) ?? tens * 10;
    for (let at = Math.ceil((from * seconds) / step); at * step <= to * seconds; at++) {
      const x = ((at * step) / seconds - from) * (wide / (to - from));
      paint.fillStyle = border;
      paint.fillRect(x, AXIS - 6, 1, 6);
      paint.fillStyle = ink;
      if (x < wide - 40) paint.fillText(timeWords(at * step, step), x + 3, AXIS / 2 - 2);
    }
  }

  y(row) {
    return AXIS + this.lane[row] * this.thick - this.scroller.scrollTop;
  }

  timeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.kept.from + ((event.clientX - box.left) / box.width) * (this.kept.to - this.kept.from);
  }

  rowAt(event) {
    if (!this.rows) return undefined;
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top;
    if (y < AXIS) return undefined;
    const lane = Math.floor((y - AXIS + this.scroller.scrollTop) / this.thick);
    const slack = (3 / box.width) * (this.kept.to - this.kept.from); // bars are painted two pixels wide at least
    const time = this.timeAt(event);
    const { start, width, span } = this.rows;
    let found;
    for (let row = 0; row < start.length; row++) {
      if (span[row] === null || this.lane[row] !== lane || width[row] < 0) continue;
      if (time < start[row] - slack || time > start[row] + width[row] + slack) continue;
      const nearer = found === undefined || Math.abs(start[row] - time) < Math.abs(start[found] - time);
      if (nearer) found = row;
    }
    return found;
  }

  onDown(event) {
    if (event.button) return;
    const { from, to } = this.kept;
    const box = this.canvas.getBoundingClientRect();
    const pressed = new AbortController(); // until the button is let go, or the browser takes the pointer away
    const on = (name, act) => this.canvas.addEventListener(name, act, { signal: pressed.signal });
    let moved = false;
    on("pointermove", (later) => {
      const by = later.clientX - event.clientX;
      moved ||= Math.abs(by) > 4;
      if (moved) this.window(from - (by / box.width) * (to - from), to - (by / box.width) * (to - from));
    });
    on("pointercancel", () => pressed.abort());
    on("pointerup", (last) => {
      pressed.abort();
      const row = moved ? undefined : this.rowAt(last);
      if (row !== undefined) this.choose(row);
    });
    this.canvas.setPointerCapture(event.pointerId);
  }

  onKey(event) {
    const row = this.number?.get(this.kept.active) ?? this.number?.get(this.kept.selected) ?? this.first;
    const beside = (by) => {
      const siblings = this.parent[row] < 0 ? this.tops : this.below[this.parent[row]];
      return siblings[siblings.indexOf(row) + by];
    };
    const act = {
      ArrowRight: () => this.goTo(beside(1)),
      ArrowLeft: () => this.goTo(beside(-1)),
      ArrowDown: () => this.goTo(this.below[row][0]),
      ArrowUp: () => this.parent[row] >= 0 && this.goTo(this.parent[row]),
      Home: () => this.goTo(this.first),
      Enter: () => this.choose(row),
      "+": () => this.zoom(0.5, this.rows.start[row]),
      "-": () => this.zoom(2, this.rows.start[row]),
      0: () => this.window(0, WHOLE),
    };
    act[" "] = act.Enter;
    act["="] = act["+"];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey || !act[event.key]) return;
    event.preventDefault();
    event.stopPropagation(); // the page has shortcuts of its own
    act[event.key]();
  }

  choose(row) {
    this.kept.active = this.kept.selected = this.rows.key[row];
    this.say(row);
    this.draw();
    this.select(this.rows.span[row]);
  }

  /* Make a span the one the keyboard is at, in sight. */
  goTo(row) {
    if (row === undefined) return;
    this.kept.active = this.rows.key[row];
    const y = this.y(row);
    const high = this.scroller.clientHeight;
    if (high && (y < AXIS || y + this.thick > high))
      this.scroller.scrollTop = Math.max(0, this.lane[row] * this.thick - high / 3);
    const { from, to } = this.kept;
    const [start, end] = [this.rows.start[row], this.rows.start[row] + this.rows.width[row]];
    if (end < from || start > to) this.window(start - (to - from) / 3, start + (2 * (to - from)) / 3);
    this.say(row);
    this.draw();
  }

  say(row) {
    if (row === undefined || !this.rows) return;
    const cell = (name) => this.rows[name][row];
    const facts = [cell("label"), cell("status"), cell("time"), cell("cost"), cell("note")];
    const words = facts.filter(Boolean).join(" · ");
    if (this.words.textContent !== words) this.words.textContent = words;
  }

  zoom(by, around = (this.kept.from + this.kept.to) / 2) {
    const { from, to } = this.kept;
    this.window(around - (around - from) * by, around + (to - around) * by);
  }

  zoomTo(row) {
    if (row === undefined) return;
    const { start, width } = this.rows;
    const spare = Math.max(width[row] * 0.02, CLOSEST / 4);
    this.window(start[row] - spare, start[row] + width[row] + spare);
  }

  /* Show a part of the time line; one that leaves the run is moved back. */
  window(from, to) {
    const long = Math.min(Math.max(to - from, CLOSEST), WHOLE);
    this.kept.from = Math.min(Math.max(from, 0), WHOLE - long);
    this.kept.to = this.kept.from + long;
    this.draw();
  }
}

function timeWords(seconds, step) {
  if (step < 1e-3) return `${(seconds * 1e3).toFixed(Math.min(3, Math.ceil(-Math.log10(step * 1e3))))} ms`;
  if (step < 1) return seconds < 1 ? `${Math.round(seconds * 1e3)} ms` : `${seconds.toFixed(3).replace(/0+$/, "").replace(/[.]$/, "")} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, "0")} s`;
}
