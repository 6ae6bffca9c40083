/* What the views of a run share. Every text is untrusted and becomes a text node or is painted; nothing here
   parses HTML.

   The rows come in pieces, each by a component of its own (tree_piece.js); a view names the pieces it wants. So
   a click, which changes none, sends no rows again, and a running run sends only the pieces that changed. */

// Survives reruns and the removal of a view from the page: rows by piece, and by run what a person did.
const shared = (globalThis.rlmscopeTree ??= { pieces: new Map(), shown: new Set() });
shared.kept ??= new Map();
shared.mounted ??= new WeakMap();

/* Keep one view of a kind in its place on the page as long as the run is the same. */
function mount(View, { data, parentElement, setTriggerValue }) {
  let view = shared.mounted.get(parentElement);
  if (view?.run !== data.run) {
    view?.remove();
    view = new View(parentElement, data.run);
    shared.mounted.set(parentElement, view);
    shared.shown.add(view);
  }
  view.select = (span) => setTriggerValue("selected", span);
  view.update(data);
  return () => {
    view.remove();
    shared.mounted.delete(parentElement);
  };
}

/* What is kept of a view of a run; `first` is what it begins with. */
function kept(name, first) {
  if (!shared.kept.has(name)) shared.kept.set(name, first);
  return shared.kept.get(name);
}

/* The columns of all rows, when all of their pieces are here. */
function assembled(names) {
  const pieces = names.map((name) => shared.pieces.get(name));
  if (!pieces.every(Boolean)) return null;
  const rows = {};
  for (const name of Object.keys(pieces[0] ?? {})) rows[name] = pieces.flatMap((piece) => piece[name]);
  return rows;
}

/* Forget the pieces of before that are not wanted any more. */
function forget(before, names) {
  for (const name of before ?? []) if (!names.includes(name)) shared.pieces.delete(name);
}

function node(tag, className = "", text = "") {
  const element = document.createElement(tag);
  element.className = className;
  if (text) element.textContent = text;
  return element;
}

function button(text, act) {
  const element = node("button", "", text);
  element.type = "button";
  element.onclick = act;
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}
