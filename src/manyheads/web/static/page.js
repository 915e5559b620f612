// The served page: one view at a time, in the person's language.

import { get, onToken } from "./api.js";
import { compare } from "./compare.js";
import { describe, read } from "./describe.js";
import { learn } from "./learn.js";
import { h } from "./parts.js";
import { recall, remember } from "./place.js";
import { search } from "./search.js";
import { see } from "./see.js";
import { translate } from "./translate.js";
import { switchLanguage, t } from "./words.js";

const page = document.getElementById("page");
const head = document.getElementById("head");
const DEPTHS = ["answer", "attention", "lab"];
const DEEP = ["translate", "see", "describe", "read"]; // views that have them
const VIEWS = { translate, see, describe, read, search, compare, learn };
let current = null;
let facts = null;

onToken(
  () =>
    new Promise((done) => {
      const field = h("input", { type: "password", id: "token", autocomplete: "off" });
      const form = h(
        "form",
        { class: "ask" },
        h("label", { for: "token" }, t().token),
        field,
        h("button", { type: "submit" }, t().send),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        form.remove();
        done(field.value);
      });
      page.prepend(form);
      field.focus();
    }),
);

/** Which views the served models can fill. */
function offered() {
  const models = facts.models;
  const able = {
    translate: models.filter((model) => model.request === "translate"),
    see: models.filter((model) => model.request === "classify"),
    describe: models.filter((model) => model.request === "caption" && !model.source),
    read: models.filter((model) => model.request === "caption" && model.source),
    search: facts.index ? models : [],
    compare: models.filter((model) => model.looks),
    learn: models.filter((model) => model.looks),
  };
  return Object.entries(able).filter(([, found]) => found.length);
}

function show(name) {
  const views = offered();
  const [chosen, models] = views.find(([each]) => each === name) ?? views[0] ?? [];
  document.documentElement.dataset.depth = DEEP.includes(chosen) ? depth() : "attention";
  current?.destroy();
  page.replaceChildren();
  drawHead(views, chosen);
  document.title = chosen ? `${t().views[chosen]} · Manyheads` : "Manyheads";
  if (chosen) current = VIEWS[chosen](page, models, facts);
}

const depth = () => (DEPTHS.includes(recall("depth")) ? recall("depth") : "attention");

/** How much is shown: the answer alone, also what was attended to, or every measure. */
function depthSwitch(chosen) {
  if (!DEEP.includes(chosen)) return null;
  const buttons = DEPTHS.map((name, i) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(name === depth()),
        title: t().depthHints[i],
        onclick: () => {
          remember({ depth: name === "attention" ? null : name });
          document.documentElement.dataset.depth = name;
          buttons.forEach((each, j) => each.setAttribute("aria-pressed", String(i === j)));
          document.dispatchEvent(new Event("depthchange"));
        },
      },
      t().depths[i],
    ),
  );
  return h("div", { class: "depths", role: "group", "aria-label": t().depth }, buttons);
}

function drawHead(views, chosen) {
  const tabs = views.map(([name]) =>
    h(
      "button",
      {
        type: "button",
        "aria-current": name === chosen ? "page" : null,
        onclick: () => {
          const kept = ["theme", "depth"].filter((each) => recall(each));
          const words = [["view", name], ...kept.map((each) => [each, recall(each)])];
          history.pushState(null, "", `#${new URLSearchParams(words)}`);
          show(name);
          page.focus();
        },
      },
      t().views[name],
    ),
  );
  const language = h(
    "button",
    {
      type: "button",
      title: t().languageLabel,
      lang: t().language === "한국어" ? "ko" : "en",
      onclick: () => {
        switchLanguage();
        show(recall("view"));
      },
    },
    t().language,
  );
  const theme = h(
    "button",
    {
      type: "button",
      onclick: () => {
        const root = document.documentElement;
        const dark =
          root.dataset.theme === "dark" ||
          (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
        root.dataset.theme = dark ? "light" : "dark";
        remember({ theme: root.dataset.theme });
        document.dispatchEvent(new Event("themechange"));
      },
    },
    t().theme,
  );
  head.replaceChildren(
    h("h1", { class: "brand" }, "Manyheads"),
    h("nav", { "aria-label": t().sections }, tabs),
    ...[depthSwitch(chosen)].filter(Boolean),
    h("div", { class: "settings" }, language, theme),
  );
}

addEventListener("popstate", () => facts && show(recall("view")));

if (recall("theme")) document.documentElement.dataset.theme = recall("theme");
try {
  facts = await get("/api/v1/models");
  show(recall("view"));
  document.documentElement.dataset.page = "ready";
} catch (error) {
  page.replaceChildren(h("p", { class: "status wrong", role: "alert" }, error.message));
  throw error;
}
