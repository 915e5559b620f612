// Drop an image: its classes, what changes where parts are covered, and what the model attended to.

import { makeAsker, post } from "./api.js";
import { makeFigure } from "./figure.js";
import { awaiting, classBars, debounced, dropZone, h, imageExamples, modelChoice, noteList, statusLine } from "./parts.js";
import { recall, remember } from "./place.js";
import { t } from "./words.js";

const PARTS = 8; // along each side, to cover
const TOP = 5;

export function see(page, models) {
  const choice = modelChoice(models, recall("model"), follow, { hint: t().hints.see });
  const drop = dropZone(take, { examples: imageExamples(choice.model) });
  const status = statusLine();
  const canvas = h("canvas", { class: "preview", "aria-hidden": "true" });
  const parts = h("div", { class: "parts", role: "group", "aria-label": t().cover });
  const stage = h("div", { class: "cover", hidden: true }, canvas, parts);
  const hint = h("p", { class: "about", hidden: true }, t().cover);
  const reset = h("button", { type: "button", class: "link", hidden: true, onclick: uncover }, t().uncover);
  const bars = h("div", { class: "answers", "aria-live": "polite" });
  const labels = h("input", { id: "labels", type: "text", value: "a cat, a dog, a car, a flower" });
  const words = h("div", { class: "choice" }, h("label", { for: "labels" }, `${t().labels} (${t().labelsHint})`), labels);
  labels.addEventListener("input", debounced(() => follow(), 200));
  page.append(
    choice.box,
    words,
    h("section", { class: "pair" }, h("div", {}, drop.zone, stage, hint, reset), h("div", {}, status.line, bars)),
  );
  const figure = makeFigure(page);
  const covered = new Set();
  let image = null;
  let before = null;

  for (let place = 0; place < PARTS * PARTS; place++) {
    const [row, column] = [Math.floor(place / PARTS) + 1, (place % PARTS) + 1];
    const name = t().covered.replace("{row}", row).replace("{column}", column);
    const button = h("button", {
      type: "button",
      "aria-pressed": "false",
      "aria-label": name,
      tabindex: place ? -1 : 0,
      onclick: () => toggle(place),
      onkeydown: (event) => walk(event, place),
    });
    parts.append(button);
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

  const asker = makeAsker({
    begin: () => {
      bars.classList.add("old");
      status.say(awaiting(choice.model));
    },
    done({ answers: [answer] }) {
      bars.classList.remove("old");
      status.say("");
      choice.model.loaded = true;
      bars.replaceChildren(h("h2", { class: "label" }, t().classes), classBars(answer.classes, covered.size ? before : null), ...[noteList(answer.notes)].filter(Boolean));
      if (!covered.size) before = Object.fromEntries(answer.classes.map((each) => [each.label, each.probability]));
    },
    failed(error) {
      bars.classList.remove("old");
      status.fail(error);
    },
  });

  async function take(url) {
    const made = new Image();
    made.src = url;
    try {
      await made.decode();
    } catch {
      status.fail(new Error(t().failed));
      return;
    }
    image = made;
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

  /** Draw the image as it is now, and ask what it is. */
  function follow() {
    const { model } = choice;
    words.hidden = !model.words;
    drop.show(imageExamples(model));
    remember({ view: "see", model: model.name });
    stage.hidden = hint.hidden = !image;
    reset.hidden = !covered.size;
    if (!image) return;
    const share = Math.min(1, 512 / Math.max(image.naturalWidth, image.naturalHeight));
    canvas.width = Math.max(1, Math.round(image.naturalWidth * share));
    canvas.height = Math.max(1, Math.round(image.naturalHeight * share));
    const ink = canvas.getContext("2d");
    ink.fillStyle = "#fff";
    ink.fillRect(0, 0, canvas.width, canvas.height);
    ink.drawImage(image, 0, 0, canvas.width, canvas.height);
    ink.fillStyle = "#808080";
    for (const place of covered) {
      const [x, y] = [(place % PARTS) / PARTS, Math.floor(place / PARTS) / PARTS];
      ink.fillRect(x * canvas.width, y * canvas.height, canvas.width / PARTS + 1, canvas.height / PARTS + 1);
    }
    const encoded = canvas.toDataURL("image/png");
    const content = { model: model.name, images: [encoded], top: TOP };
    if (model.words) content.labels = labels.value.split(",").map((each) => each.trim()).filter(Boolean);
    asker.ask((signal) => post("/api/v1/classify", content, { signal }));
    if (model.looks) figure.show({ model: model.name, image: encoded });
    else figure.clear();
  }

  follow();
  return {
    destroy() {
      asker.stop();
      drop.destroy();
      figure.destroy();
    },
  };
}
