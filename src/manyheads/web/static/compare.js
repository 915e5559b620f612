// Two models on one input, or two inputs of one model: one gesture in both figures, on one scale, and
// the difference where their maps have the same shape.

import { makeTip, number, label } from "/static/draw/draw.js";
import { say } from "/static/draw/language.js";
import { draw } from "/static/draw/look.js";
import { makeMatrix } from "/static/draw/matrix.js";
import { makeAsker, post } from "./api.js";
import { saveLook } from "./figure.js";
import { awaiting, debounced, dropZone, firstOf, h, imageExamples, modelChoice, statusLine } from "./parts.js";
import { recall, remember } from "./address.js";
import { pairExamples } from "./examples.js";
import { t } from "./words.js";

const PAUSE = 200; // milliseconds without a key before the server is asked
const NOTHING = { row: null, column: null };
const { select } = globalThis.d3;

export function compare(page, models) {
  const sides = [side(0), side(1)];
  const about = h("p", { class: "about" }, t().compareHint);
  const figures = h("section", { class: "twice" }, sides.map((each) => each.figure));
  const between = h("section", { class: "between look" });
  page.append(
    about,
    h("section", { class: "pair" }, sides.map((each) => each.inputs)),
    figures,
    between,
  );
  let difference = null;
  let passing = false;

  /** One of the two: its model, its input and its figure. */
  function side(number_) {
    const end = number_ ? "2" : "";
    const names = { model: `model${end}`, text: `text${end}`, image: `image${end}` };
    const first = number_ ? sides0().model : firstOf(models);
    const chosen = recall(names.model) ?? first.name;
    const choice = modelChoice(models, chosen, changed, { id: names.model, label: t().sides[number_] });
    const status = statusLine();
    const text = h("textarea", { id: names.text, rows: 1, spellcheck: "false", "aria-label": t().source });
    const drop = dropZone((url) => {
      mine.image = url;
      follow();
    }, { name: names.image, id: `file${number_}` });
    const answer = h("p", { class: "out small" });
    const root = h("div", { class: "look" });
    const save = h(
      "button",
      { type: "button", class: "link", hidden: true, onclick: () => saveLook(mine.asked) },
      t().save,
    );
    const mine = {
      asked: null,
      choice,
      drop,
      image: null,
      drawing: null,
      inputs: h("div", {}, choice.box, text, drop.zone, status.line, answer),
      figure: h("div", { class: "side", role: "group", "aria-label": t().sides[number_] }, root, save),
      destroy() {
        asker.stop();
        drop.destroy();
        mine.drawing?.destroy();
        removeEventListener("resize", grow);
      },
    };
    const asker = makeAsker({
      begin() {
        root.classList.add("old");
        status.say(awaiting(choice.model));
      },
      async done(found) {
        status.say("");
        root.classList.remove("old");
        mine.drawing?.destroy();
        mine.drawing = null;
        save.hidden = !found;
        if (!found) return;
        choice.model.loaded = true;
        answer.textContent = found.data.told.translation ?? found.data.told.answer ?? "";
        answer.lang = choice.model.target ?? "";
        mine.drawing = await draw(root, found.data, found.packed, {
          second: number_ === 1,
          languages: choice.model,
        });
        for (const what of ["choice", "focus"]) mine.drawing.state.on(what, () => pass(mine, what));
        join();
      },
      failed(error) {
        root.classList.remove("old");
        status.fail(error);
      },
    });

    function grow() {
      text.style.height = "auto";
      text.style.height = `${text.scrollHeight + 2}px`;
    }

    function changed() {
      if (!choice.model.images && !text.value.trim()) text.value = pairExamples(choice.model)[number_] ?? "";
      follow();
    }

    function follow() {
      const { model } = choice;
      const given = text.value.trim();
      text.hidden = model.images;
      drop.zone.hidden = !model.images;
      drop.show(model.images ? imageExamples(model) : []);
      remember({ view: "compare", [names.model]: model.name, [names.text]: model.images ? null : given });
      grow();
      const body = model.images ? mine.image && { image: mine.image } : given && { text: given };
      if (!body) answer.textContent = "";
      mine.asked = { model: model.name, ...body };
      asker.ask((signal) =>
        body ? post("/api/v1/look", { ...mine.asked, form: "page" }, { signal }) : null,
      );
    }

    text.addEventListener("input", debounced(follow, PAUSE));
    addEventListener("resize", grow);
    const examples = pairExamples(choice.model);
    text.value = recall(names.text) ?? examples[number_] ?? examples[0] ?? "";
    mine.begin = follow;
    return mine;
  }

  function sides0() {
    const chosen = recall("model");
    return { model: models.find((each) => each.name === chosen) ?? firstOf(models) };
  }

  /** What was done in one figure is done in the other, too. */
  function pass(from, what) {
    const other = sides.find((each) => each !== from);
    if (passing || !from.drawing || !other.drawing) return;
    passing = true;
    other.drawing.state.adopt(from.drawing.state.choices());
    passing = false;
    difference?.draw(what);
  }

  /** Let both figures follow one gesture, on one scale, once both are there. */
  function join() {
    const [a, b] = sides.map((each) => each.drawing);
    difference?.destroy();
    difference = null;
    if (!a || !b) return;
    for (const [one, other] of [[a, b], [b, a]]) {
      one.kinds.forEach((kind) => {
        const twin = other.kinds.find((each) => each.name === kind.name);
        kind.layers.forEach((layer, i) => {
          const there = twin?.layers[i];
          layer.other = there ? (look, active) => other.peakAt(there, look.name, active) : null;
        });
      });
    }
    passing = true;
    b.state.adopt(a.state.choices());
    passing = false;
    a.redraw();
    b.redraw();
    difference = makeDifference(between, a, b);
    difference.draw("choice");
  }

  for (const each of sides) each.begin();
  return {
    destroy() {
      difference?.destroy();
      for (const each of sides) each.destroy();
    },
  };
}

