// Documents: translated on the server with their form kept, with progress, and given back as a file.

import { stream } from "./api.js";
import { h } from "./parts.js";
import { noteItems } from "./notes.js";
import { t } from "./words.js";

export const KINDS = [".docx", ".xlsx", ".html", ".htm", ".md", ".markdown", ".txt"];
export const isDocument = (file) => KINDS.some((ending) => file.name.toLowerCase().endsWith(ending));

/** A place where a file's progress and its translation are shown; `translate(file, model)` fills it. */
export function makeFiles() {
  const box = h("section", { class: "file-work", hidden: true, "aria-live": "polite" });
  let asking = null;
  let address = null;

  function close() {
    asking?.abort();
    asking = null;
    if (address) URL.revokeObjectURL(address);
    address = null;
    box.replaceChildren();
    box.hidden = true;
  }

  async function translate(file, model) {
    close();
    box.hidden = false;
    if (!isDocument(file)) {
      box.append(h("p", { class: "status wrong", role: "alert" }, t().notDocument(file.name, KINDS.join(", "))), closer());
      return;
    }
    asking = new AbortController();
    const mine = asking;
    const bar = h("progress", { max: 1, "aria-label": t().fileOf(file.name) });
    const told = h("p", { class: "about" }, t().fileOf(file.name));
    const cancel = h("button", { type: "button", class: "link", onclick: close }, t().cancel);
    box.append(told, bar, cancel);
    const query = new URLSearchParams({ name: file.name, model: model.name, stream: "true" });
    try {
      let found = null;
      for await (const line of stream(`/api/v1/translate/file?${query}`, file, mine.signal)) {
        if ("translated" in line) {
          bar.max = line.of || 1;
          bar.value = line.translated;
          told.textContent = t().fileProgress(file.name, line.translated, line.of);
        } else found = line;
      }
      if (mine.signal.aborted) return;
      if (!found?.content) throw new Error(found?.detail ?? t().failed);
      show(file, found, model);
    } catch (error) {
      if (mine.signal.aborted) return;
      const words = [error.message, error.remedy].filter(Boolean).join(" ");
      const again = h("button", { type: "button", class: "link", onclick: () => translate(file, model) }, t().again);
      box.replaceChildren(h("p", { class: "status wrong", role: "alert" }, words, " ", again), closer());
    }
  }

  function show(file, found, model) {
    const bytes = Uint8Array.from(atob(found.content), (sign) => sign.charCodeAt(0));
    address = URL.createObjectURL(new Blob([bytes]));
    const dot = file.name.lastIndexOf(".");
    const name = `${file.name.slice(0, dot)}.${model.target ?? "translated"}${file.name.slice(dot)}`;
    const link = h("a", { href: address, download: name, class: "button" }, t().download(name));
    const notes = noteItems(found.notes, model);
    box.replaceChildren(
      h("p", {}, link, " ", closer()),
      ...(notes.length
        ? [h("p", { class: "about" }, t().toCheck), h("ul", { class: "notes" }, notes.map((note) => h("li", {}, note)))]
        : [h("p", { class: "about" }, t().nothingToCheck)]),
    );
    link.focus();
  }

  const closer = () => h("button", { type: "button", class: "link", onclick: close }, t().close);

  return { box, translate, destroy: close };
}
