// The eight steps on a sentence. Each gives a question, its options and the right one, all computed from
// what the model itself answered for this sentence; null where the sentence is too short to ask.

import { makeAsker } from "./api.js";
import * as draw from "./path.draw.js";
import { debounced, h, percent } from "./parts.js";

const { piece, isByte, isWord, isSpecial, strongest } = draw;
const LONG = 4; // letters of a word that says something
const SURE = 0.7; // the weight, or the probability, that makes a good question: neither certain nor lost
const NEIGHBOUR = /(\S+) (-?\d\.\d+)(?:, |$)/g; // "cat 0.55, dog 0.41"
const MOST = 16; // words that are struck one by one
const PAIRS = 4; // of words whose exchange is tried
const SINK = 0.5; // the weight from which a token is called an attention sink

const maps = (view, kind) => view.maps.filter((map) => map.kind === kind);
const once = (tokens, i) => tokens.filter((token) => piece(token) === piece(tokens[i])).length === 1;
const figures = (view, group, kind) => view.figures.filter((each) => each.group === group && each.kind === kind);

/** Words, each as its pieces. */
function grouped(tokens) {
  const words = [];
  for (const token of tokens.filter((each) => !isSpecial(each))) {
    if (token.startsWith("▁") || !words.length) words.push([]);
    words.at(-1).push(token);
  }
  return words;
}

function pieces({ view, text, words }) {
  const count = view.source.filter((token) => !isSpecial(token)).length;
  const [spaced, letters] = [text.split(/\s+/).length, [...text.replace(/\s/g, "")].length];
  const options = [...new Set([count, spaced, letters, count + 2, count + 4])].slice(0, 4).sort((a, b) => a - b);
  const spelled = grouped(view.source).map((word) => word.filter((token) => isWord(token) || token === "▁"));
  const longest = spelled.sort((a, b) => b.length - a.length)[0] ?? [];
  const long = longest.length > 1;
  return {
    given: { count, spaced, word: long ? longest.map(piece).join("").replaceAll("␣", "") : "", parts: longest.length, byte: view.source.find(isByte) },
    options: options.map(String),
    right: options.indexOf(count),
    shown: () => [draw.chips(view.source, { lang: view.lang, words })],
  };
}

function vectors({ view, words }) {
  const [near] = figures(view, "embeddings", "table");
  const [spread] = figures(view, "embeddings", "scatter");
  const known = (near?.rows ?? [])
    .map(([token, , listed]) => ({
      token,
      listed, // what is said to be most similar in the whole vocabulary has to be its first
      found: [...listed.matchAll(NEIGHBOUR)]
        .map(([, name, similarity]) => [name, Number(similarity)])
        .filter(([name]) => isWord(name) && name.toLowerCase() !== token.toLowerCase()),
    }))
    .filter(({ token, found, listed }) => [...token].length > 1 && isWord(token) && found.length > 2 && listed.startsWith(`${found[0][0]} `));
  if (!known.length || !spread) return null;
  const [chosen, ...rest] = known.sort((a, b) => b.found[0][1] - a.found[0][1]);
  const [best, similarity] = chosen.found[0];
  const others = [chosen.found.at(-1)[0], ...rest.map(({ found }) => found[0][0]), ...chosen.found.map(([name]) => name)];
  const { options, right } = draw.choice(best, others, view.text);
  return {
    given: { token: chosen.token, best, similarity: similarity.toFixed(2) },
    options,
    right,
    lang: view.lang,
    shown: () => [
      draw.figure(words.neighbours(chosen.token), draw.bars(chosen.found, { chosen: 0, lang: view.lang, written: (cosine) => cosine.toFixed(2) })),
      draw.figure(
        words.planeOf,
        draw.plane(spread.points, spread.names.map((name) => (name === "</s>" ? words.end : name)), { lit: [spread.names.indexOf(chosen.token)], label: words.planeOf }),
      ),
    ],
  };
}

/** The sentence with two words in each other's place, but capitals and signs where they were, for each pair
 * of long words: first those in small letters, which are likely to keep their pieces, and far apart. */
