// What the path draws: pieces, bars, planes, strips of colour and pictures, all as elements of the page.

import { h, percent, shared } from "./parts.js";

const isMarked = (token) => /^<.*>$/.test(token);
export const isByte = (token) => /^<0x..>$/.test(token); // of a letter that the vocabulary does not have
export const isSpecial = (token) => isMarked(token) && !isByte(token);
export const piece = (token) => token.replaceAll("▁", " ").trim() || "␣";
export const isWord = (token) => !isMarked(token) && /[\p{L}\p{N}]/u.test(token);
export const strongest = (row) => row.indexOf(Math.max(...row));

/** The shade of an element: 0 none, 1 full. */
function shade(element, share) {
  element.style.setProperty("--share", Math.min(Math.max(share, 0), 1).toFixed(3));
  return element;
}

/** The pieces of a text; `shares` shades them, `lit` frames some, `numbers` writes the shares below. */
export function chips(tokens, { shares = null, lit = [], lang = "", small = false, words = {} } = {}) {
  return h(
    "div",
    { class: `path-chips${small ? " small" : ""}`, lang },
    tokens.map((token, i) => {
      const chip = h(
        "span",
        { class: `chip${lit.includes(i) ? " lit" : ""}${token.startsWith("▁") ? " begins" : ""}` },
        token === "</s>" ? h("i", { lang: document.documentElement.lang }, words.end) : piece(token),
        shares && !small ? h("small", {}, percent(shares[i])) : null,
      );
      if (shares && small) chip.title = percent(shares[i]);
      return shares ? shade(chip, shares[i]) : chip;
    }),
  );
}

/** Named bars, each a share of 1; `chosen` is in bold. */
export function bars(rows, { chosen = -1, lang = "", written = percent } = {}) {
  return h(
    "ol",
    { class: "path-bars" },
    rows.map(([name, share], i) => {
      const bar = h("span", { class: "line", "aria-hidden": "true" }, shade(h("span"), share));
      return h("li", { class: i === chosen ? "lit" : null }, h("span", { lang }, name), bar, h("span", {}, written(share)));
    }),
  );
}

export function table(columns, rows, lit) {
  const cells = (row) => row.map((cell, i) => (i ? h("td", {}, cell) : h("th", { scope: "row" }, cell)));
  return h(
    "div",
    { class: "path-table", tabindex: 0, role: "group", "aria-label": columns.join(", ") },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row, i) => h("tr", { class: i === lit ? "lit" : null }, cells(row)))),
    ),
  );
}

