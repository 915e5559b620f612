// What an image shows, in words; and the text that is printed on one.

import { get, makeAsker, post } from "./api.js";
import { makeFigure } from "./figure.js";
import { awaiting, dropZone, h, imageExamples, modelChoice, noteList, statusLine } from "./parts.js";
import { recall, remember } from "./place.js";
import { languageName, t } from "./words.js";

/** A view of one image and what is written about it. */
function makeView(page, models, { name, hint, extra = null, ask, write }) {
  const choice = modelChoice(models, recall("model"), () => follow(), { hint });
  const drop = dropZone((url) => {
    image.src = url;
    image.hidden = false;
    follow();
  }, { examples: imageExamples(choice.model) });
  const image = h("img", { class: "preview", alt: "", hidden: true });
  const status = statusLine();
  const answers = h("div", { class: "answers", "aria-live": "polite" });
  page.append(
    choice.box,
    ...(extra ? [extra] : []),
    h("section", { class: "pair" }, h("div", {}, drop.zone, image), h("div", {}, status.line, answers)),
  );
  const figure = makeFigure(page);
  const asker = makeAsker({
    begin() {
      answers.classList.add("old");
      status.say(awaiting(choice.model));
    },
    done(found) {
      answers.classList.remove("old");
      status.say("");
      choice.model.loaded = true;
      answers.replaceChildren(...write(found));
      if (choice.model.looks) figure.show({ model: choice.model.name, image: image.src });
    },
    failed(error) {
      answers.classList.remove("old");
      status.fail(error);
    },
  });
  function follow() {
    remember({ view: name, model: choice.model.name });
    if (!image.hidden) asker.ask((signal) => ask(choice.model, image.src, signal));
  }
  follow();
  return {
    follow,
    destroy() {
      asker.stop();
      drop.destroy();
      figure.destroy();
    },
  };
}

export function describe(page, models) {
  return makeView(page, models, {
    name: "describe",
    hint: t().describeHint,
    async ask(model, image, signal) {
      const first = await post("/api/v1/caption", { model: model.name, images: [image] }, { signal });
      const facts = await get("/api/v1/models");
      const own = facts.models.find((each) => each.name === model.name).languages ?? [];
      const rest = own.filter((each) => each !== first.answers[0].language);
      const more = await Promise.all(
        rest.map((language) =>
          post("/api/v1/caption", { model: model.name, images: [image], language }, { signal }),
        ),
      );
      return [first, ...more].map((found) => found.answers[0]);
    },
    write: (found) =>
      found.map((answer) =>
        h(
          "div",
          { class: "said" },
          h("h2", { class: "label" }, languageName(answer.language)),
          h("p", { class: "out", lang: answer.language }, answer.text ?? answer.error),
          ...notes(answer),
        ),
      ),
  });
}

export function read(page, models, facts) {
  const targets = facts.models.filter(
    (model) => model.request === "translate" && models.some((each) => each.source === model.source),
  );
  const to = h(
    "select",
    { id: "to", onchange: () => view.follow() },
    h("option", { value: "" }, t().none),
    [...new Set(targets.map((model) => model.target))].map((code) =>
      h("option", { value: code, selected: true }, languageName(code)),
    ),
  );
  const view = makeView(page, models, {
    name: "read",
    hint: t().readHint,
    extra: h("div", { class: "choice" }, h("label", { for: "to" }, t().translateTo), to),
    ask: (model, image, signal) =>
      post(
        "/api/v1/read",
        { model: model.name, images: [image], ...(to.value ? { to: to.value } : {}) },
        { signal },
      ),
    write({ answers: [answer] }) {
      const parts = [
        h("h2", { class: "label" }, languageName(answer.language)),
        h("p", { class: "out lines", lang: answer.language }, answer.text ?? answer.error),
      ];
      if (answer.translation) {
        parts.push(
          h("h2", { class: "label" }, languageName(answer.to)),
          h("p", { class: "out lines", lang: answer.to }, answer.translation),
        );
      }
      return [...parts, ...notes(answer)];
    },
  });
  return view;
}

const notes = (answer) => [noteList(answer.notes)].filter(Boolean);
