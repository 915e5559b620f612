// Small parts that the views share.

import { say } from "/static/draw/language.js";
import { dataOf } from "./examples.js";
import { recall, remember } from "./place.js";
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

/** Call something once nothing has called for so many milliseconds. */
export function debounced(act, milliseconds) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
}

/**
 * A select of models, with what each was trained on and how good it is; on paper its name. With a `hint`
 * a line in front says what the model does, and what to do.
 */
export function modelChoice(models, chosen, change, { id = "model", label = t().model, hint = "" } = {}) {
  const about = h("p", { class: "about" });
  const intro = h("p", { class: "intro", hidden: !hint });
  const printed = h("span", { class: "printed" });
  const select = h(
    "select",
    { id, onchange: () => pick(select.value, true) },
    models.map((model) => h("option", { value: model.name, selected: model.name === chosen }, title(model))),
  );
  function pick(name, told) {
    const model = models.find((each) => each.name === name) ?? models[0];
    select.value = model.name;
    about.textContent = facts(model).join(" · ");
    intro.textContent = `${introduction(model)} ${hint}`;
    printed.textContent = title(model);
    if (told) change(model);
  }
  pick(chosen, false);
  const box = h("div", { class: "choice" }, intro, h("label", { for: id }, label), select, printed, about);
  return { box, get model() {
    return models.find((each) => each.name === select.value);
  }, pick };
}

export function title(model) {
  if (model.source && model.target) return `${model.name} (${model.source} → ${model.target})`;
  return model.name;
}

/** "English to German, 2.5M parameters, photo captions." */
function introduction(model) {
  const { source, target, parameters, languages } = model;
  const own = document.documentElement.lang;
  const pair = source && target ? t().pair(languageName(source), languageName(target)) : "";
  const count = new Intl.NumberFormat(own, { notation: "compact", maximumSignificantDigits: 2 });
  const parts = [
    pair,
    languages?.length ? languages.map(languageName).join(", ") : "",
    parameters ? t().parameters(count.format(parameters)) : "",
    dataOf(model, own),
  ];
  return `${parts.filter(Boolean).join(", ")}.`;
}

/** What the server notes about an answer, in the person's language. */
export const noteList = (notes) =>
  notes?.length ? h("ul", { class: "notes" }, notes.map((note) => h("li", {}, say(note)))) : null;

function facts(model) {
  const scores = Object.entries(model.measured ?? {});
  const tests = scores.filter(([name]) => /test/.test(name));
  const shown = (tests.length ? tests : scores).slice(0, 3);
  const told = shown.map(([name, value]) => t().measured(name, value));
  return [...(model.trained_on ? [t().trained(model.trained_on)] : []), ...told];
}

/** What is said while an answer is awaited: a model that was not asked before has to be loaded. */
export const awaiting = (model) => (model.loaded ? t().waiting : t().late);

/** A line that says what happens, also to screen readers. */
export function statusLine() {
  const line = h("p", { class: "status", role: "status" });
  return {
    line,
    say(words, kind = "") {
      line.textContent = words;
      line.className = `status ${kind}`;
    },
    fail(error) {
      line.textContent = [error.message || t().failed, error.remedy].filter(Boolean).join(" ");
      line.className = "status wrong";
    },
  };
}

let lastImage = null; // that was dropped, for the next view

/**
 * Where an image is dropped, pasted or chosen; gives it as a data URL, and its name if it is one of the
 * examples: first that of the address, or that of the view before.
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
  function give(url, example = null) {
    lastImage = url;
    remember({ [name]: example });
    taken(url, example);
  }
  function take(files) {
    const [image] = files ?? [];
    if (!image) return;
    const reader = new FileReader();
    reader.onload = () => give(reader.result);
    reader.readAsDataURL(image);
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
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files);
  });
  const paste = (event) => take(event.clipboardData?.files);
  addEventListener("paste", paste);
  show(examples);
  const linked = recall(name);
  if (linked in t().images) offer(linked);
  else if (lastImage) queueMicrotask(() => taken(lastImage, null));
  return { zone, show, destroy: () => removeEventListener("paste", paste) };
}

/** An example image as a data URL. */
export async function imageUrl(example) {
  const blob = await (await fetch(`/static/examples/${example}.png`)).blob();
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = failed;
    reader.readAsDataURL(blob);
  });
}

/** The examples that a model of images can do something with. */
export function imageExamples(model) {
  if (model.request === "caption") return model.source ? ["line"] : ["heart", "car"];
  return model.name === "digits" ? ["seven"] : ["ship", "car", "airplane"];
}

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