/** Names at their places in a plane; those without a name are dots. */
export function plane(points, names, { lit = [], label }) {
  const span = (axis) => {
    const values = points.map((point) => point[axis]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (value) => 10 + (80 * (value - low)) / (high - low || 1);
  };
  const [x, y] = [span(0), span(1)];
  const taken = []; // centres and half widths of names, which do not cover each other
  return h(
    "div",
    { class: "path-plane", role: "img", "aria-label": label },
    points.map((point, i) => {
      const place = h("span", { class: lit.includes(i) ? "lit" : names[i] ? null : "dot" }, names[i] ?? "");
      const [left, middle, half] = [x(point[0]), 100 - y(point[1]), 1 + (names[i]?.length ?? 0)];
      const covered = (top) => taken.some(([l, t, room]) => Math.abs(l - left) < room + half && Math.abs(t - top) < 7);
      const top = [0, 7, -7, 14, -14, 21, -21].map((by) => middle + by).find((each) => !names[i] || !covered(each)) ?? middle;
      if (names[i]) taken.push([left, top, half]);
      place.style.left = `${left}%`;
      place.style.top = `${top}%`;
      return place;
    }),
  );
}

/** Numbers as colours: blue above zero, orange below; each row is scaled alone, or all together in a `shape`. */
export function heat(values, label, shape = "") {
  const canvas = h("canvas", { class: `path-heat ${shape}`, role: "img", "aria-label": label });
  const peak = (row) => Math.max(...row.map(Math.abs), 1e-9);
  [canvas.height, canvas.width] = [values.length, values[0].length];
  const pixels = new ImageData(canvas.width, canvas.height);
  const shares = values.flatMap((row) => row.map((value) => value / (shape ? peak(values.flat()) : peak(row))));
  shares.forEach((share, i) => {
    const colour = share < 0 ? [214, 110, 30] : [47, 127, 220];
    pixels.data.set([...colour, Math.round(255 * Math.abs(share))], 4 * i);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

export const figure = (caption, ...children) =>
  h("figure", { class: "path-figure" }, h("figcaption", {}, caption), ...children);

/** A dial: a name, a slider and its value; `turned` hears of every move. */
export function dial(id, name, { min, max, step, value, written = String }, turned) {
  const out = h("output", { for: id }, written(value));
  const slider = h("input", { type: "range", id, min, max, step, value });
  slider.addEventListener("input", () => {
    out.textContent = written(Number(slider.value));
    turned(Number(slider.value));
  });
  return h("div", { class: "path-dial" }, h("label", { for: id }, name), slider, out);
}

const bare = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "") || word;
const trimmed = (word) => word.replace(/^\p{P}+|\p{P}+$/gu, "") || word;
const split = (text) => text.split(/\s+/).filter(Boolean);

/** What changed between two texts: words gone, words new, and the second text with these marked. */
export function changes(before, after) {
  const [old, now] = [split(before), split(after)];
  const [left, right] = shared(old.map(bare), now.map(bare));
  return {
    gone: old.filter((_, i) => !left[i]).map(trimmed),
    added: now.filter((_, i) => !right[i]).map(trimmed),
    marked: now.flatMap((word, i) => [right[i] ? word : h("mark", {}, word), " "]),
  };
}

/** An order that looks random and is the same at every visit. */
export function shuffled(items, seed) {
  let state = [...seed].reduce((sum, sign) => (Math.imul(sum, 31) + sign.codePointAt(0)) >>> 0, 7);
  const rank = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  return items
    .map((item) => [rank(), item])
    .sort((a, b) => a[0] - b[0])
    .map(([, item]) => item);
}

/** Up to four options in such an order, and which of them is right. */
export function choice(right, others, seed) {
  const found = [...new Set([right, ...others])].slice(0, 4);
  const options = shuffled(found, `${seed}/${found.join("/")}`);
  return { options, right: options.indexOf(right) };
}

/**
 * Attention rollout (Abnar and Zuidema 2020): after each layer, how much of token `row` comes from each
 * token, where half passes by on the residual connection and half is mixed by the mean of the heads.
 */
export function rollout(maps, row) {
  let flow = maps[0].mean.map((_, i) => maps[0].mean.map((__, j) => Number(i === j)));
  return maps.map(({ mean }) => {
    flow = mean.map((weights, i) =>
      flow.map((_, j) => 0.5 * flow[i][j] + 0.5 * weights.reduce((sum, weight, k) => sum + weight * flow[k][j], 0)),
    );
    return flow[row];
  });
}

/** How much comes from groups of tokens, and from all the rest, layer by layer: parts of a line, the rest last. */
export function mixture(flows, groups, names, layerName) {
  const kind = (i) => (i < groups.length ? `part p${i}` : "part");
  const key = names.map((name, i) => h("li", { class: kind(i) }, name));
  return [
    h("ul", { class: "path-key" }, key),
    h(
      "ol",
      { class: "path-mix" },
      flows.map((flow, i) => {
        const known = groups.map((places) => places.reduce((sum, i) => sum + flow[i], 0));
        const parts = [...known, Math.max(0, 1 - known.reduce((sum, share) => sum + share, 0))];
        const line = parts.map((share, k) => {
          const part = h("span", { class: kind(k) }, share > 0.07 ? percent(share) : "");
          part.style.width = `${100 * share}%`;
          return part;
        });
        const told = parts.map((share, k) => `${names[k]} ${percent(share)}`).join(", ");
        return h("li", {}, h("span", {}, layerName(i + 1)), h("span", { class: "line", role: "img", "aria-label": told }, line));
      }),
    ),
  ];
}
