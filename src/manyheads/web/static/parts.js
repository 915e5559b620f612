// Small parts that the views share.

import { IMAGES, dataOf } from "./examples.js";
import { recall, remember } from "./address.js";
import { languageName, t } from "./words.js";

/** Make an element: attributes, `on...` listeners, then children. */
export function h(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "textContent") made[key] = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export const percent = (value) =>
  value > 0 && value < 0.01 ? "<1%" : `${Math.round(100 * value)}%`;

/** The model to begin with: one that reads the language of the page. */
export const firstOf = (models) => models.find((model) => model.source === document.documentElement.lang) ?? models[0];

/** The most similar order of two lists of words; gives which of each are in the other. */
export function shared(before, after) {
  const rows = Array.from({ length: before.length + 1 }, () => new Array(after.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const [skip, drop] = [rows[i][j + 1], rows[i + 1][j]];
      rows[i][j] = before[i] === after[j] ? rows[i + 1][j + 1] + 1 : Math.max(skip, drop);
    }
  }
  const kept = [before.map(() => false), after.map(() => false)];
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) kept[0][i++] = kept[1][j++] = true;
    else if (rows[i + 1][j] >= rows[i][j + 1]) i++;
    else j++;
  }
  return kept;
}

/** Call something once nothing has called for so many milliseconds. */
export function debounced(act, milliseconds) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
}

/**
 * A select of models, with what each was trained on and how good it is; on paper its name. A model that a
 * link names and nobody serves is `missing`, which is said. `change(model, kept)` hears of a choice;
 * `kept` is true where the person's words stay.
 */
export function modelChoice(models, chosen, change, { id = "model", label = t().model, hint = "", missing = null } = {}) {
  const about = h("p", { class: "about" });
  const intro = h("p", { class: "intro" });
  const printed = h("span", { class: "printed" });
  const lost = h("p", { class: "status wrong", role: "alert", hidden: true });
  const select = h(
    "select",
    { id, onchange: () => pick(select.value, true) },
    models.map((model) => h("option", { value: model.name, selected: model.name === chosen }, title(model))),
  );
  function pick(name, told, kept = false) {
    const model = models.find((each) => each.name === name) ?? models[0];
    lost.hidden = told || !missing || models.some((each) => each.name === missing);
    if (!lost.hidden) lost.textContent = t().noModel(missing, model.name);
    select.value = model.name;
    about.textContent = facts(model);
    about.hidden = !about.textContent;
    intro.textContent = [introduction(model), hint].filter(Boolean).join(" ");
    printed.textContent = title(model);
    if (told) change(model, kept);
  }
  pick(chosen, false);
  const box = h("div", { class: "choice" }, lost, intro, h("label", { for: id }, label), select, printed, about);
  return { box, get model() {
    return models.find((each) => each.name === select.value);
  }, pick };
}

export function title(model) {
  if (model.source && model.target) return `${model.name} (${model.source} → ${model.target})`;
  return model.name;
}

/** "English to German, 2.5M parameters." */
function introduction(model) {
  const { source, target, parameters, languages } = model;
  const own = document.documentElement.lang;
  const pair = source && target ? t().pair(languageName(source), languageName(target)) : "";
  const count = new Intl.NumberFormat(own, { notation: "compact", maximumSignificantDigits: 2 });
  const parts = [
    pair,
    languages?.length ? languages.map(languageName).join(", ") : "",
    parameters ? t().parameters(count.format(parameters)) : "",
  ];
  const data = dataOf(model, own);
  return `${parts.filter(Boolean).join(", ")}. ${data ? `${t().hasRead} ${data}.` : ""}`;
}

// Of each measure, what a person may expect of it; in the order in which one of them is shown.
const MEASURES = ["chrf", "accuracy", "exact", "cer", "f1", "text_to_image_1"];

/** How good a model is by the origin of the data, the worst beside the best, in words. */
function facts(model) {
  const found = new Map(); // origin: value; what nobody chose by (a test) goes before what one did
  const all = Object.entries(model.measured ?? {});
  const measure = MEASURES.find((each) => all.some(([name]) => name.endsWith(` ${each}`)));
  if (!measure) return "";
  for (const [name, value] of all.filter(([each]) => each.endsWith(` ${measure}`))) {
    const origin = originOf(name.slice(0, -measure.length - 1));
    const test = /test|jhe|ntrex/.test(name);
    if (!found.has(origin) || test) found.set(origin, value);
  }
  const better = measure === "cer" ? 1 : -1;
  const ranked = [...found].sort(([, a], [, b]) => better * (a - b));
  const shown = ranked.length > 1 ? [ranked[0], ranked.at(-1)] : ranked;
  const rounded = (value) => Math.round(value * 10) / 10;
  const threads = model.alignment_error == null ? "" : ` ${t().misaligned(rounded(model.alignment_error))}`;
  return t().measured(measure, shown.map(([origin, value]) => [origin, rounded(value)])) + threads;
}

