// What a model attended to, drawn by the modules of `manyheads look`.

import { load, makeAsker, post, Problem } from "./api.js";
import { makeBelieve } from "./untrained.js";
import { h } from "./parts.js";
import { remember } from "./address.js";
import { t } from "./words.js";

/** Whether a view has explanations by gradients, and integrated ones could join them. */
const explains = (view) => (view.overlays ?? []).some((each) => /^(relevance|grad-cam)/.test(each.name));

const LOOK = "/static/draw/look.js";
let drawer = null; // what draws figures, once one is asked for

/** Load the modules of `manyheads look`, which need d3, and one of them or of this page by its address. */
export function withDrawing(address = LOOK) {
  const script = (name) => new Promise((done, failed) => {
    const src = `/static/draw/d3/d3-${name}.min.js`;
    document.head.append(Object.assign(document.createElement("script"), { src, async: false, onload: done, onerror: failed }));
  });
  drawer ??= Promise.all(["path", "array", "selection", "shape"].map(script)).catch(() => {
    drawer = null; // the next one tries again
    throw new Problem({ title: t().gone, status: 0 });
  });
  return drawer.then(() => load(address));
}

/** Save a figure as one file that needs no server. */
export async function saveLook(request) {
  const blob = await post("/api/v1/look", { ...request, form: "html" }, { raw: true });
  const link = h("a", { href: URL.createObjectURL(blob), download: "look.html" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * A figure below an answer; `show(request)` asks for it, and dims the last one meanwhile. `found` gets each
 * view; `remove` the name of a part that is to be left out, or null: it shows the figure then.
 */
export function makeFigure(parent, found = () => {}, remove = null) {
  const root = h("div", { class: "look" });
  const about = h("p", { class: "about", hidden: true });
  const save = h("button", { type: "button", class: "link", hidden: true, onclick: () => saveLook(asked) }, t().save);
  const more = h("button", { type: "button", class: "link more", hidden: true, onclick: integrate }, t().integrate);
  const box = h("section", { class: "under", "aria-label": t().attention }, about, root, h("div", { class: "row small" }, more, save));
  parent.append(box);
  let drawing = null;
  let asked = null;
  let last = null;
  let integrating = false;
  let drawn = "trained"; // whose figure it is: "trained", "untrained" or "without" a part
  const whose = () => (asked.untrained ? "untrained" : asked.without?.length ? "without" : "trained");
  const options = {
    compute(wanted, signal) {
      const { integrated, ...request } = asked;
      return post("/api/v1/look/head", { ...request, ...wanted }, { signal });
    },
  };

  /** Compute the gradients, which take seconds; the same button cancels that. */
  function integrate() {
    if (integrating) {
      asker.stop();
      asked.integrated = false;
      finished();
      return;
    }
    asked = { ...asked, integrated: true };
    integrating = true;
    more.textContent = `${t().waiting} ${t().cancel}`;
    asker.ask((signal) => post("/api/v1/look", { ...asked, form: "page" }, { signal }));
  }

  function finished() {
    integrating = false;
    more.textContent = t().integrate;
    more.hidden = !last || Boolean(asked.integrated) || !explains(last.data.view);
    box.classList.remove("old");
  }

  const asker = makeAsker({
    begin: () => box.classList.add("old"),
    async done(answer) {
      if (!answer) return;
      last = answer;
      if (integrating) remember({ map: "explanations", layer: null, head: "integrated gradients" });
      drawing = drawing
        ? await drawing.update(answer.data, answer.packed)
        : await (await withDrawing()).draw(root, answer.data, answer.packed, options);
      finished();
      save.hidden = false;
      drawn = whose();
      believe.drawn(answer, drawn, asked.without?.[0]);
      if (drawn !== "untrained") found(answer.data.view);
    },
    failed(error) {
      const kept = (integrating || whose() !== "trained") && drawing;
      if (kept) {
        asked = { ...asked, integrated: false, untrained: drawn === "untrained" };
        finished();
        believe.back(drawn);
      } else clear();
      about.textContent = [error.message, error.remedy].filter(Boolean).join(" ");
      about.hidden = false;
    },
  });

  const believe = makeBelieve(box, {
    state: () => drawing?.state,
    ask(which, site) {
      const without = which === "without" ? [site] : [];
      if (remove && (without.length || asked.without?.length)) {
        asked = { ...asked, untrained: false };
        return remove(without[0] ?? null);
      }
      asked = { ...asked, untrained: which === "untrained", without };
      return asker.ask((signal) => post("/api/v1/look", { ...asked, form: "page" }, { signal }));
    },
    show(answer) {
      if (remove && asked.without?.length) return remove(null);
      asked = { ...asked, untrained: false, without: [] };
      return asker.ask(() => answer);
    },
  });

  function clear() {
    asker.stop();
    believe.clear();
    drawing?.destroy();
    drawing = last = null;
    save.hidden = about.hidden = more.hidden = true;
    box.classList.remove("old");
  }

  return {
    /**
     * Ask for a figure; `note` is said above it, `languages` are those of its texts. Of a `panel` only
     * this group of figures is drawn.
     */
    show(request, { note = "", languages = {}, panel = null } = {}) {
      asked = request;
      integrating = false;
      more.textContent = t().integrate;
      Object.assign(options, { languages, panel });
      box.classList.toggle("of-panel", Boolean(panel));
      about.textContent = note;
      about.hidden = !note;
      withDrawing().catch(() => {}); // meanwhile; who draws hears of what went wrong
      return asker.ask((signal) => post("/api/v1/look", { ...request, form: "page" }, { signal }));
    },
    dim: (is) => drawing && box.classList.toggle("old", is),
    clear,
    destroy() {
      clear();
    },
  };
}
