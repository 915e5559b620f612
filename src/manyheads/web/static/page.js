// The served page: one view at a time, in the person's language.

import { get, load, onToken, Problem } from "./api.js";
import { withDrawing } from "./figure.js";
import { h } from "./parts.js";
import { recall, remember } from "./address.js";
import { switchLanguage, t } from "./words.js";

const page = document.getElementById("page");
const head = document.getElementById("head");
const FORMER = { translate: "text", see: "picture", describe: "picture", read: "picture" }; // in older links
let current = null;
let facts = null;
let shown = null; // the last view that was asked for

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
    text: models.filter((model) => model.request === "translate"),
    picture: models.some((model) => ["classify", "caption"].includes(model.request)) ? models : [],
    search: facts.index ? models : [],
    compare: models.filter((model) => model.looks),
    learn: models.filter((model) => model.looks),
  };
  return Object.entries(able).filter(([, found]) => found.length);
}

async function show(wanted) {
  const name = FORMER[wanted] ?? wanted;
  const views = offered();
  const [chosen, models] = views.find(([each]) => each === name) ?? views[0] ?? [];
  current?.destroy();
  current = null;
  page.replaceChildren();
  drawHead(views, chosen);
  document.title = chosen ? `${t().views[chosen]} · Manyheads` : "Manyheads";
  if (name && name !== chosen) page.append(h("p", { class: "status wrong", role: "alert" }, t().noView(name)));
  if (!chosen) return;
  const mine = (shown = {});
  const view = chosen === "text" ? "translate" : chosen;
  const address = `/static/${view}.js`;
  try {
    const module = await (chosen === "compare" ? withDrawing(address) : load(address)); // when it is opened
    if (mine === shown) current = module[view](page, models, facts);
  } catch (error) {
    if (mine === shown) fail(error.message, () => show(wanted));
    if (!(error instanceof Problem)) throw error;
  }
}

/** Say what went wrong in place of the page. */
function fail(words, act) {
  const again = h("button", { type: "button", class: "link", onclick: act }, t().again);
  page.replaceChildren(h("p", { class: "status wrong", role: "alert" }, `${words} `, again));
}

function drawHead(views, chosen) {
  const tabs = views.map(([name]) =>
    h(
      "button",
      {
        type: "button",
        "aria-current": name === chosen ? "page" : null,
        onclick: () => {
          const theme = recall("theme");
          history.pushState(null, "", `#${new URLSearchParams({ view: name, ...(theme ? { theme } : {}) })}`);
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
    h("div", { class: "settings" }, language, theme),
  );
}

addEventListener("popstate", () => facts && show(recall("view")));

// What is dropped beside a box must not replace the page: a picture or a document goes where it belongs.
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", async (event) => {
  event.preventDefault();
  const files = [...(event.dataTransfer?.files ?? [])];
  if (!files.length || !facts) return;
  if (current?.drop && files.some((file) => current.takes(file))) {
    current.drop(files);
    return;
  }
  const name = files[0].type.startsWith("image/") ? "picture" : "text";
  if (!offered().some(([each]) => each === name)) return;
  history.pushState(null, "", `#view=${name}`);
  await show(name);
  current?.drop?.(files);
});

if (recall("theme")) document.documentElement.dataset.theme = recall("theme");
async function begin() {
  try {
    facts = await get("/api/v1/models");
  } catch (error) {
    fail(error.message, begin);
    return;
  }
  await show(recall("view"));
  document.documentElement.dataset.page = "ready";
}
await begin();