function exchanges(text) {
  const words = text.split(/\s+/);
  const core = /[\p{L}\p{N}][\p{L}\p{N}'’-]*/u;
  const places = words.map((_, i) => i).filter((i) => [...(words[i].match(core)?.[0] ?? "")].length > (/[가-힣]/.test(text) ? 1 : 2));
  const found = places.flatMap((from, n) => places.slice(n + 1).map((to) => exchange(from, to)));
  return found.filter(({ first, last }) => first.toLowerCase() !== last.toLowerCase()).sort((a, b) => a.cost - b.cost);

  function exchange(from, to) {
    const [first, last] = [from, to].map((i) => words[i].match(core)[0]);
    const changed = [...words];
    if (from === 0 && /^\p{Lu}\p{Ll}/u.test(first) && /^\p{Ll}/u.test(last)) {
      changed[0] = words[0].replace(core, () => last[0].toUpperCase() + last.slice(1));
      changed[to] = words[to].replace(core, () => first[0].toLowerCase() + first.slice(1));
    } else {
      changed[from] = words[from].replace(core, () => last);
      changed[to] = words[to].replace(core, () => first);
    }
    const capitals = [first, last].filter((word) => /^\p{Lu}/u.test(word)).length;
    return { first, last, text: changed.join(" "), cost: capitals * words.length - (to - from) };
  }
}

/** An exchange of two words after which the model reads the same pieces in another order, if one is found. */
async function exchanged({ view, text, ask }) {
  const tries = exchanges(text).slice(0, PAIRS);
  const sorted = (tokens) => [...tokens].sort().join(" ");
  for (const other of tries) {
    const { source } = await ask("look", { text: other.text, form: "view" });
    if (sorted(source) === sorted(view.source)) return { ...other, same: true };
  }
  return tries.length ? { ...tries[0], same: false } : null;
}

async function positions(context) {
  const { view, text, words, translate } = context;
  const other = await exchanged(context);
  const [waves] = figures(view, "positions", "heat");
  if (!other) return null;
  const [before, after] = await translate([text, other.text]);
  const { gone, added, marked } = draw.changes(before, after);
  const right = before === after ? 0 : gone.length === added.length && [...gone].sort().join() === [...added].sort().join() ? 1 : 2;
  return {
    given: other,
    options: words.exchange,
    right,
    shown: () => [
      draw.figure(text, h("p", { class: "path-out", lang: view.target }, before)),
      draw.figure(other.text, h("p", { class: "path-out", lang: view.target }, marked)),
      waves ? draw.figure(words.waves(waves.rows.length, waves.columns.length), draw.heat(waves.values, words.waves(waves.rows.length, waves.columns.length), "tall")) : null,
    ],
  };
}

/** A head, a word that it helps to predict, and the piece it looks at most: where this is not quite certain. */
function meeting(view) {
  const layers = maps(view, "decoder cross");
  const map = layers.at(-1);
  if (!map || !map.weights.length) return null;
  const found = [];
  map.weights.forEach((rows, head) =>
    rows.forEach((weights, row) => {
      const best = strongest(weights);
      if (!isWord(map.rows[row]) || [...piece(map.rows[row])].length < 2) return;
      if (isWord(map.columns[best]) && once(map.columns, best)) found.push({ map, head, row, best, weights });
    }),
  );
  const short = (token) => Number(/^[a-z]/i.test(piece(token)) && [...piece(token)].length < LONG);
  const cost = ({ row, best, weights }) => Math.abs(weights[best] - SURE) + short(map.rows[row]) + short(map.columns[best]);
  return found.sort((a, b) => cost(a) - cost(b))[0] ?? null;
}

const names = (tokens, order) => order.filter((i) => isWord(tokens[i])).map((i) => piece(tokens[i]));
const descending = (row) => row.map((_, i) => i).sort((a, b) => row[b] - row[a]);

async function keys({ view, words, ask }) {
  const met = meeting(view);
  if (!met) return null;
  const { map, head, row, best, weights } = met;
  const { columns } = map;
  const { options, right } = draw.choice(piece(columns[best]), names(columns, descending(weights)), view.text);
  if (options.length < 2) return null;
  const steps = await ask("look/head", { site: map.site, head: head + 1, row: row + 1 });
  const order = descending(steps.weights).slice(0, 8);
  const root = Math.sqrt(steps.size);
  return {
    given: { word: piece(map.rows[row]), best: piece(columns[best]), share: percent(weights[best]), layer: map.layer, head: head + 1, size: steps.size },
    options,
    right,
    lang: view.lang,
    told: (i) => percent(weights[columns.findIndex((token) => piece(token) === options[i])]),
    shown: () => [
      draw.chips(columns, { shares: weights, lit: [best], lang: view.lang, words }),
      draw.figure(words.tableOf(map.layer, head + 1), draw.table(
        [words.key, "q·k", `÷ √${steps.size}`, "softmax"],
        order.map((i) => [
          columns[steps.keys[i]] === "</s>" ? words.end : piece(columns[steps.keys[i]]),
          steps.products[i].toFixed(1),
          (steps.products[i] / root).toFixed(2),
          percent(steps.weights[i]),
        ]),
        0,
      )),
      draw.figure(words.strip(steps.size), draw.heat([steps.query, steps.strongest], words.strip(steps.size))),
    ],
  };
}

/** A word about which the heads disagree as much as they can: nearly half of them look at one piece. */
function disputed({ map }) {
  const found = map.rows.map((token, row) => {
    const looks = map.weights.map((each) => each[row]);
    const best = strongest(map.mean[row]);
    const count = looks.filter((weights) => strongest(weights) === best).length;
    return { token, row, best, looks, count };
  });
  const fits = found.filter(({ token, best, count }) => isWord(token) && isWord(map.columns[best]) && once(map.columns, best) && count);
  const cost = ({ token, count }) => Math.abs(count - map.weights.length / 2) + Number([...piece(token)].length < LONG);
  return fits.sort((a, b) => cost(a) - cost(b))[0];
}

function heads({ view, words }) {
  const met = meeting(view);
  const dispute = met && disputed(met);
  if (!dispute || met.map.weights.length < 2) return null;
  const { map } = met;
  const { row, best, looks, count } = dispute;
  const all = looks.map((_, i) => i + 1);
  const options = all.length <= 8 ? all : [...new Set([1, count, Math.ceil(all.length / 2), all.length])].sort((a, b) => a - b);
  return {
    given: { word: piece(map.rows[row]), best: piece(map.columns[best]), count, heads: all.length },
    options: options.map(String),
    right: options.indexOf(count),
    shown: () => [
      h(
        "ol",
        { class: "path-heads" },
        looks.map((weights, i) =>
          h(
            "li",
            {},
            h("b", {}, words.head(i + 1)),
            draw.chips(map.columns, { shares: weights, lit: [strongest(weights)], small: true, lang: view.lang, words }),
            h("span", { class: "unseen" }, `${piece(map.columns[strongest(weights)])} ${percent(Math.max(...weights))}`),
          ),
        ),
      ),
    ],
  };
}

function layers({ view, words }) {
  const stack = maps(view, "encoder self");
  if (!stack.length) return null;
  const { columns } = stack[0];
  const met = meeting(view);
  const own = met && met.map.columns.length === columns.length ? met.best : columns.findIndex((token, i) => isWord(token) && once(columns, i));
  if (own < 0) return null;
  const flows = draw.rollout(stack, own);
  const share = (places) => places.reduce((sum, i) => sum + flows.at(-1)[i], 0);
  const written = (places) => `${(100 * share(places)).toFixed(1)}%`;
  const alike = columns.map((token) => columns.flatMap((other, i) => (i !== own && piece(other) === piece(token) ? [i] : [])));
  const others = descending(alike.map(share)).filter((i) => alike[i][0] === i); // what occurs twice counts together
  const asked = others.filter((i) => isWord(columns[i]) || isByte(columns[i]));
  if (asked.length < 2) return null;
  const [best] = asked;
  const larger = others.slice(0, others.indexOf(best)); // no words: above all the end token
  const end = larger.find((i) => columns[i] === "</s>");
  const rests = stack.map(({ mean }) => (end === undefined ? 0 : mean[own][end]));
  const sink = strongest(rests);
  const name = (i) => (i === end ? words.end : piece(columns[i]));
  const { options, right } = draw.choice(piece(columns[best]), [1, 0.6, 0.3].map((place) => piece(columns[asked[Math.ceil(place * (asked.length - 1))]])), view.text);
  const shown = [own, best, ...larger];
  return {
    given: {
      word: piece(columns[own]),
      best: piece(columns[best]),
      share: written(alike[best]),
      own: written([own]),
      layers: stack.length,
      larger: larger.map((i) => ({ name: i === end ? null : piece(columns[i]), share: written(alike[i]) })),
      sink: rests[sink] > SINK ? { layer: stack[sink].layer, share: percent(rests[sink]) } : null,
    },
    options,
    right,
    lang: view.lang,
    told: (i) => written(alike[asked.find((each) => piece(columns[each]) === options[i])]),
    shown: () => draw.mixture(flows, [[own], ...shown.slice(1).map((i) => alike[i])], [...shown.map(name), words.rest], words.layer),
  };
}

function next({ view, words, translate, busy }) {
  const fits = view.steps
    .map((step, at) => ({ at, found: step.candidates.filter(([token]) => isWord(token)), top: Math.max(...step.candidates.map(([, share]) => share)) }))
    .filter(({ at, found, top }) => at > 0 && found.length > 2 && found[0][1] === top);
  if (!fits.length) return null;
  const { at, found } = fits.sort((a, b) => Math.abs(a.top - SURE) - Math.abs(b.top - SURE))[0];
  const written = view.output.slice(0, at).join("").replaceAll("▁", " ").trim();
  const { options, right } = draw.choice(piece(found[0][0]), found.slice(1).map(([token]) => piece(token)), view.text);
  const share = (i) => found.find(([token]) => piece(token) === options[i])[1];
  return {
    given: { written, best: options[right], share: percent(share(right)) },
    options,
    right,
    lang: view.target,
    told: (i) => percent(share(i)),
    shown() {
      const box = h("div");
      const heated = (temperature) => {
        const raised = found.map(([token, chance]) => [piece(token), chance ** (1 / temperature)]);
        const sum = raised.reduce((total, [, chance]) => total + chance, 0);
        box.replaceChildren(draw.bars(raised.map(([name, chance]) => [name, chance / sum]), { lang: view.target }));
      };
      const results = {};
      const line = (name, request) => {
        const out = h("p", { class: "path-out", lang: view.target, role: "status" }, view.translation);
        const asker = makeAsker({
          begin: () => out.classList.add("old"),
          done([text]) {
            out.classList.remove("old");
            out.replaceChildren(...draw.changes(view.translation, text).marked);
          },
          failed: busy,
        });
        const asked = debounced(() => asker.ask((signal) => translate([view.text], request(), signal)), 60);
        results[name] = asked;
        return out;
      };
      let [temperature, seed, beams] = [1, 1, 4];
      const sampled = line("sample", () => ({ temperature, seed }));
      const searched = line("search", () => ({ beams }));
      heated(temperature);
      results.sample();
      return [
        draw.figure(words.candidates(written), box),
        draw.figure(
          words.sampleHint,
          draw.dial("path-temperature", words.temperature, { min: 0.2, max: 2, step: 0.1, value: 1, written: (value) => value.toFixed(1) }, (value) => {
            temperature = value;
            heated(value);
            results.sample();
          }),
          sampled,
          h("button", { type: "button", class: "link", onclick: () => ((seed += 1), results.sample()) }, words.again),
        ),
        draw.figure(
          words.beamHint,
          draw.dial("path-beams", words.beams, { min: 1, max: 8, step: 1, value: 4 }, (value) => {
            beams = value;
            results.search();
          }),
          searched,
        ),
      ];
    },
  };
}

async function fool({ view, text, words, translate, busy }) {
  const list = text.split(/\s+/);
  if (list.length < 3) return null;
  const struck = list.slice(0, MOST).map((_, i) => list.filter((__, k) => k !== i).join(" "));
  const [before, ...after] = await translate([text, ...struck]);
  const moved = after.map((each) => draw.changes(before, each)).map(({ gone, added }) => Math.max(gone.length, added.length));
  const best = strongest(moved);
  const others = list.slice(0, MOST).filter((word, i) => moved[i] < moved[best] && word !== list[best]);
  const { options, right } = draw.choice(list[best], draw.shuffled(others, text), text);
  if (options.length < 2) return null;
  const number = (word) => moved[list.indexOf(word)];
  return {
    given: { word: list[best], count: moved[best] },
    options,
    right,
    lang: view.lang,
    told: (i) => words.moved(number(options[i])),
    shown: () => [play(before, list, best)],
  };

  /** Strike words, add one, and read what changed. */
  function play(original, all, first) {
    const gone = new Set([first]);
    const added = h("input", { type: "text", id: "path-add", autocomplete: "off", spellcheck: "false" });
    const now = h("p", { class: "path-out", lang: view.lang });
    const out = h("p", { class: "path-out", lang: view.target });
    const told = h("p", { role: "status" });
    const asker = makeAsker({
      begin: () => out.classList.add("old"),
      done([changed]) {
        const { gone: lost, added: fresh, marked } = draw.changes(original, changed);
        out.classList.remove("old");
        out.replaceChildren(...marked);
        told.textContent = lost.length || fresh.length ? words.changed(lost, fresh) : words.unchanged;
      },
      failed: busy,
    });
    const sentence = () => [...all.filter((_, i) => !gone.has(i)), added.value.trim()].filter(Boolean).join(" ");
    const follow = () => {
      now.textContent = sentence();
      if (sentence()) asker.ask((signal) => translate([sentence()], {}, signal));
    };
    added.addEventListener("input", (event) => event.isComposing || slowly());
    added.addEventListener("compositionend", () => slowly());
    const slowly = debounced(follow, 150);
    const buttons = all.map((word, i) => {
      const button = h("button", { type: "button", "aria-pressed": String(gone.has(i)) }, word);
      button.addEventListener("click", () => {
        if (!gone.delete(i)) gone.add(i);
        button.setAttribute("aria-pressed", String(gone.has(i)));
        follow();
      });
      return button;
    });
    follow();
    return h(
      "div",
      { class: "path-free" },
      h("p", { class: "about" }, words.strike),
      h("div", { class: "path-strike", role: "group", "aria-label": words.strike, lang: view.lang }, buttons),
      h("div", { class: "path-field" }, h("label", { for: "path-add" }, words.add), added),
      now,
      draw.figure(words.before, h("p", { class: "path-out", lang: view.target }, original)),
      draw.figure(words.now, out),
      told,
    );
  }
}

export const TEXT_STEPS = [pieces, vectors, positions, keys, heads, layers, next, fool];
