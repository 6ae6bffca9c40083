// A passage marked in the text around it. All text comes from documents: it only ever becomes text.
const SHOWN = new WeakMap(); // element -> what it was last drawn from

export default function (component) {
  const { parentElement, data } = component;
  const key = JSON.stringify(data);
  if (SHOWN.get(parentElement) === key) return;
  SHOWN.set(parentElement, key);
  let box = parentElement.querySelector(".passage");
  if (!box) {
    box = document.createElement("pre");
    box.className = "passage";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    parentElement.append(box);
  }
  box.setAttribute("aria-label", data.label);
  const mark = document.createElement("mark");
  mark.textContent = data.passage;
  box.replaceChildren(data.before, mark, data.after);
  box.scrollTop = mark.offsetTop - 60;
}
