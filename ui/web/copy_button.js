// A button that puts a text on the clipboard. The text is data; the label is ours.
export default function ({ parentElement, data }) {
  let button = parentElement.querySelector("button");
  if (!button) {
    button = document.createElement("button");
    button.type = "button";
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    parentElement.append(button, said);
  }
  button.textContent = data.label;
  button.onclick = async () => {
    const said = parentElement.querySelector("span");
    said.textContent = (await put(parentElement, data.text)) ? "Copied" : "Not allowed by the browser";
    clearTimeout(button.timer);
    button.timer = setTimeout(() => (said.textContent = ""), 4000);
  };
}

async function put(parent, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // an address that is not this machine's own has no clipboard: the older way needs a field
    const field = document.createElement("textarea");
    field.value = text;
    parent.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
