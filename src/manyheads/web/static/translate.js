// One sentence, alive: the source above, its translation below, threads between them; the rest unfolds.

import { makeAsker, post } from "./api.js";
import { textExamples } from "./examples.js";
import { makeFigure } from "./figure.js";
import { isDocument, makeFiles } from "./files.js";
import { say } from "/static/draw/language.js";
import { makeLive } from "./live.js";
import { isDoubtful, plain, read } from "./notes.js";
import { cellText, debounced, firstOf, h, modelChoice, percent, shared, statusLine } from "./parts.js";
import { recall, remember } from "./address.js";
import { addToHistory, clearHistory, history, keep, kept } from "./store.js";
import { makeEditor, makeThreads } from "./threads.js";
import { bare, untied } from "./untied.js";
import { languageName, t } from "./words.js";

const PAUSE = 30; // milliseconds without a key before the server is asked
const NAMED = 4; // words without a thread that are named
const BETS = 3; // translations to choose from
const UNSURE = 0.2; // probability of a word below which it is marked
const DETAILED = 12; // sentences whose words are looked at without being asked for
const LINKED = 1500; // characters of a text that an address may carry
const SETTLED = 1500; // milliseconds after which a text belongs to the history

/** The words of a text between white space, with their places. */
const wordsOf = (text) =>
  [...text.matchAll(/\S+/gu)].map((found) => ({ begin: found.index, end: found.index + found[0].length, text: found[0] }));

/** What is new among words, by its place, and what is gone, by the place that it stood before. */
function changes(before, after) {
  const [stays, held] = shared(before, after);
  const gone = new Map();
  let place = 0;
  before.forEach((word, i) => {
    while (place < after.length && !held[place]) place++;
    if (stays[i]) place++;
    else gone.set(place, [...(gone.get(place) ?? []), word]);
  });
  return { fresh: new Set([...after.keys()].filter((j) => !held[j])), gone };
}

