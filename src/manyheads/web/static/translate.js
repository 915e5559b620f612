// Type a sentence: its translation follows, then what each word was translated from.

import { makeAsker, post } from "./api.js";
import { textExamples } from "./examples.js";
import { makeFigure } from "./figure.js";
import { say } from "/static/draw/language.js";
import { awaiting, debounced, h, modelChoice, noteList, percent, statusLine } from "./parts.js";
import { recall, remember } from "./place.js";
import { languageName, t } from "./words.js";

const PAUSE = 90; // milliseconds without a key before the server is asked
const BETS = 3; // translations to choose from
const UNSURE = 0.2; // probability of a word below which it is marked

export function translate(page, models) {
  const choice = modelChoice(models, recall("model"), () => {
    prefix = "";
    source.value = examples()[0] ?? source.value;
    labels();
    follow();
  }, { hint: t().hints.translate });
  const source = h("textarea", { id: "source", rows: 1, spellcheck: "false", autocapitalize: "off" });
  const sourceLabel = h("label", { for: "source" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": t().examples });
  const outLabel = h("h2", { id: "out-label", class: "label" });
  const out = h("p", { class: "out", "aria-labelledby": "out-label", role: "group" });
  const candidates = h("div", { class: "candidates", hidden: true });
  const forced = h("p", { class: "forced", hidden: true });
  const unsure = h("p", { class: "unsure-words", hidden: true });
  const others = h("div", { class: "others" });
  const notes = h("div");
  const status = statusLine();
  const what = h("details", { class: "drawer", id: "without" });
  const own = h("details", { class: "drawer", id: "own" });
  page.append(
    choice.box,
    h("section", { class: "pair" },
      h("div", {}, sourceLabel, source, chips),
      h("div", {}, outLabel, out, unsure, forced, candidates, status.line, notes, others),
    ),
  );
  page.append(h("section", { class: "if" }, what, own));
  const figure = makeFigure(page, (view) => {
    if (!prefix) steps = view.steps ?? [];
  });
  let prefix = recall("prefix") ?? "";
  let steps = [];
  let tokens = [];
  let chosen = null;

  const examples = () => textExamples(choice.model);

  const asker = makeAsker({
    begin() {
      out.classList.add("old");
      figure.dim();
      clearTimeout(timer); // of a question that is given up
      timer = setTimeout(() => status.say(awaiting(choice.model)), 300);
    },
    done(found) {
      clearTimeout(timer);
      status.say("");
      out.classList.remove("old");
      if (!found) return clear();
      choice.model.loaded = true;
      show(found.answers[0]);
      return undefined;
    },
    failed(error) {
      clearTimeout(timer);
      out.classList.remove("old");
      status.fail(error);
    },
  });
  let timer = null;

  function clear() {
    out.textContent = t().hint;
    unsure.hidden = forced.hidden = true;
    others.replaceChildren();
    notes.replaceChildren();
    figure.clear();
  }

  /** Ask for the translation of what stands there now. */
  function follow() {
    const text = source.value.trim();
    const { name: model } = choice.model;
    // What was held belongs to the words that stood there; a link's own words keep it.
    const same = (name, now) => (recall(name) ?? now) === now;
    const kept = same("text", text) && same("model", model);
    remember({ view: "translate", model, text, prefix, ...(kept ? {} : { row: null, column: null }) });
    grow();
    candidates.hidden = true;
    asker.ask((signal) =>
      text
        ? post(
            "/api/v1/translate",
            { model, texts: [text], n_best: BETS, probabilities: true, prefix },
            { signal },
          )
        : null,
    );
  }

  function show(answer) {
    const [best] = answer.n_best;
    tokens = best.tokens ?? [];
    steps = [];
    chosen = null;
    writeWords(best.text);
    forced.hidden = !prefix;
    forced.replaceChildren(
      `${t().forced(prefix)} `,
      h("button", { type: "button", class: "link", onclick: () => force("") }, t().release),
    );
    const more = answer.n_best.slice(1).map((each) => each.text);
    others.replaceChildren();
    if (more.length) {
      const list = h("ul", {}, more.map((text) => h("li", { lang: choice.model.target }, text)));
      others.append(h("h3", {}, t().others), list);
    }
    notes.replaceChildren(...[noteList(answer.notes)].filter(Boolean));
    const request = { model: choice.model.name, text: source.value.trim() };
    const { source: from, target: to } = choice.model;
    figure.show(request, { note: prefix ? t().figureOf : "", languages: { source: from, target: to } });
    drawWithout();
    scoreOwn();
  }

  /** The translation, each word with its probability; a click asks for other candidates. */
  function writeWords(text) {
    const words = [];
    tokens.forEach((token, index) => {
      if (token.begin === token.end) return;
      const gap = !words.length || /\s/.test(text.slice(words.at(-1).end, token.begin + 1));
      if (gap) words.push({ begin: token.begin, end: token.end, chance: 1, first: index });
      const word = words.at(-1);
      word.end = token.end;
      word.chance *= token.probability;
    });
    out.replaceChildren(
      ...words.flatMap((word) => {
        const said = text.slice(word.begin, word.end).trim();
        const bar = h("span", { class: "bar" }, h("span"));
        bar.firstChild.style.width = `${100 * word.chance}%`;
        const button = h(
          "button",
          {
            type: "button",
            class: `word${word.chance < UNSURE ? " unsure" : ""}`,
            title: t().chance(percent(word.chance)),
            onclick: () => offer(word, said, button),
          },
          h("span", { lang: choice.model.target }, said),
          bar,
        );
        return [button, " "];
      }),
    );
    const doubtful = words.filter((word) => word.chance < UNSURE);
    unsure.hidden = !doubtful.length;
    unsure.textContent = t().unsure(
      doubtful
        .map((word) => `${text.slice(word.begin, word.end).trim()} (${percent(word.chance)})`)
        .join(", "),
    );
  }

  /** What might have stood there instead, as the search found it. */
  function offer(word, said, button) {
    for (const each of out.querySelectorAll("button")) each.setAttribute("aria-expanded", "false");
    if (chosen === button) {
      chosen = null;
      candidates.hidden = true;
      return;
    }
    chosen = button;
    button.setAttribute("aria-expanded", "true");
    const before = out.dataset.text.slice(0, word.begin).trimEnd();
    const found = (steps[word.first]?.candidates ?? []).filter(
      ([token, chance]) => chance >= 0.001 && !/^<.*>$/.test(token),
    );
    candidates.replaceChildren(
      h("h3", {}, t().candidates(said)),
      h("p", { class: "about" }, found.length ? t().force : t().waiting),
      h(
        "div",
        { class: "chips" },
        found.map(([token, chance]) => {
          const starts = token.startsWith("▁");
          const piece = token.replaceAll("▁", " ").trim();
          const text = `${before}${starts && before ? " " : ""}${piece}`;
          return h(
            "button",
            { type: "button", onclick: () => force(text) },
            h("span", { lang: choice.model.target }, piece || "␣"),
            h("small", {}, ` ${percent(chance)}`),
          );
        }),
      ),
    );
    candidates.hidden = false;
  }

  /** Translate again, with this beginning; none leaves it to the model. */
  function force(text) {
    prefix = text;
    follow();
  }

  // --- What if ------------------------------------------------------------------------------------

  const left = new Set();
  const changed = h("p", { class: "out small", role: "status" });
  const leaver = makeAsker({
    begin: () => changed.classList.add("old"),
    done(found) {
      changed.classList.remove("old");
      changed.replaceChildren();
      if (!found) return;
      const before = new Set(out.dataset.text.split(/\s+/));
      const words = source.value.trim().split(/\s+/);
      const named = [...left].sort((a, b) => a - b).map((place) => `“${words[place]}”`).join(", ");
      changed.append(h("small", {}, `${t().withoutWords(named)}: `));
      for (const word of found.answers[0].translation.split(/\s+/)) {
        changed.append(before.has(word) ? word : h("mark", {}, word), " ");
      }
    },
    failed: status.fail,
  });

  function drawWithout() {
    out.dataset.text = [...out.querySelectorAll("button > span:first-child")]
      .map((each) => each.textContent)
      .join(" ");
    left.clear();
    changed.replaceChildren();
    const words = source.value.trim().split(/\s+/);
    what.replaceChildren(
      h("summary", {}, h("h2", {}, t().without), h("span", {}, t().withoutHint)),
      h(
        "div",
        { class: "chips" },
        words.map((word, place) => {
          const button = h(
            "button",
            { type: "button", "aria-pressed": "false", onclick: () => toggle(place, button) },
            word,
          );
          return button;
        }),
      ),
      changed,
    );
    function toggle(place, button) {
      if (!left.delete(place)) left.add(place);
      button.setAttribute("aria-pressed", String(left.has(place)));
      const text = words.filter((_, i) => !left.has(i)).join(" ");
      leaver.ask((signal) =>
        left.size && text
          ? post("/api/v1/translate", { model: choice.model.name, texts: [text] }, { signal })
          : null,
      );
    }
  }

  const ownText = h("textarea", { id: "own-text", rows: 1, spellcheck: "false" });
  const ownTable = h("div", { class: "room" });
  const scorer = makeAsker({
    begin: () => ownTable.classList.add("old"),
    done(found) {
      ownTable.classList.remove("old");
      ownTable.replaceChildren();
      const panel = found?.figures[0]; // the loss table of what was given
      if (panel?.kind !== "table") return;
      const columns = panel.columns.map((name) => h("th", { scope: "col" }, say(name)));
      const rows = panel.rows.map((row) =>
        h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cellText(cell)))),
      );
      ownTable.append(h("h3", {}, t().perWord), h("table", {}, h("thead", {}, h("tr", {}, columns)), h("tbody", {}, rows)));
    },
    failed: status.fail,
  });
  own.append(
    h("summary", {}, h("h2", {}, t().own), h("span", {}, t().ownHint)),
    h("label", { for: "own-text", class: "unseen" }, t().own),
    ownText,
    ownTable,
  );
  const scoreOwn = () =>
    scorer.ask((signal) =>
      own.open && ownText.value.trim() && source.value.trim()
        ? post(
            "/api/v1/look",
            { model: choice.model.name, text: source.value.trim(), reference: ownText.value.trim() },
            { signal },
          )
        : null,
    );
  ownText.addEventListener("input", debounced(scoreOwn, 300));

  // --- Begin --------------------------------------------------------------------------------------

  function labels() {
    const { source: from, target: to } = choice.model;
    sourceLabel.textContent = [t().source, languageName(from)].filter(Boolean).join(" · ");
    outLabel.textContent = [t().translation, languageName(to)].filter(Boolean).join(" · ");
    source.lang = from ?? "";
    chips.replaceChildren(
      ...examples().map((text) =>
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              source.value = text;
              prefix = "";
              follow();
            },
          },
          text,
        ),
      ),
    );
  }

  /** As high as its text. */
  function grow() {
    source.style.height = "auto";
    source.style.height = `${source.scrollHeight + 2}px`;
  }

  const typed = debounced(follow, PAUSE);
  source.addEventListener("input", () => {
    prefix = "";
    typed();
  });
  addEventListener("resize", grow);
  labels();
  source.value = recall("text") ?? examples()[0] ?? "";
  follow();
  return {
    destroy() {
      clearTimeout(timer);
      asker.stop();
      leaver.stop();
      scorer.stop();
      figure.destroy();
      removeEventListener("resize", grow);
    },
  };
}

const cellText = (cell) =>
  typeof cell === "number" && !Number.isInteger(cell) ? cell.toPrecision(3) : String(cell ?? "");