/** The second map less the first, where their shapes agree. */
function makeDifference(box, a, b) {
  const title = h("h2", {}, t().difference);
  const told = h("p", { class: "legend" });
  const place = h("div", {});
  box.replaceChildren(title, told, place);
  const listeners = { choice: [], focus: [] };
  const tip = makeTip();
  const said = h("p", { class: "unseen", role: "status" });
  box.append(said);
  let shown = null;
  let cell = null;

  /** Both maps as one of differences; null if their shapes differ. */
  function found() {
    const looks = [a, b].map((each) => each.state.look());
    const layers = [a, b].map((each) => each.state.layer());
    if (!looks[0] || looks[0].name !== looks[1]?.name) return null;
    if (a.image !== b.image) return null;
    if (!a.image) return ofTexts(looks, layers);
    const cells = [a, b].map((each, i) => each.cells(layers[i], looks[i]));
    if (cells[0].rows !== cells[1].rows || cells[0].columns !== cells[1].columns) return null;
    return ofCells(cells);
  }

  function ofTexts(looks, [one, two]) {
    if (one.rows.length !== two.rows.length || one.columns.length !== two.columns.length) return null;
    const both = (x, y) => x.map((token, i) => (token === y[i] ? token : `${label(token)}/${label(y[i])}`));
    return {
      rows: both(one.rows, two.rows),
      columns: both(one.columns, two.columns),
      at: (r, c) => looks[1].at(r, c) - looks[0].at(r, c),
      whole: false,
    };
  }

  function ofCells(cells) {
    const count = (many) => Array.from({ length: many }, (_, i) => String(i + 1));
    return {
      rows: count(cells[0].rows),
      columns: count(cells[0].columns),
      at: (r, c) => cells[1].at(r, c) - cells[0].at(r, c),
      whole: true, // its cells change with the row that is shown
    };
  }

  const state = {
    layer: () => ({ rows: shown.rows, columns: shown.columns, site: "", causal: false, looks: [] }),
    look: () => ({ at: shown.at, signed: true, name: "difference", label: "difference", peak: shown.peak }),
    layers: () => [],
    active: () => (shown.whole ? (cell ?? NOTHING) : a.state.active()),
    hover: (place) => (shown.whole ? walk(place) : a.state.hover(place)),
    pin: (place, toggle) => (shown.whole ? walk(place) : a.state.pin(place, toggle)),
    on: (what, listener) => listeners[what].push(listener),
  };
  // The cells of an image are what is looked at, not what looks: they are walked over by themselves.
  function walk(place) {
    cell = place;
    for (const listener of listeners.focus) listener();
  }
  const app = {
    state,
    tip,
    colours: a.colours,
    say: (words) => said.replaceChildren(words),
    about: (r, c) => [`${label(shown.rows[r])} → ${label(shown.columns[c])}`, number(shown.at(r, c))],
  };
  makeMatrix(select(place), app);

  return {
    draw(what) {
      const whole = what === "choice" || shown?.whole !== false;
      if (whole) {
        shown = found();
        if (shown) {
          const all = shown.rows.flatMap((_, r) => shown.columns.map((__, c) => Math.abs(shown.at(r, c))));
          shown.peak = Math.max(...all, 1e-9);
        }
      }
      place.hidden = !shown;
      told.textContent = shown ? t().differenceOf : t().noDifference;
      if (!shown) return;
      for (const listener of listeners[whole ? "choice" : "focus"]) listener();
    },
    destroy() {
      tip.remove();
      box.replaceChildren();
    },
  };
}
