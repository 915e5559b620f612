// One picture, every answer: what it is, what it shows in words, what is written on it; and what if parts are covered.

import { get, makeAsker, post } from "./api.js";
import { dataOf, IMAGES } from "./examples.js";
import { makeFigure } from "./figure.js";
import { awaiting, classBars, debounced, dropZone, h, statusLine, title } from "./parts.js";
import { noteItems } from "./notes.js";
import { recall, remember } from "./address.js";
import { keep, kept } from "./store.js";
import { languageName, t } from "./words.js";

const PARTS = 8; // along each side, to cover
const TOP = 5;
const SIDE = 512; // pixels of the longer side that are sent
const LONG = 1600; // of a picture that may have text on it

export function picture(page, models, facts) {
  const of = (name, test = () => true) => models.filter((model) => model.request === name && test(model));
  const classifiers = of("classify");
  const captioners = of("caption", (model) => !model.source);
  const readers = of("caption", (model) => model.source);
  const canvas = h("canvas", { class: "preview", role: "img", "aria-label": t().picture });
  const parts = h("div", { class: "parts", role: "group", "aria-label": t().cover });
  const stage = h("div", { class: "cover", hidden: true }, canvas, parts);
  const hint = h("p", { class: "about", hidden: true }, t().cover);
  const reset = h("button", { type: "button", class: "link", hidden: true, onclick: uncover }, t().uncover);
  const status = statusLine();
  const covered = new Set();
  const encoded = new Map(); // of the picture as it is now: a data URL for each size
  let image = null;

  const drop = dropZone(take, { examples: Object.keys(IMAGES).filter((name) => models.some((model) => model.name === IMAGES[name])) });
  const labels = h("input", { id: "labels", type: "text", value: kept("labels") ?? "a cat, a dog, a car, a flower" });
  const words = h("div", { class: "choice" }, h("label", { for: "labels" }, `${t().labels} (${t().labelsHint})`), labels);
  labels.addEventListener("input", debounced(() => { keep({ labels: labels.value }); whatIs.follow(); }, 200));
  const from = (model) => readers.some((each) => each.source === model.source);
  // A reader of Korean reads English, too.
  const targets = of("translate", (model) => from(model) || (model.source === "en" && readers.some((each) => each.source === model.target)));
  const to = h("select", { id: "to", onchange: () => written.follow() }, h("option", { value: "" }, t().none),
    [...new Set([...targets].sort((a, b) => from(a) - from(b)).map((model) => model.target))].map((code) =>
      h("option", { value: code, selected: true }, languageName(code))));

  /** A question to one kind of model: its choice, and its answer to the picture as it is now. */
  function card(name, able, { ask, write, extra = [], side = SIDE }) {
    const wanted = recall(name) ?? kept(`picture ${name}`);
    const select = h("select", { id: name, onchange: () => pick(select.value) }, able.map((model) => h("option", { value: model.name, selected: model.name === wanted }, title(model))));
    const seen = h("small", { class: "about" });
    const answers = h("div", { class: "answers", "aria-live": "polite" });
    const line = statusLine();
    const box = h("section", { class: "card", hidden: !able.length }, h("h2", { class: "label" }, h("label", { for: name }, t().cards[name]), " ", select, " ", seen), ...extra, line.line, answers);
    let timer = null;
    const mine = {
      box,
      get model() { return able.find((model) => model.name === select.value); },
      follow() {
        const { model } = mine;
        seen.textContent = model ? t().hasSeen(dataOf(model, document.documentElement.lang)) : "";
        if (!image || !model) return;
        const content = sent(side);
        asker.ask((signal) => ask(model, content, signal));
      },
      choose(model) {
        if (able.some((each) => each.name === model)) select.value = model;
      },
      stop: () => asker.stop(),
    };
    function pick(model) {
      remember({ [name]: model });
      keep({ [`picture ${name}`]: model });
      mine.follow();
      look();
    }
    const asker = makeAsker({
      begin() {
        clearTimeout(timer);
        timer = setTimeout(() => {
          answers.classList.add("old");
          line.say(awaiting(mine.model));
        }, 300);
      },
      done(found) {
        clearTimeout(timer);
        answers.classList.remove("old");
        line.say("");
        mine.model.loaded = true;
        answers.replaceChildren(...write(found, mine.model));
        // What a model is not sure of stands behind what another one is.
        box.classList.toggle("doubt", Boolean(answers.querySelector(".notes")));
      },
      failed(error) {
        clearTimeout(timer);
        answers.classList.add("old");
        line.fail(error, mine.follow);
      },
    });
    return mine;
  }

  const notes = (answer, model) => {
    const items = [...new Set(noteItems(answer.notes, model))];
    return items.length ? [h("ul", { class: "notes" }, items.map((item) => h("li", {}, item)))] : [];
  };
  let before = null;
  const whatIs = card("classify", classifiers, {
    extra: [words],
    ask(model, sent, signal) {
      words.hidden = !model.words;
      const content = { model: model.name, images: [sent], top: TOP };
      if (model.words) content.labels = labels.value.split(",").map((each) => each.trim()).filter(Boolean);
      return post("/api/v1/classify", content, { signal });
    },
    write({ answers: [answer] }, model) {
      if (!covered.size) before = Object.fromEntries(answer.classes.map((each) => [each.label, each.probability]));
      return [...notes(answer, model), classBars(answer.classes, covered.size ? before : null)];
    },
  });
  const inWords = card("caption", captioners, {
    async ask(model, sent, signal) {
      const ask = (language) => post("/api/v1/caption", { model: model.name, images: [sent], ...(language ? { language } : {}) }, { signal });
      const first = await ask();
      const own = (facts.models.find((each) => each.name === model.name).languages ??= await known(model, first));
      const rest = own.filter((each) => each !== first.answers[0].language);
      return [first, ...(await Promise.all(rest.map(ask)))].map((found) => found.answers[0]);
    },
    write: (found, model) => [...notes(found[0], model), h("dl", { class: "said" }, found.flatMap((answer) => [
      h("dt", {}, languageName(answer.language)), h("dd", { lang: answer.language }, answer.text ?? answer.error)]))],
  });
  const written = card("read", readers, {
    side: LONG,
    extra: targets.length ? [h("div", { class: "choice" }, h("label", { for: "to" }, t().translateTo), to)] : [],
    ask: (model, sent, signal) => post("/api/v1/read", { model: model.name, images: [sent], ...(to.value ? { to: to.value } : {}) }, { signal }),
    write({ answers: [answer] }, model) {
      const lines = [h("p", { class: "out small lines", lang: answer.language }, answer.text ?? answer.error)];
      if (answer.translation) lines.push(h("p", { class: "out small lines", lang: answer.to }, answer.translation));
      const [first, ...more] = notes(answer, model)[0]?.children ?? [];
      // Who cannot read the picture knows nothing of its translation either.
      if (first?.textContent.startsWith(t().doubts.print())) for (const each of more) each.remove();
      return [...(first ? [first.parentElement] : []), ...lines];
    },
  });
  const cards = [whatIs, inWords, written];
  const inside = h("details", { class: "drawer", id: "inside", open: Boolean(recall("inside")) },
    h("summary", {}, h("h2", {}, t().inside), h("span", {}, t().insideHint)));
  const whose = h("select", { id: "whose", "aria-label": t().model, onchange: () => look() }); // filled by `look`
  inside.append(h("p", { class: "choice" }, whose));
  page.append(
    h("section", { class: "pair" }, h("div", {}, drop.zone, status.line, stage, hint, reset), h("div", { class: "cards" }, cards.map((each) => each.box))),
    h("section", { class: "if" }, inside),
  );
  const figure = makeFigure(inside);
  inside.addEventListener("toggle", () => {
    remember({ inside: inside.open ? "1" : null });
    look();
  });

  /** The languages of a captioner, which are known once it is loaded. */
  async function known(model, first) {
    const again = await get("/api/v1/models");
    return again.models.find((each) => each.name === model.name).languages ?? [first.answers[0].language];
  }

  for (let place = 0; place < PARTS * PARTS; place++) {
    const [row, column] = [Math.floor(place / PARTS) + 1, (place % PARTS) + 1];
    parts.append(h("button", {
      type: "button",
      "aria-pressed": "false",
      "aria-label": t().covered.replace("{row}", row).replace("{column}", column),
      tabindex: place ? -1 : 0,
      onclick: () => toggle(place),
      onkeydown: (event) => walk(event, place),
    }));
  }

  function walk(event, place) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -PARTS, ArrowDown: PARTS }[event.key];
    const next = parts.children[place + step];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    for (const each of parts.children) each.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  async function take(url, example, warning = "") {
    const made = new Image();
    made.src = url;
    try {
      await made.decode();
    } catch {
      status.fail(new Error(t().notImage));
      return;
    }
    status.say(warning, warning ? "wrong" : "");
    image = made;
    const model = IMAGES[example];
    if (model) for (const each of cards) each.choose(model);
    uncover();
  }

  function uncover() {
    covered.clear();
    for (const each of parts.children) each.setAttribute("aria-pressed", "false");
    follow();
  }

  function toggle(place) {
    if (!covered.delete(place)) covered.add(place);
    parts.children[place].setAttribute("aria-pressed", String(covered.has(place)));
    follow();
  }

  /** The picture as it is now, as a data URL: encoded once for all that ask; the small one is shown. */
  function sent(side) {
    if (!encoded.has(side)) encoded.set(side, encode(side, side === SIDE ? canvas : document.createElement("canvas")));
    return encoded.get(side);
  }

  /** Draw the picture on a surface, its longer side of so many pixels at most. */
  function encode(side, surface) {
    const share = Math.min(1, side / Math.max(image.naturalWidth, image.naturalHeight));
    surface.width = Math.max(1, Math.round(image.naturalWidth * share));
    surface.height = Math.max(1, Math.round(image.naturalHeight * share));
    const ink = surface.getContext("2d");
    ink.fillStyle = "#fff";
    ink.fillRect(0, 0, surface.width, surface.height);
    ink.drawImage(image, 0, 0, surface.width, surface.height);
    ink.fillStyle = "#808080";
    for (const place of covered) {
      const [x, y] = [(place % PARTS) / PARTS, Math.floor(place / PARTS) / PARTS];
      ink.fillRect(x * surface.width, y * surface.height, surface.width / PARTS + 1, surface.height / PARTS + 1);
    }
    return surface.toDataURL("image/png");
  }

  /** Show the picture as it is now, and ask every model about it. */
  function follow() {
    remember({ view: "picture" });
    stage.hidden = hint.hidden = !image;
    reset.hidden = !covered.size;
    if (!image) return;
    encoded.clear();
    sent(SIDE);
    for (const each of cards) each.follow();
    look();
  }

  function look() {
    const able = cards.map((each) => each.model).filter((model) => model?.looks);
    const model = able.find((each) => each.name === whose.value) ?? able[0];
    whose.replaceChildren(...able.map((each) => h("option", { value: each.name, selected: each === model }, title(each))));
    inside.hidden = !model || !image;
    if (!image || !inside.open || !model) figure.clear();
    else figure.show({ model: model.name, image: sent(SIDE) });
  }

  follow();
  return {
    drop: (files) => drop.take(files),
    takes: (file) => file.type.startsWith("image/"),
    destroy() {
      for (const each of cards) each.stop();
      drop.destroy();
      figure.destroy();
    },
  };
}
