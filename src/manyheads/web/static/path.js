// A path that asks: eight steps on the visitor's own sentence or picture, a guess before each answer.

import { makeAsker, post } from "./api.js";
import { textExamples } from "./examples.js";
import { noteItems, ofAnswer } from "./notes.js";
import { h, imageUrl, title } from "./parts.js";
import { IMAGE_STEPS } from "./path.image.js";
import { TEXT_STEPS } from "./path.text.js";
import { words } from "./path.words.js";
import { isSpecial } from "./path.draw.js";
import { kept as keptByPage } from "./store.js";

const KEPT = "manyheads-path"; // in this browser's storage
const LARGEST = 224; // pixels along the longer side of a picture that is kept
const SENTENCES = { en: "My brother sold his old guitar to a friend.", ko: "이 함수는 리스트의 길이를 반환합니다." };
const EXAMPLES = { digits: "seven" };
const LONGEST = 300; // characters of a sentence
const CLASSES = 1000; // as many as a model has
const FRESH = { kind: "text", step: { text: 1, image: 1 }, guesses: { text: {}, image: {} }, model: {}, text: null, image: null };

function recalled() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT)) ?? {};
    const two = (name) => ({ ...FRESH[name], ...found[name] });
    return { ...FRESH, ...found, step: two("step"), guesses: two("guesses"), model: two("model") };
  } catch {
    return structuredClone(FRESH);
  }
}

/** The models that the path can walk through. */
export const walkable = (models) => ({
  text: models.filter((model) => model.looks && model.request === "translate" && !model.images),
  image: models.filter((model) => model.looks && model.request === "classify" && !model.words),
});