/** What data are, in words; the name of others. */
function originOf(data) {
  const [, words] = t().origins.find(([start]) => data.includes(start)) ?? [];
  return words ?? data;
}

/** What is said while an answer is awaited: a model that was not asked before has to be loaded. */
export const awaiting = (model) => (model.loaded ? t().waiting : t().late);

/** A line that says what happens, also to screen readers; a failure may be tried `again`. */
export function statusLine() {
  const line = h("p", { class: "status", role: "status" });
  return {
    line,
    isWrong: () => line.classList.contains("wrong"),
    say(words, kind = "") {
      line.textContent = words;
      line.className = `status ${kind}`;
    },
    fail(error, again = null) {
      line.replaceChildren([error.message || t().failed, error.remedy].filter(Boolean).join(" "), " ");
      if (again) line.append(h("button", { type: "button", class: "link", onclick: again }, t().again));
      line.className = "status wrong";
    },
  };
}

export const cellText = (cell) =>
  typeof cell === "number" && !Number.isInteger(cell) ? cell.toPrecision(3) : String(cell ?? "");

let lastImage = null; // that was given, for the next view: [url, example, warning]

/** What a picture's file lacks at its end, if it lacks something: a browser draws such a picture in silence. */
async function cut(file) {
  const bytes = new Uint8Array(await file.slice(-64).arrayBuffer());
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const has = (...signs) => bytes.some((_, i) => signs.every((sign, j) => bytes[i + j] === sign));
  if (head[0] === 0xff && head[1] === 0xd8) return !has(0xff, 0xd9);
  if (head[0] === 0x89 && head[1] === 0x50) return !has(0x49, 0x45, 0x4e, 0x44);
  return false;
}

/**
 * Where an image is dropped, pasted or chosen; gives it as a data URL, its name if it is one of the
 * examples, and a warning about the file: first that of the address, or that of the view before.
 */
export function dropZone(taken, { examples = [], name = "image", id = "file" } = {}) {
  const file = h("input", { type: "file", accept: "image/*", id, onchange: () => take(file.files) });
  const chips = h("div", { class: "chips", role: "group", "aria-label": t().examples });
  const zone = h(
    "div",
    { class: "drop" },
    h("label", { for: id }, t().drop),
    file,
    h("p", { class: "about" }, t().paste),
    chips,
  );
  function give(url, example = null, warning = "") {
    lastImage = [url, example, warning];
    remember({ [name]: example });
    taken(url, example, warning);
  }
  async function take(files) {
    const image = [...(files ?? [])].find((each) => each.type.startsWith("image/"));
    if (!image) return;
    const warning = (await cut(image)) ? t().cutImage(image.name) : "";
    give(await dataUrl(image), null, warning);
  }
  async function offer(example) {
    give(await imageUrl(example), example);
  }
  /** Show the examples that fit a model. */
  function show(names) {
    chips.hidden = !names.length;
    chips.replaceChildren(
      ...names.map((each) =>
        h(
          "button",
          { type: "button", onclick: () => offer(each) },
          h("img", { src: `/static/examples/${each}.png`, alt: "" }),
          t().images[each],
        ),
      ),
    );
  }
  zone.addEventListener("dragover", () => zone.classList.add("over"));
  for (const end of ["dragleave", "drop"]) zone.addEventListener(end, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation();
    take(event.dataTransfer.files);
  });
  const paste = (event) => take(event.clipboardData?.files);
  addEventListener("paste", paste);
  show(examples);
  const linked = recall(name);
  if (linked in t().images) offer(linked);
  else if (lastImage) queueMicrotask(() => taken(...lastImage));
  return { zone, show, take, destroy: () => removeEventListener("paste", paste) };
}

/** A file as a data URL. */
const dataUrl = (blob) =>
  new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = failed;
    reader.readAsDataURL(blob);
  });

/** An example image as a data URL. */
export const imageUrl = async (example) => dataUrl(await (await fetch(`/static/examples/${example}.png`)).blob());

/** The examples that a model of images can do something with. */
export const imageExamples = (model) => Object.keys(IMAGES).filter((name) => IMAGES[name] === model.name);

/** Classes with bars; `before` are probabilities to compare with, by label. */
export function classBars(classes, before = null) {
  return h(
    "div",
    { class: "classes" },
    classes.map(({ label, probability }) => {
      const bar = h("span");
      bar.style.width = `${100 * probability}%`;
      const change = before && label in before ? probability - before[label] : null;
      const moved =
        change !== null && Math.abs(change) >= 0.005
          ? h("span", { class: "change" }, ` (${change > 0 ? "+" : "−"}${Math.round(100 * Math.abs(change))})`)
          : null;
      return h(
        "div",
        { class: "class" },
        h("span", { class: "name" }, label),
        h("span", { class: "bar" }, bar),
        h("span", { class: "percent" }, percent(probability), moved),
      );
    }),
  );
}
