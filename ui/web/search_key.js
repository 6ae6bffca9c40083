/* The key / leads to the search field of the page, unless something is being typed. */

export default function ({ data }) {
  globalThis.rlmscopeSearchKey?.abort();
  const listening = (globalThis.rlmscopeSearchKey = new AbortController());
  const onKey = (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.composedPath()[0];
    if (at instanceof Element && (at.matches("input, textarea, select") || at.isContentEditable)) return;
    const field = document.querySelector(`.st-key-${data.field} input`);
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  };
  document.addEventListener("keydown", onKey, { signal: listening.signal });
  return () => listening.abort();
}