export function path(page, models) {
  const t = words();
  const able = walkable(models);
  const kept = recalled();
  if (!able[kept.kind].length) kept.kind = able.text.length ? "text" : "image";
  const box = h("section", { class: "path", "aria-label": t.lead });
  const bring = h("div", { class: "path-bring" });
  const says = h("div", { class: "path-says", role: "status" });
  const flow = h("nav", { class: "path-flow", "aria-label": t.flow });
  const card = h("div", { class: "path-card" });
  box.append(h("p", { class: "path-lead" }, t.lead), bring, says, flow, card);
  page.append(box);
  let made = new Map(); // the steps of this input, as they were asked for
  let context = null;
  let showing = 0; // a later call of show() makes an earlier one stop

  const model = () => able[kept.kind].find(({ name }) => name === (kept.model[kept.kind] ?? keptByPage("model"))) ?? able[kept.kind][0];
  const guesses = () => kept.guesses[kept.kind];
  const step = () => kept.step[kept.kind];

  function keep() {
    try {
      localStorage.setItem(KEPT, JSON.stringify(kept));
    } catch {
      // for this visit only
    }
  }

  // --- What is brought ------------------------------------------------------------------------------

  /** What the visitor typed where texts are translated, if it is no example. */
  function typed() {
    const text = keptByPage("model") === model().name ? tidy(keptByPage("text") ?? "") : "";
    return text && text.length <= LONGEST && !textExamples(model()).includes(text) ? text : null;
  }

  const tidy = (text) => text.trim().replace(/\s+/g, " ");
  const begun = () => kept.text ?? typed() ?? SENTENCES[model().source] ?? SENTENCES.en;

  function drawBring() {
    const kinds = Object.keys(able).filter((kind) => able[kind].length);
    const tabs = kinds.map((kind) =>
      h("button", { type: "button", class: "step", "aria-pressed": String(kind === kept.kind), onclick: () => switchTo(kind) }, t.kinds[kind]),
    );
    const select = h(
      "select",
      { id: "path-model", onchange: () => renew({ model: { ...kept.model, [kept.kind]: select.value } }) },
      able[kept.kind].map((each) => h("option", { value: each.name, selected: each === model() }, title(each))),
    );
    const choice = h("div", { class: "path-choice" }, h("div", { class: "path-kinds", role: "group", "aria-label": t.bring }, tabs), h("label", { for: "path-model" }, t.model), select);
    bring.replaceChildren(choice, kept.kind === "text" ? textField() : imageField());
  }

  function textField() {
    const field = h("input", { type: "text", id: "path-text", maxlength: LONGEST, autocomplete: "off", spellcheck: "false", lang: model().source, value: begun() });
    const form = h("form", { class: "path-field" }, h("label", { for: "path-text" }, t.sentence), field, h("button", { type: "submit", class: "step" }, t.use));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = tidy(field.value);
      if (text && text !== begun()) renew({ text });
    });
    return form;
  }

  function imageField() {
    const file = h("input", { type: "file", id: "path-file", accept: "image/*", onchange: () => take(file.files[0]) });
    return h("div", { class: "path-field" }, h("label", { for: "path-file" }, t.picture), file);
  }

  async function take(given) {
    if (!given) return;
    try {
      const bitmap = await createImageBitmap(given);
      const share = Math.min(1, LARGEST / Math.max(bitmap.width, bitmap.height));
      const canvas = h("canvas");
      [canvas.width, canvas.height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * share)));
      canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      renew({ image: canvas.toDataURL("image/png") });
    } catch {
      fail(new Error(`${t.failed}: ${given.name}`));
    }
  }

  /** Another input or model: guesses about the last one are void, the step stays. */
  function renew(change) {
    Object.assign(kept, change);
    kept.guesses[kept.kind] = {};
    keep();
    begin();
  }

  function switchTo(kind) {
    kept.kind = kind;
    keep();
    begin();
  }

  function startAgain() {
    Object.assign(kept, structuredClone(FRESH), { kind: kept.kind });
    keep();
    begin();
  }

  // --- The model's answer ---------------------------------------------------------------------------

  const asker = makeAsker({
    begin() {
      box.classList.add("old");
      says.textContent = t.waiting;
    },
    done(found) {
      box.classList.remove("old");
      context = found;
      const doubts = noteItems(ofAnswer(found.view.notes), model().name);
      says.replaceChildren(
        `${t.says} `,
        h("b", { lang: found.view.target }, found.answer),
        ...(doubts.length ? [h("ul", { class: "notes" }, doubts.map((doubt) => h("li", {}, doubt)))] : []),
      );
      drawFlow();
      show();
    },
    failed: fail,
  });

  function fail(error) {
    box.classList.remove("old");
    says.replaceChildren(
      h("span", { class: "status wrong" }, [error.message || t.failed, error.remedy].filter(Boolean).join(" ")),
      " ",
      h("button", { type: "button", class: "link", onclick: begin }, t.retry),
    );
  }

  function begin() {
    made = new Map();
    context = null;
    drawBring();
    flow.replaceChildren();
    card.replaceChildren();
    const chosen = model();
    asker.ask((signal) => (kept.kind === "text" ? readText(chosen, signal) : readImage(chosen, signal)));
  }

  async function readText(chosen, signal) {
    const text = begun();
    const given = { model: chosen.name, text };
    const view = await post("/api/v1/look", { ...given, form: "view" }, { signal });
    return {
      text,
      words: t,
      busy: fail,
      answer: view.translation ?? view.answer,
      view: { ...view, lang: chosen.source ?? "", target: chosen.target ?? "" },
      ask: (way, more) => post(`/api/v1/${way}`, { ...given, ...more }),
      translate: async (texts, more = {}, stop = undefined) =>
        (await post("/api/v1/translate", { model: chosen.name, texts, ...more }, { signal: stop })).answers.map((answer) => answer.translation),
    };
  }

  async function readImage(chosen, signal) {
    const url = kept.image ?? (await imageUrl(EXAMPLES[chosen.name] ?? "ship"));
    const given = { model: chosen.name, image: url };
    const view = await post("/api/v1/look", { ...given, form: "view" }, { signal });
    const image = new Image();
    image.src = url;
    await image.decode();
    const [{ label, probability }] = view.classes;
    return {
      url,
      image,
      view,
      words: t,
      busy: fail,
      answer: `${label}, ${Math.round(100 * probability)}%`,
      ask: (way, more) => post(`/api/v1/${way}`, { ...given, ...more }),
      classify: async (images, stop = undefined) =>
        (await post("/api/v1/classify", { model: chosen.name, images, top: CLASSES }, { signal: stop })).answers.map((answer) => answer.classes),
    };
  }

  // --- The whole model as one flow ------------------------------------------------------------------

  const state = (number) => {
    const guess = guesses()[number];
    return guess === undefined || guess.right === null ? "none" : guess.right ? "right" : "wrong";
  };

  function drawFlow() {
    const { view } = context;
    const named = t.parts;
    const text = kept.kind === "text";
    const kinds = (kind) => view.maps.filter((map) => map.kind === kind).length;
    const last = view.maps.filter((map) => map.kind === (text ? "decoder cross" : "encoder self")).at(-1);
    const count = text ? view.source.filter((token) => !isSpecial(token)).length : view.grids[0].rows * view.grids[0].columns;
    /** A part; the main one of its step has the step's number. */
    const part = (number, name, { more = "", label = null, first = true } = {}) => {
      const told = [label, t.step(number), first ? t.marks[state(number)] : ""].filter(Boolean).join(", ");
      const mark = { right: "✓", wrong: "•", none: number }[state(number)];
      return h(
        "button",
        { type: "button", "data-step": number, title: label, class: first ? "first" : null, onclick: () => go(number) },
        first ? h("i", { "aria-hidden": "true" }, String(mark)) : null,
        name,
        more ? h("small", {}, ` ${more}`) : null,
        h("span", { class: "unseen" }, `, ${told}`),
      );
    };
    const arrow = () => h("span", { class: "arrow", "aria-hidden": "true" }, "→");
    const plus = () => part(6, "+", { label: named.residual, first: false });
    const passing = (...inside) => h("span", { class: "passing" }, inside);
    flow.replaceChildren(
      part(1, text ? named.pieces : named.patches, { more: guesses()[1] === undefined ? "" : count }),
      arrow(),
      part(2, named.vectors),
      arrow(),
      part(3, named.positions),
      arrow(),
      h(
        "span",
        { class: "layer" },
        passing(part(4, named.attention), part(5, named.heads(last?.weights.length ?? 1))),
        plus(),
        passing(part(6, named.feedforward, { first: false })),
        plus(),
        part(6, named.layers(kinds("encoder self") + kinds("decoder cross"))),
      ),
      arrow(),
      part(7, named.logits),
      arrow(),
      part(7, text ? named.next : named.classes, { first: false }),
      arrow(),
      part(8, named.fool),
    );
    light();
  }

  function light() {
    for (const each of flow.querySelectorAll("button")) {
      const here = Number(each.dataset.step) === step();
      each.toggleAttribute("data-lit", here);
      if (here && each.classList.contains("first")) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    }
  }

  // --- One step -------------------------------------------------------------------------------------

  function go(number) {
    kept.step[kept.kind] = number;
    keep();
    drawFlow();
    show(true);
  }

  /** Make a step once for each input: going back finds it as it was. */
  function make(number) {
    if (!made.has(number)) {
      const steps = kept.kind === "text" ? TEXT_STEPS : IMAGE_STEPS;
      const making = Promise.resolve(steps[number - 1](context));
      making.catch(() => made.delete(number));
      made.set(number, making);
    }
    return made.get(number);
  }

  async function show(moved = false) {
    const mine = ++showing;
    const number = step();
    const told = t[kept.kind][number - 1];
    delete card.dataset.step; // it is set once the step can be answered
    const heading = h("h2", { tabindex: -1 }, h("small", {}, t.step(number)), ` ${told.title}`);
    const waiting = h("p", { class: "about" }, t.waiting);
    card.replaceChildren(heading, waiting);
    if (moved) {
      heading.focus({ preventScroll: true });
      flow.scrollIntoView({ block: "nearest" });
    }
    let found = null;
    try {
      found = await make(number);
    } catch (error) {
      if (mine === showing) fail(error);
      return;
    }
    if (mine !== showing) return;
    if (found) ask(number, told, found, waiting);
    else waiting.textContent = kept.kind === "text" ? t.short : t.short_image;
    card.append(steps(number));
    card.dataset.step = number;
  }

  function ask(number, told, found, place) {
    const verdict = h("p", { class: "path-verdict", role: "status" });
    const shown = h("div", { class: "path-shown" });
    const options = found.options.map((option, i) =>
      h("button", { type: "button", lang: found.lang, onclick: () => answer(i) }, option),
    );
    const skip = h("button", { type: "button", class: "link", onclick: () => answer(null) }, t.show);
    place.replaceWith(
      h("p", { class: "path-ask" }, told.ask(found.given)),
      ...(found.above?.() ?? []),
      h("div", { class: "path-options", role: "group", "aria-label": t.guess }, options, skip),
      verdict,
      shown,
    );
    const earlier = guesses()[number];
    if (earlier !== undefined) reveal(earlier.chosen);

    function answer(i) {
      if (guesses()[number] !== undefined) return;
      guesses()[number] = { chosen: i, right: i === null ? null : i === found.right };
      if (kept.kind === "text") kept.text = context.text; // guesses belong to it, whatever is typed elsewhere
      keep();
      drawFlow();
      const focused = document.activeElement === skip;
      reveal(i);
      if (focused) options[found.right].focus();
      const ended = card.querySelector(".path-steps");
      ended.replaceWith(steps(number));
    }

    function reveal(chosen) {
      skip.hidden = true;
      options.forEach((option, i) => {
        option.setAttribute("aria-disabled", "true");
        if (i === found.right) option.classList.add("right");
        if (i === chosen) option.setAttribute("aria-pressed", "true");
        const value = found.told?.(i);
        if (value) option.append(h("small", {}, ` ${value}`));
      });
      const opening = chosen === null || chosen === undefined ? "" : chosen === found.right ? t.right : t.wrong(found.options[chosen], found.told?.(chosen));
      verdict.replaceChildren(h("b", {}, opening), ` ${told.right(found.given)}`);
      verdict.classList.toggle("hit", chosen === found.right);
      shown.replaceChildren(
        ...told.explain(found.given).map((sentence) => h("p", { class: "path-explain" }, sentence)),
        h("div", { class: "path-figures" }, found.shown()),
      );
    }
  }

  function steps(number) {
    const told = Object.values(guesses()).filter((guess) => guess.right !== null);
    const open = [1, 2, 3, 4, 5, 6, 7, 8].filter((each) => guesses()[each] === undefined);
    const other = kept.kind === "text" ? "image" : "text";
    const button = (by, name) => {
      const fits = number + by >= 1 && number + by <= 8;
      return fits ? h("button", { type: "button", class: `step${by > 0 ? " ahead" : ""}`, onclick: () => go(number + by) }, name) : null;
    };
    return h(
      "div",
      { class: "path-steps" },
      number === 8 && guesses()[8] !== undefined
        ? h("p", { class: "path-done", role: "status" }, open.length ? t.open(open) : t.done(told.filter((guess) => guess.right).length, told.length))
        : null,
      button(-1, t.back),
      button(1, t.next),
      number === 8 && able[other].length ? h("button", { type: "button", class: "step", onclick: () => switchTo(other) }, t.other[kept.kind]) : null,
      h("button", { type: "button", class: "link again", onclick: startAgain }, t.startAgain),
    );
  }

  begin();
  return {
    destroy() {
      showing = -1;
      asker.stop();
      box.remove();
    },
  };
}