export function translate(page, models) {
  const choice = modelChoice(models, recall("model") ?? kept("model") ?? firstOf(models).name, changeModel, { missing: recall("model") });
  const area = h("textarea", { id: "source", rows: 1, spellcheck: "false", autocapitalize: "off" });
  const editor = makeEditor(area);
  const sourceLabel = h("label", { for: "source" });
  const count = h("span", { class: "count" });
  const detected = h("span", { class: "detected" });
  const swap = button(t().swap, swapSides);
  const chips = h("div", { class: "chips", role: "group", "aria-label": t().examples });
  const known = h("div", { class: "known", "aria-live": "polite" });
  const outLabel = h("h2", { id: "out-label", class: "label" });
  const out = h("p", { class: "out", "aria-labelledby": "out-label", role: "group" });
  const told = h("p", { class: "told", hidden: true });
  const pop = h("div", { class: "candidates", hidden: true });
  const strike = button("", leaveOut, "strike");
  strike.hidden = true;
  const others = h("div", { class: "others" });
  const status = statusLine();
  const files = makeFiles();
  const file = h("input", { type: "file", id: "document", class: "unseen", onchange: () => file.files[0] && files.translate(file.files[0], choice.model) });
  const past = h("details", { class: "past" });
  const path = h("a", { href: "#view=learn", class: "link" }, t().walk);
  const gestures = h("p", { class: "about" }, t().gestures);
  const copied = h("span", { role: "status" });
  const sureness = h("span", { class: "sure", title: t().sureHint });
  const alive = h("section", { class: "alive" },
    h("div", { class: "side" },
      h("div", { class: "row small" }, sourceLabel, swap, button(t().clear, () => set("")), h("label", { for: "document", class: "link" }, t().file), file, past, count),
      editor.box, strike),
    known,
    h("div", { class: "side" },
      h("div", { class: "row small" }, outLabel, sureness),
      out,
      // Above the answer threads would run through them.
      h("div", { class: "row small" }, button(t().copy, () => putOnClipboard(out.dataset.text ?? "")), button(t().link, () => putOnClipboard(location.href)), path, copied),
      gestures,
      told, pop, status.line, others),
  );
  const ties = makeThreads(alive, () => [
    ...editor.words.map((each) => each.span),
    ...out.querySelectorAll(".word, del, .sentence-of:not(:has(.word))"), // the last: words are not known yet
  ]);
  const inside = h("details", { class: "drawer", id: "inside", open: Boolean(recall("inside")) },
    h("summary", {}, h("h2", {}, t().inside), h("span", {}, t().insideHint)));
  const own = h("details", { class: "drawer", id: "own" });
  const program = h("details", { class: "drawer", id: "program" },
    h("summary", {}, h("h2", {}, t().program), h("span", {}, t().programHint)), h("pre", { tabindex: 0 }));
  page.append(choice.box, chips, alive, files.box, h("section", { class: "if" }, inside, own, program));
  const figure = makeFigure(inside, (view) => {
    const at = sentences[focus];
    if (at) at.steps = view.steps ?? [];
  }, remove);

  let shownText = ""; // the translation as it is copied
  let sentences = []; // of the text: source, translation, words, what each comes from
  let focus = 0; // the sentence that is looked into
  let active = null; // { sentence, word } of the answer that is lit
  let pointed = null; // the word of the source under the pointer or the caret
  let forced = JSON.parse(recall("forced") ?? "null"); // { source, prefix }
  let struck = null; // { source, words: Set }
  let removed = null; // { source, site }: a part of the model that is set to zero
  let settle = null;

  function button(words, act, kind = "link") {
    return h("button", { type: "button", class: kind, onclick: act }, words);
  }

  // --- Ask ------------------------------------------------------------------------------------------

  const live = makeLive({
    work: ({ text, model }, signal) =>
      text.trim() ? post("/api/v1/translate/document", { model, text, lines: true }, { signal }) : null,
    done(answer, { text }) {
      status.say("");
      choice.model.loaded = true;
      show(text, answer);
    },
    failed(error) {
      status.fail(error, () => follow());
    },
    old(is) {
      out.classList.toggle("old", is);
      ties.svg.classList.toggle("old", is);
      if (is) figure.dim(true);
      if (is && !choice.model.loaded) status.say(t().late);
    },
  });

  /** Words, probabilities and origins of sentences; they follow the answer. */
  const details = makeAsker({
    begin() {},
    done(found) {
      for (const [source, answer] of found) for (const each of sentences) if (each.source === source) detail(each, answer);
      write();
      if (pointed && !strike.hidden) point(editor.at(pointed.sentence, pointed.word));
      look();
    },
    failed: (error) => status.fail(error, () => askDetails()),
  });

  function askDetails() {
    const model = choice.model.name;
    const near = [...sentences.keys()].sort((a, b) => Math.abs(a - focus) - Math.abs(b - focus)).slice(0, DETAILED);
    const wanted = [...new Set(near.map((i) => sentences[i]).filter((each) => !each.words).map((each) => each.source))];
    details.ask(async (signal) => {
      const ask = (texts, more = {}) =>
        post("/api/v1/translate", { model, texts, n_best: BETS, probabilities: true, align: choice.model.looks, ...more }, { signal });
      const special = isSpecial;
      const usual = wanted.filter((source) => !special(source));
      const found = usual.length ? (await ask(usual)).answers.map((answer, i) => [usual[i], answer]) : [];
      for (const source of wanted.filter(special)) {
        const less = struck?.source === source ? without(source) : source;
        const more = asked(source);
        if (less) found.push([source, (await ask([less], more)).answers[0]]);
      }
      return found;
    });
  }

  /** Ask for the translation of what stands there now. */
  function follow() {
    const text = area.value;
    const model = choice.model.name;
    const linked = text.length <= LINKED ? text : null;
    const same = (name, now) => (recall(name) ?? now) === now;
    const held = same("text", text) && same("model", model) ? {} : { row: null, column: null };
    remember({ view: "text", model, text: linked, ...held });
    keep({ text, model });
    count.textContent = t().characters(text.length);
    live.ask({ text, model });
    guess();
    clearTimeout(settle);
    settle = setTimeout(() => {
      if (text.trim() && !status.isWrong()) addToHistory({ text, model, answer: shownText });
      drawPast();
    }, SETTLED);
  }

  // --- Show -----------------------------------------------------------------------------------------

  /** Take an answer apart: its sentences, each with its place in the source and in the translation. */
  function show(text, answer) {
    closePop();
    const before = sentences;
    sentences = [];
    active = null;
    shownText = answer?.text ?? "";
    let [from, to] = [0, 0];
    for (const line of answer?.lines ?? []) {
      for (const each of line.sentences) {
        const begin = text.indexOf(each.source, from);
        const place = shownText.indexOf(each.translation, to);
        if (begin < 0 || place < 0) continue;
        [from, to] = [begin + each.source.length, place + each.translation.length];
        sentences.push({ ...each, begin, place, plain: each.translation });
      }
    }
    if (forced && !sentences.some((each) => each.source === forced.source)) forced = null;
    if (struck && !sentences.some((each) => each.source === struck.source)) struck = null;
    if (removed && !sentences.some((each) => each.source === removed.source)) removed = null;
    for (const each of sentences) { // what is known of a sentence that did not change stays
      const same = before.find((other) => other.source === each.source && other.plain === each.plain && other.words);
      if (same) Object.assign(each, { words: same.words, links: same.links, shown: same.shown, steps: same.steps, n_best: same.n_best, changed: same.changed, sure: same.sure, untied: same.untied });
    }
    focus = Math.min(focus, Math.max(0, sentences.length - 1));
    write();
    const here = document.activeElement === area ? editor.atCaret() : null;
    if (here) focus = here.sentence; // what is typed now is looked into
    askDetails();
    drawOwn();
    drawProgram();
  }

  /** What an answer with tokens says of a sentence. */
  function detail(sentence, answer) {
    const [best] = answer.n_best;
    const special = isSpecial(sentence.source);
    // What a document's form changed cannot be tied word by word.
    sentence.shown = special ? best.text : sentence.plain;
    const fits = (token) => sentence.shown.slice(token.begin, token.end) === best.text.slice(token.begin, token.end);
    const sources = struck?.source === sentence.source ? keptWords(sentence.source) : wordsOf(sentence.source);
    const placeOf = (origin) => origin.index ?? sources.indexOf(origin);
    const whole = special || sentence.how === "whole";
    sentence.n_best = answer.n_best;
    sentence.words = wordsOf(sentence.shown).map((word) => ({ ...word, chance: null, first: null }));
    sentence.links = [];
    const tokens = best.tokens ?? [];
    const logs = tokens.map((token) => Math.log(Math.max(token.probability, 1e-9)));
    sentence.sure = logs.length ? Math.exp(logs.reduce((sum, each) => sum + each, 0) / logs.length) : null;
    if (special) sentence.notes = answer.notes ?? [];
    if (whole) {
      tokens.forEach((token, index) => {
        if (token.begin === token.end || !fits(token)) return;
        const place = sentence.words.findIndex((word) => word.begin <= token.begin && token.end <= word.end);
        const word = sentence.words[place];
        if (!word) return;
        word.first ??= index;
        word.chance = (word.chance ?? 1) * token.probability;
        if (!token.source || token.source.begin === token.source.end) return;
        const origin = sources.find((each) => each.begin < token.source.end && token.source.begin < each.end);
        if (!origin) return;
        const link = sentence.links.find((each) => each.word === place && each.origin === placeOf(origin));
        if (link) link.weight = Math.max(link.weight, token.source.share);
        else sentence.links.push({ word: place, origin: placeOf(origin), weight: token.source.share });
      });
    }
    // All words of the answer must be there as they were attended from, by the model as it is.
    const all = whole && sentence.shown === best.text && tokens.length && removed?.source !== sentence.source;
    sentence.untied = all ? untied(sources.map((each) => ({ text: each.text, index: placeOf(each) })), sentence.links, choice.model) : [];
    sentence.changed = special ? changes(wordsOf(sentence.plain).map((word) => word.text), sentence.words.map((word) => word.text)) : null;
  }

  /** The translation as it stands: its words can be pointed at, and copied as one text. */
  function write() {
    const parts = [];
    let at = 0;
    let whole = "";
    sentences.forEach((sentence, number) => {
      parts.push(shownText.slice(at, sentence.place));
      whole += shownText.slice(at, sentence.place);
      at = sentence.place + sentence.plain.length;
      const said = sentence.shown ?? sentence.plain;
      whole += said;
      parts.push(h("span", { class: "sentence-of" }, sentence.words ? wordSpans(sentence, number, said) : said));
    });
    parts.push(shownText.slice(at));
    whole += shownText.slice(at);
    out.replaceChildren(...(whole.trim() ? parts : [t().hint]));
    out.dataset.text = whole;
    out.lang = choice.model.target ?? "";
    const first = out.querySelector(".word");
    if (first) first.tabIndex = 0;
    mirror();
    drawKnown();
    drawOthers();
    told.hidden = !forced && !struck && !removed;
    if (removed) told.replaceChildren(`${t().withoutPart(removed.site)} `, button(t().putPartBack, () => remove(null)));
    else if (struck) told.replaceChildren(`${t().withoutWords([...struck.words].sort((a, b) => a - b).map((n) => `“${wordsOf(struck.source)[n].text}”`).join(", "))} `, button(t().putBack, putBack));
    else if (forced) told.replaceChildren(`${t().forced(forced.prefix)} `, button(t().release, () => force(null)));
    light();
  }

  function wordSpans(sentence, number, said) {
    const parts = [];
    let at = 0;
    sentence.words.forEach((word, place) => {
      const doubtful = word.chance !== null && word.chance < UNSURE;
      const fresh = sentence.changed?.fresh.has(place);
      const span = h(fresh ? "mark" : "span", {
        class: `word${doubtful ? " unsure" : ""}`,
        role: "button",
        tabindex: -1,
        "aria-expanded": "false",
        title: word.chance === null ? null : t().chance(percent(word.chance)),
        onmouseenter: () => activate(number, place),
        onfocus: (event) => {
          activate(number, place);
          if (event.target.matches(":focus-visible")) turnTo(number);
        },
        onclick: () => offer(number, place),
        onkeydown: (event) => walk(event, number, place),
      }, word.text);
      word.span = span;
      parts.push(said.slice(at, word.begin), ...gone(sentence, place), span);
      at = word.end;
    });
    parts.push(said.slice(at), ...gone(sentence, sentence.words.length));
    return parts;
  }

  /** The words that stood before a place, and do not any more. */
  const gone = (sentence, place) =>
    (sentence.changed?.gone.get(place) ?? []).map((text) => h("del", {}, `${text} `));

  /** Whether a word of the source has no thread, as far as that is known. */
  const isUntied = (place) => Boolean(place && sentences[place.sentence]?.words && sentences[place.sentence].untied?.includes(place.word));

  function mirror() {
    const ranges = [];
    sentences.forEach((sentence, number) => {
      wordsOf(sentence.source).forEach((word, place) =>
        ranges.push({ begin: sentence.begin + word.begin, end: sentence.begin + word.end, sentence: number, word: place, text: word.text }));
    });
    editor.write(ranges);
    const rareWords = sentences.map((sentence) => read(sentence.notes).words);
    for (const each of editor.words) {
      const sentence = sentences[each.sentence];
      each.span.classList.toggle("struck", struck?.source === sentence.source && struck.words.has(each.word));
      each.span.classList.toggle("untied", isUntied(each));
      each.span.classList.toggle("rare", rareWords[each.sentence].some((word) => word === each.text || each.text.startsWith(word)));
    }
  }

  // --- Point ----------------------------------------------------------------------------------------

  function activate(sentence, word) {
    active = { sentence, word };
    pointed = null;
    light();
  }

  /** Look into another sentence. Its note may move the answer, and so never follows a pointer over it. */
  function turnTo(sentence) {
    if (sentence === focus) return;
    focus = sentence;
    look();
    drawKnown();
    drawOthers();
  }

  /** Light the word that is pointed at and those that it is tied to; draw the threads. */
  function light() {
    for (const each of editor.words) each.span.classList.remove("lit");
    for (const each of out.querySelectorAll(".word")) each.classList.remove("lit");
    const on = active?.sentence ?? focus;
    const sentence = sentences[on];
    if (!sentence?.links) return ties.draw([]);
    const spans = ({ word, origin, weight }) => [editor.at(on, origin)?.span, sentence.words[word]?.span, weight];
    const all = sentence.links.map(spans).filter(([a, b]) => a?.isConnected && b?.isConnected);
    let some = null;
    if (active) some = sentence.links.filter((each) => each.word === active.word).map(spans);
    else if (pointed?.sentence === on) some = sentence.links.filter((each) => each.origin === pointed.word).map(spans);
    if (!some && !oneLine()) some = sentence.links.filter((each) => each.word === sentence.links[0].word).map(spans);
    if (active) sentence.words[active.word]?.span.classList.add("lit");
    if (pointed?.sentence === on) editor.at(on, pointed.word)?.span.classList.add("lit");
    const drawn = (some ?? all).filter(([a, b]) => a?.isConnected && b?.isConnected);
    if (some) for (const [a, b] of drawn) for (const each of [a, b]) each.classList.add("lit");
    ties.draw(drawn, Boolean(some));
    return undefined;
  }

  const oneLine = () => sentences.length === 1 && out.clientHeight < 2.2 * parseFloat(getComputedStyle(out).lineHeight) &&
    area.clientHeight < 2.2 * parseFloat(getComputedStyle(area).lineHeight);

  function walk(event, sentence, word) {
    const flat = [...out.querySelectorAll(".word")];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      offer(sentence, word);
    } else if (event.key === "Escape") closePop();
    else if (step) {
      const next = flat[flat.indexOf(event.target) + step];
      event.preventDefault();
      event.stopPropagation();
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
  }

  /** What might have stood there instead, as the search found it. */
  async function offer(number, place) {
    const sentence = sentences[number];
    const word = sentence.words[place];
    const again = !pop.hidden && word.span.getAttribute("aria-expanded") === "true";
    turnTo(number);
    closePop();
    if (again) return;
    word.span.setAttribute("aria-expanded", "true");
    pop.replaceChildren(h("p", { class: "about" }, t().waiting));
    pop.hidden = false;
    put(pop, word.span);
    try {
      sentence.steps ??= (await post("/api/v1/look", { ...request(sentence), form: "view" })).steps ?? [];
    } catch (error) {
      if (!pop.hidden) pop.replaceChildren(h("p", { class: "status wrong" }, error.message));
      return;
    }
    if (pop.hidden || sentences[number] !== sentence) return;
    const before = sentence.shown.slice(0, word.begin).trimEnd();
    const found = (sentence.steps[word.first]?.candidates ?? []).filter(([token, chance]) => chance >= 0.001 && !/^<.*>$/.test(token));
    pop.replaceChildren(
      h("h3", {}, t().candidates(word.text)),
      h("p", { class: "about" }, found.length ? t().force : t().noCandidates),
      h("div", { class: "chips" }, found.map(([token, chance]) => {
        const piece = token.replaceAll("▁", " ").trim();
        const text = `${before}${token.startsWith("▁") && before ? " " : ""}${piece}`;
        return h("button", { type: "button", onclick: () => force(sentence.source, text) },
          h("span", { lang: choice.model.target }, piece || "␣"), h("small", {}, ` ${percent(chance)}`));
      })),
    );
    put(pop, word.span);
  }

  /** Place a box below an element, within the page. */
  function put(box, element) {
    const frame = box.offsetParent.getBoundingClientRect();
    const at = element.getBoundingClientRect();
    box.style.top = `${at.bottom - frame.top + 4}px`;
    box.style.left = `${Math.max(0, Math.min(at.left - frame.left, frame.width - Math.min(box.offsetWidth || 280, frame.width)))}px`;
  }

  function closePop() {
    pop.hidden = true;
    for (const each of out.querySelectorAll("[aria-expanded=true]")) each.setAttribute("aria-expanded", "false");
  }

  /** Translate a sentence again, with this beginning; none leaves it to the model. */
  function force(source, prefix = "") {
    forced = source === null ? null : { source, prefix };
    struck = null;
    remember({ forced: forced && JSON.stringify(forced) });
    again();
  }

  /** Ask again for the sentences that something was changed in. */
  function again() {
    closePop();
    for (const each of sentences) {
      if (each.changed || isSpecial(each.source)) {
        Object.assign(each, { words: null, shown: each.plain, steps: null, changed: null });
      }
    }
    askDetails();
  }

  // --- Leave out --------------------------------------------------------------------------------------

  const keptWords = (source) => {
    let at = 0;
    return wordsOf(source).flatMap((word, index) => {
      if (struck.words.has(index)) return [];
      const begin = at;
      at += word.text.length + 1;
      return [{ ...word, begin, end: begin + word.text.length, index }];
    });
  };
  const without = (source) => keptWords(source).map((word) => word.text).join(" ");

  function leaveOut() {
    const { sentence, word } = pointed ?? {};
    const source = sentences[sentence]?.source;
    if (source === undefined) return;
    if (struck?.source !== source) struck = { source, words: new Set() };
    if (!struck.words.delete(word)) struck.words.add(word);
    if (!struck.words.size || !without(source)) struck = null;
    forced = null;
    remember({ forced: null });
    focus = sentence;
    again();
  }

  function putBack() {
    struck = null;
    again();
  }

  /** Set a part of the model to zero for the sentence in focus; null: put it back. */
  function remove(site) {
    removed = site && { source: sentences[focus].source, site };
    again();
  }

  const isSpecial = (source) => [forced, struck, removed].some((each) => each?.source === source);
  /** What is asked of a sentence beside its text. */
  const asked = (source) => ({
    ...(forced?.source === source ? { prefix: forced.prefix } : {}),
    ...(removed?.source === source ? { without: [removed.site] } : {}),
  });

  /** The word of the source that is pointed at, and what can be done with it. */
  function point(word) {
    pointed = word && { sentence: word.sentence, word: word.word };
    area.title = isUntied(word) ? t().untiedWord(bare(word.text)) : "";
    if (word) {
      active = null;
      turnTo(word.sentence);
      const is = struck?.source === sentences[focus]?.source && struck.words.has(word.word);
      strike.textContent = is ? t().putWordBack(word.text) : t().leaveOut(word.text);
      strike.hidden = false;
      put(strike, word.span);
    } else strike.hidden = true;
    light();
  }

  // --- What the model knows -----------------------------------------------------------------------------

  function drawKnown() {
    const sentence = sentences[focus];
    const found = read(sentence?.notes);
    const foreign = Boolean(detected.firstChild);
    if (foreign) found.words = [];
    const sure = sentence ? (found.sure ?? sentence.sure ?? null) : null;
    const doubt = plain(found, choice.model);
    const grave = sentences.map((each) => isDoubtful(read(each.notes)));
    const rest = [...sentences.keys()].filter((i) => i !== focus && grave[i]);
    known.classList.toggle("doubt", Boolean(doubt.length));
    out.classList.toggle("doubtful", grave.includes(true));
    out.querySelectorAll(".sentence-of").forEach((each, i) => each.classList.toggle("doubtful", grave[i]));
    const bar = h("span", { class: "bar" }, h("span"));
    bar.firstChild.style.width = `${100 * (sure ?? 0)}%`;
    const fixes = sentence && !foreign ? rewrites(sentence, found) : [];
    const what = JSON.stringify([sentence?.begin, sentence?.source, doubt, fixes.map(([words]) => words), rest]);
    if (what !== known.dataset.drawn) known.replaceChildren( // else a button would go from under the hand
      ...(doubt.length ? [h("p", {}, h("strong", {}, doubt.join(" ")))] : []),
      detected,
      ...(fixes.length ? [h("p", { class: "fixes" }, t().tryInstead, " ", fixes.map(([words, act]) => button(words, act, "chip")))] : []),
      ...(rest.length ? [h("p", {}, button(t().alsoCheck(rest.length), () => turnTo(rest[0])))] : []),
    );
    known.dataset.drawn = what;
    known.querySelector(".untied-words")?.remove();
    const free = editor.words.filter(isUntied);
    if (free.length) {
      const named = free.slice(0, NAMED).flatMap((each, i) => [i ? ", " : " ", "“", h("b", {}, bare(each.text)), "”"]);
      known.append(h("p", { class: "untied-words" }, t().untied, named, free.length > NAMED ? ", …" : ""));
    }
    sureness.replaceChildren(...(sure === null ? [] : [t().sure, " ", bar, " ", percent(sure)]));
  }

  /** Rewrites into what a model knows, each at one click. */
  function rewrites(sentence, found) {
    const { source } = sentence;
    const replace = (text) => {
      const all = area.value;
      set(all.slice(0, sentence.begin) + text + all.slice(sentence.begin + source.length));
    };
    const fixes = [];
    if (source === source.toUpperCase() && source !== source.toLowerCase()) {
      const low = source.toLowerCase();
      fixes.push([t().lower, () => replace(low[0].toUpperCase() + low.slice(1))]);
    }
    if (/[\p{L}\p{N}]$/u.test(source) && choice.model.source !== "ja") fixes.push([t().endMark, () => replace(`${source}.`)]);
    for (const word of [...found.words, ...found.signs].slice(0, 2)) {
      const less = source.replace(word, "").replace(/\s+/g, " ").trim();
      if (less && less !== source) fixes.push([t().leaveOut(word), () => replace(less)]);
    }
    if (isDoubtful(found)) {
      const example = textExamples(choice.model).find((each) => each !== source);
      if (example) fixes.push([example, () => replace(example)]);
    }
    return fixes;
  }

  function drawOthers() {
    const sentence = sentences[focus];
    const more = (sentence?.n_best ?? []).slice(1).map((each) => each.text).filter((text) => text !== sentence.shown);
    others.replaceChildren(...(more.length ? [
      h("h3", {}, t().others),
      h("ul", {}, more.map((text) => h("li", { lang: choice.model.target }, text))),
    ] : []));
  }

  // --- What unfolds ---------------------------------------------------------------------------------------

  const request = (sentence) => ({
    model: choice.model.name,
    text: struck?.source === sentence.source ? without(sentence.source) : sentence.source,
    ...asked(sentence.source),
  });

  let looked = "";
  /** The figure of the sentence in focus, if it is unfolded. */
  function look() {
    const sentence = sentences[focus];
    if (!inside.open || !choice.model.looks) return;
    if (!sentence) {
      looked = "";
      figure.clear();
      return;
    }
    const wanted = JSON.stringify(request(sentence));
    if (wanted === looked) {
      figure.dim(false);
      return;
    }
    looked = wanted;
    const { source: from, target: to } = choice.model;
    figure.show(request(sentence), { note: sentences.length > 1 ? t().figureOf(sentence.source) : "", languages: { source: from, target: to } });
  }
  inside.addEventListener("toggle", () => {
    remember({ inside: inside.open ? "1" : null });
    looked = "";
    if (inside.open) look();
    else figure.clear();
  });

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
      const rows = panel.rows.map((row) => h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cellText(cell)))));
      ownTable.append(h("h3", {}, t().perWord), h("table", {}, h("thead", {}, h("tr", {}, columns)), h("tbody", {}, rows)));
    },
    failed: (error) => status.fail(error),
  });
  own.append(h("summary", {}, h("h2", {}, t().own), h("span", {}, t().ownHint)), h("label", { for: "own-text", class: "unseen" }, t().own), ownText, ownTable);
  const drawOwn = () =>
    scorer.ask((signal) =>
      own.open && ownText.value.trim() && sentences[focus]
        ? post("/api/v1/look", { model: choice.model.name, text: sentences[focus].source, reference: ownText.value.trim() }, { signal })
        : null);
  ownText.addEventListener("input", debounced(drawOwn, 300));
  own.addEventListener("toggle", drawOwn);

  function drawProgram() {
    const body = JSON.stringify({ model: choice.model.name, text: area.value });
    program.querySelector("pre").textContent = [
      `curl ${location.origin}/api/v1/translate/document -H 'Content-Type: application/json' \\`,
      `  -d '${body.replaceAll("'", "'\\''")}'`,
      "",
      "import manyheads",
      `translate = manyheads.load("${choice.model.name}")`,
      `translate(${JSON.stringify(area.value)})`,
    ].join("\n");
  }

  // --- Ordinary care --------------------------------------------------------------------------------------

  async function putOnClipboard(text) {
    try {
      await navigator.clipboard.writeText(text);
      copied.textContent = t().copied;
    } catch {
      const field = h("textarea", { class: "unseen" });
      field.value = text;
      page.append(field);
      field.select();
      copied.textContent = document.execCommand("copy") ? t().copied : t().failed;
      field.remove();
    }
    setTimeout(() => (copied.textContent = ""), 2000);
  }

  const guesser = makeAsker({
    begin() {},
    done(found) {
      const [best] = found ?? [];
      const from = choice.model.source;
      if (!best || best.confidence < 60 || best.language === from) return drawKnown(detected.replaceChildren());
      const fits = models.filter((each) => each.source === best.language);
      const fit = fits.find((each) => each.target === from) ?? fits[0];
      const name = languageName(best.language);
      const act = () => choice.pick(fit.name, true, true);
      detected.replaceChildren(fit ? button(t().looksLikeSwitch(name, languageName(fit.target)), act, "chip") : t().looksLike(name));
      return drawKnown();
    },
    failed: () => detected.replaceChildren(),
  });
  const guess = debounced(() => {
    const text = area.value.trim();
    guesser.ask((signal) => (text.length > 3 ? post("/detect", { q: text.slice(0, 500) }, { signal }) : null));
  }, 400);

  function swapSides() {
    const { source: from, target: to } = choice.model;
    const back = models.find((each) => each.source === to && each.target === from);
    if (!back) return;
    const text = out.dataset.text;
    area.value = text;
    choice.pick(back.name, true, true);
  }

  function drawPast() {
    const all = history();
    past.hidden = !all.length;
    past.replaceChildren(h("summary", {}, t().history), h("ul", {},
      all.map((each) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => {
        past.open = false;
        area.value = each.text;
        if (models.some((model) => model.name === each.model)) choice.pick(each.model, true, true);
        else follow();
      } }, each.text.slice(0, 80)), each.answer ? h("small", {}, ` ${each.answer.slice(0, 80)}`) : null))),
      button(t().forget, () => { clearHistory(); drawPast(); }));
  }

  function labels() {
    const { source: from, target: to } = choice.model;
    sourceLabel.textContent = [t().source, languageName(from)].filter(Boolean).join(" · ");
    outLabel.textContent = [t().translation, languageName(to)].filter(Boolean).join(" · ");
    area.lang = from ?? "";
    swap.hidden = !models.some((each) => each.source === to && each.target === from);
    inside.hidden = own.hidden = path.hidden = gestures.hidden = !choice.model.looks;
    chips.replaceChildren(...textExamples(choice.model).map((text) => h("button", { type: "button", onclick: () => set(text) }, text)));
  }

  function set(text) {
    area.value = text;
    detected.replaceChildren();
    forced = struck = removed = null;
    focus = 0;
    remember({ forced: null });
    follow();
    if (!text) area.focus();
  }

  /** Another model: its own example, unless the person's words are kept. */
  function changeModel(_, keepText) {
    labels();
    looked = "";
    sentences = [];
    const theirs = models.some((model) => textExamples(model).includes(area.value));
    set(keepText || !theirs ? area.value : (textExamples(choice.model)[0] ?? area.value));
  }

  let composing = false;
  const typed = debounced(follow, PAUSE);
  const changed = () => {
    closePop();
    strike.hidden = true;
    forced = struck = removed = null;
    remember({ forced: null });
    editor.grow();
    if (composing) return;
    live.touched();
    typed();
  };
  area.addEventListener("compositionstart", () => (composing = true));
  area.addEventListener("compositionend", () => {
    composing = false;
    changed();
  });
  area.addEventListener("input", changed);
  area.addEventListener("mousemove", (event) => point(editor.under(event.clientX, event.clientY) ?? (pointed && editor.words.find((each) => each.sentence === pointed.sentence && each.word === pointed.word)) ?? null));
  const caret = () => document.activeElement === area && !composing && area.selectionStart === area.selectionEnd && point(editor.atCaret());
  area.addEventListener("keyup", caret);
  area.addEventListener("click", caret);
  out.addEventListener("mouseleave", () => {
    active = null;
    light();
  });
  const redraw = () => {
    editor.grow();
    closePop();
    strike.hidden = true;
    light();
  };
  addEventListener("resize", redraw);
  const observer = new ResizeObserver(() => light());
  observer.observe(alive);
  const away = (event) => {
    if (!pop.contains(event.target) && !event.target.closest?.(".word")) closePop();
  };
  document.addEventListener("pointerdown", away);
  labels();
  drawPast();
  area.value = recall("text") ?? (recall("model") && recall("model") !== kept("model") ? null : kept("text")) ?? textExamples(choice.model)[0] ?? "";
  follow();
  document.fonts?.ready.then(light);
  return {
    /** Take files that were dropped anywhere. */
    drop(files_) {
      const [given] = files_;
      if (!given) return false;
      files.translate(given, choice.model);
      return true;
    },
    takes: isDocument,
    destroy() {
      clearTimeout(settle);
      for (const each of [live, details, scorer, guesser]) each.stop();
      files.destroy();
      figure.destroy();
      observer.disconnect();
      removeEventListener("resize", redraw);
      document.removeEventListener("pointerdown", away);
    },
  };
}
