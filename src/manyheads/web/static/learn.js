// A path that asks, and the book of ideas: each a screen with a sentence, its equation, a live figure and
// its code.

import { get, load } from "./api.js";
import { makeFigure } from "./figure.js";
import { learnWords } from "./learn.words.js";
import { h, imageUrl, title } from "./parts.js";
import { recall, remember } from "./address.js";
import { equation } from "./tex.js";
import { t } from "./words.js";

const ERRATA = "errata";
let lessons = null;
let styled = null; // resolves when the style sheet of this view is there

function style() {
  const link = h("link", { rel: "stylesheet", href: new URL("path.css", import.meta.url).href });
  styled ??= new Promise((done) => {
    link.onload = link.onerror = done;
    document.head.append(link);
  });
  return styled;
}

export function learn(page, models) {
  const language = () => document.documentElement.lang;
  /** "Self-attention: a word in its sentence": the field's term, then the idea. */
  function named({ term, title: told }) {
    const plain = told[language()];
    return term ? `${term[language()]}: ${plain[0].toLowerCase()}${plain.slice(1)}` : plain;
  }
  const words = learnWords();
  const walkable = models.some((model) => model.looks && ["translate", "classify"].includes(model.request) && !model.words);
  const tab = (name, open) => h("button", { type: "button", class: "step", onclick: open }, name);
  const tabs = { path: tab(words.path, openPath), book: tab(words.book, () => openBook(true)) };
  const book = h("div", { hidden: true });
  const heading = h("h2", { class: "idea", tabindex: -1 });
  const sentence = h("p", { class: "out" });
  const formula = h("div", { class: "formula", tabindex: 0, role: "group", "aria-label": t().equation });
  const code = h("ul", { class: "code" });
  const errata = h("div", { class: "errata" });
  const served = h("p", { class: "about" });
  const shows = h("p", { class: "shows", role: "status" });
  const unknown = h("p", { class: "about", role: "status" });
  const own = h("input", { type: "text", id: "own-sentence", maxlength: 300, autocomplete: "off", spellcheck: "false" });
  const ownFile = h("input", { type: "file", id: "own-picture", accept: "image/*" });
  const example = h("button", { type: "button", class: "link", hidden: true, onclick: () => tryOwn(null) }, words.example);
  const trial = h("form", { class: "choice" }, h("label", { for: "own-sentence" }, words.own), own, h("label", { for: "own-picture" }, words.ownImage), ownFile, example);
  const chosen = h("select", { id: "idea", onchange: () => go(chosen.value, true) });
  const step = (by, words) =>
    h("button", { type: "button", class: "step", onclick: () => walk(by) }, words);
  const [back, next] = [step(-1, t().back), step(1, t().next)];
  page.append(
    h("div", { class: "choice ways", role: "group", "aria-label": words.parts, hidden: !walkable }, tabs.path, tabs.book),
    book,
  );
  book.append(
    h("div", { class: "choice walk" }, h("label", { for: "idea" }, t().idea), chosen, back, next),
    heading,
    sentence,
    formula,
    unknown,
    trial,
    served,
    code,
    errata,
    shows,
  );
  const figure = makeFigure(book);
  let stopped = false;
  let walking = null; // the path, while it is open
  let shown = null; // the idea, and the person's own input for it

  trial.addEventListener("submit", (event) => event.preventDefault());
  own.addEventListener("change", () => tryOwn(own.value.trim() || null));
  ownFile.addEventListener("change", () => {
    const reader = new FileReader();
    reader.onload = () => tryOwn(reader.result);
    if (ownFile.files[0]) reader.readAsDataURL(ownFile.files[0]);
  });

  function press(name) {
    for (const [each, button] of Object.entries(tabs)) button.setAttribute("aria-pressed", String(each === name));
    book.hidden = name !== "book";
  }

  async function openPath() {
    if (walking) return;
    press("path");
    figure.clear();
    remember({ view: "learn", idea: null, map: null, layer: null, head: null, row: null, column: null });
    walking = Promise.all([load("/static/path.js"), style()]).then(([module]) => (stopped ? null : module.path(page, models)));
    walking.catch((error) => {
      walking = null;
      if (!stopped) page.append(h("p", { class: "status wrong", role: "alert" }, error.message));
    });
  }

  async function openBook(fresh) {
    press("book");
    const path = walking;
    walking = null;
    (await path)?.destroy();
    begin(fresh);
  }

  /** The idea's figure on a sentence or a picture of the person's own; null: on its example. */
  function tryOwn(given) {
    if (!shown || given === shown.given) return;
    remember({ row: null, column: null });
    draw(shown.idea, given);
  }

  const ids = () => [...lessons.ideas.map((idea) => idea.id), ERRATA];

  function walk(by) {
    const all = ids();
    go(all[all.indexOf(chosen.value) + by], true);
  }

  /** Show an idea; `fresh` opens its figure as the idea has it, and not as the address does. */
  function go(id, fresh) {
    const all = ids();
    const place = Math.max(all.indexOf(id), 0);
    const idea = lessons.ideas[place];
    chosen.value = all[place];
    back.disabled = place === 0;
    next.disabled = place === all.length - 1;
    const { map = null, layer = null, head = null, row = null } = idea?.figure ?? {};
    remember({ view: "learn", idea: all[place], ...(fresh ? { map, layer, head, row, column: null } : {}) });
    heading.textContent = idea ? named(idea) : t().errata;
    sentence.textContent = idea ? idea.sentence[language()] : t().errataHint;
    formula.hidden = !idea;
    formula.replaceChildren(...(idea ? [equation(idea.math)] : []));
    errata.replaceChildren(...(idea ? [] : lessons.errata.map(erratum)));
    code.replaceChildren(
      ...(idea?.code ?? []).map(({ name, file, line }) =>
        h("li", {}, h("code", {}, `${file}:${line}`), " ", h("code", { class: "name" }, name)),
      ),
    );
    if (fresh) heading.focus({ preventScroll: true });
    own.value = ownFile.value = "";
    draw(idea, null);
  }

  const erratum = ({ said, true: right }) =>
    h(
      "section",
      {},
      h("p", { class: "said" }, h("b", {}, `${t().said} `), said[language()]),
      h("p", {}, h("b", {}, `${t().right} `), right[language()]),
    );

  /** The figure on the served model, or on another of its kind. */
  async function draw(idea, mine) {
    figure.clear();
    shown = { idea, given: mine };
    served.textContent = shows.textContent = "";
    trial.hidden = !idea;
    example.hidden = !mine;
    if (!mine) own.value = ownFile.value = "";
    if (!idea) return;
    const wanted = idea.figure;
    const fits = (model) => model.looks && model.images === Boolean(wanted.image);
    const alike = models.filter(fits);
    const model = alike.find((each) => each.name === wanted.model) ?? alike[0];
    trial.hidden = !model;
    own.hidden = own.labels[0].hidden = Boolean(wanted.image);
    ownFile.hidden = ownFile.labels[0].hidden = !wanted.image;
    own.placeholder = wanted.text ?? "";
    own.lang = model?.source ?? "";
    if (!model) {
      served.textContent = t().notServed;
      return;
    }
    served.textContent = t().liveOn(title(model));
    if (!mine && model.name === wanted.model) shows.textContent = wanted.shows[language()];
    const given = wanted.image ? { image: mine ?? (await imageUrl(wanted.image)) } : { text: mine ?? wanted.text };
    if (stopped || walking || shown.idea !== idea || shown.given !== mine) return;
    const languages = { source: model.source, target: model.target };
    figure.show({ model: model.name, ...given }, { languages, panel: wanted.panel });
  }

  async function begin(fresh) {
    try {
      lessons ??= await get("/api/v1/learn");
    } catch (error) {
      unknown.textContent = [error.message, error.remedy].filter(Boolean).join(" ");
      return;
    }
    if (stopped || walking) return;
    chosen.replaceChildren(
      ...lessons.ideas.map((idea, i) => h("option", { value: idea.id }, `${i + 1}. ${named(idea)}`)),
      h("option", { value: ERRATA }, t().errata),
    );
    const known = recall("idea");
    go(known ?? ids()[0], fresh || !ids().includes(known));
    unknown.textContent = known && !ids().includes(known) ? words.unknown(known) : "";
  }
  style();
  if (walkable && !recall("idea")) openPath();
  else openBook(false);
  return {
    destroy() {
      stopped = true;
      walking?.then((open) => open?.destroy());
      figure.destroy();
    },
  };
}
