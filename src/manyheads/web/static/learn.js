// The atlas as a walk: each idea a screen with a sentence, its equation, a live figure and its code.

import { get } from "./api.js";
import { makeFigure } from "./figure.js";
import { h, imageUrl, title } from "./parts.js";
import { recall, remember } from "./place.js";
import { equation } from "./tex.js";
import { t } from "./words.js";

const ERRATA = "errata";
let lessons = null;

export function learn(page, models) {
  const language = () => document.documentElement.lang;
  const heading = h("h2", { class: "idea", tabindex: -1 });
  const sentence = h("p", { class: "out" });
  const formula = h("div", { class: "formula", tabindex: 0, role: "group", "aria-label": t().equation });
  const code = h("ul", { class: "code" });
  const errata = h("div", { class: "errata" });
  const served = h("p", { class: "about" });
  const chosen = h("select", { id: "idea", onchange: () => go(chosen.value, true) });
  const step = (by, words) =>
    h("button", { type: "button", class: "step", onclick: () => walk(by) }, words);
  const [back, next] = [step(-1, t().back), step(1, t().next)];
  page.append(
    h("div", { class: "choice walk" }, h("label", { for: "idea" }, t().idea), chosen, back, next),
    heading,
    sentence,
    formula,
    served,
    code,
    errata,
  );
  const figure = makeFigure(page);
  let stopped = false;

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
    heading.textContent = idea ? idea.title[language()] : t().errata;
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
    draw(idea);
  }

  const erratum = ({ said, true: right }) =>
    h(
      "section",
      {},
      h("p", { class: "said" }, h("b", {}, `${t().said} `), said[language()]),
      h("p", {}, h("b", {}, `${t().right} `), right[language()]),
    );

  /** The figure on the served model, or on another of its kind. */
  async function draw(idea) {
    figure.clear();
    served.textContent = "";
    if (!idea) return;
    const wanted = idea.figure;
    const fits = (model) => model.looks && model.images === Boolean(wanted.image);
    const alike = models.filter(fits);
    const model = alike.find((each) => each.name === wanted.model) ?? alike[0];
    if (!model) {
      served.textContent = t().notServed;
      return;
    }
    served.textContent = t().liveOn(title(model));
    const given = wanted.image ? { image: await imageUrl(wanted.image) } : { text: wanted.text };
    if (stopped || chosen.value !== idea.id) return;
    const languages = { source: model.source, target: model.target };
    figure.show({ model: model.name, ...given }, { languages, panel: wanted.panel });
  }

  async function begin() {
    lessons ??= await get("/api/v1/learn");
    if (stopped) return;
    chosen.replaceChildren(
      ...lessons.ideas.map((idea, i) => h("option", { value: idea.id }, `${i + 1}. ${idea.title[language()]}`)),
      h("option", { value: ERRATA }, t().errata),
    );
    const known = recall("idea");
    go(known ?? ids()[0], !known);
  }
  begin();
  return {
    destroy() {
      stopped = true;
      figure.destroy();
    },
  };
}
