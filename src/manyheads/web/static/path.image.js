// The eight steps on a picture: patches instead of pieces, a class instead of the next word.

import { say } from "/static/draw/language.js";
import { makeAsker } from "./api.js";
import * as draw from "./path.draw.js";
import { ofLook } from "./notes.js";
import { h, percent } from "./parts.js";

const LETTERS = ["A", "B", "C", "D"];
const SIDE = 4; // parts along each side, to cover
const GREY = "#808080";

const { strongest } = draw;
const descending = (row) => row.map((_, i) => i).sort((a, b) => row[b] - row[a]);
const stack = (view) => view.maps.filter((map) => map.kind === "encoder self" && map.row_grid !== null);
const gridOf = (view) => view.grids[stack(view)[0]?.row_grid ?? 0];
const percentages = (classes) => classes.map(({ label, probability }) => [label, probability]);

/** The picture under its grid; `marks` are letters on patches, `framed` is one patch. */
function picture(c, { marks = {}, framed = null, lines = true } = {}) {
  const grid = gridOf(c.view);
  const box = h("div", { class: "path-picture" }, h("img", { src: c.url, alt: c.words.yourPicture }));
  grid.boxes.forEach(([top, left, height, width], i) => {
    if (!lines && !(i in marks) && i !== framed) return;
    const cell = h("span", { class: i === framed ? "framed" : i in marks ? "marked" : null }, marks[i] ?? "");
    Object.entries({ top: [top, c.view.height], left: [left, c.view.width], height: [height, c.view.height], width: [width, c.view.width] }).forEach(
      ([side, [value, whole]]) => (cell.style[side] = `${(100 * value) / whole}%`),
    );
    box.append(cell);
  });
  return box;
}

/** Weights as a clean map beside the picture, in the same grid. */
function mapOf(c, weights, { marks = {}, framed = null, label, small = false } = {}) {
  const { rows, columns, extra } = gridOf(c.view);
  const most = Math.max(...weights);
  const cells = weights.slice(extra.length).map((weight, i) => {
    const cell = h("span", { class: i === framed ? "framed" : i in marks ? "marked" : null }, small ? "" : (marks[i] ?? ""));
    cell.style.setProperty("--share", (weight / most).toFixed(3));
    return cell;
  });
  const box = h("div", { class: `path-map${small ? " small" : ""}`, role: "img", "aria-label": label }, cells);
  box.style.gridTemplate = `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`;
  return box;
}

/** Four patches as options A to D, in the order of reading; the first is right. */
function lettered(cells) {
  const order = [...new Set(cells)].slice(0, 4).sort((a, b) => a - b);
  return {
    options: order.map((_, i) => LETTERS[i]),
    right: order.indexOf(cells[0]),
    cells: order,
    marks: Object.fromEntries(order.map((cell, i) => [cell, LETTERS[i]])),
  };
}

/** The right patch, and three others that are far from it in weight: spread over the order. */
function spreadOut(order) {
  const at = [0, 0.3, 0.6, 0.95].map((share) => Math.floor(share * (order.length - 1)));
  return at.map((place) => order[place]);
}

function patches(c) {
  const { rows, columns, extra } = gridOf(c.view);
  const count = rows * columns;
  const options = [...new Set([count, rows, 2 * count, (rows + 1) * (columns + 1)])].sort((a, b) => a - b);
  return {
    given: { rows, columns, count, extra: extra.length },
    options: options.map(String),
    right: options.indexOf(count),
    above: () => [picture(c, { lines: false })],
    shown: () => [h("div", {}, picture(c), ofLook(c.view.notes).map((note) => h("p", { class: "about" }, say(note))))],
  };
}

/** A patch to follow: the one whose row in the last layer has the clearest maximum. */
function followed(c) {
  const map = stack(c.view).at(-1);
  const { length: extra } = gridOf(c.view).extra;
  let found = null;
  map?.weights.forEach((rows, head) =>
    rows.forEach((weights, row) => {
      if (row < extra) return;
      const best = strongest(weights.map((weight, i) => (i < extra || i === row ? -1 : weight)));
      if (best !== strongest(weights) || (found && weights[best] <= found.weights[found.best])) return;
      found = { map, head, row, best, weights, extra, framed: row - extra };
    }),
  );
  return found;
}

function vectors(c) {
  const spread = c.view.figures.find(({ group, kind }) => group === "embeddings" && kind === "scatter");
  const met = followed(c);
  if (!spread || !met) return null;
  const at = (i) => spread.points[i + met.extra];
  const distance = (i) => Math.hypot(at(i)[0] - at(met.framed)[0], at(i)[1] - at(met.framed)[1]);
  const cells = gridOf(c.view).boxes.map((_, i) => i).filter((i) => i !== met.framed).sort((a, b) => distance(a) - distance(b));
  const asked = lettered(spreadOut(cells));
  const names = spread.points.map((_, i) => (i - met.extra === met.framed ? "◎" : asked.marks[i - met.extra]));
  return {
    ...asked,
    given: { best: asked.options[asked.right], planes: [spread.x, spread.y].map((axis) => axis.split(":").at(-1).trim()).join(" + ") },
    above: () => [picture(c, { marks: asked.marks, framed: met.framed })],
    shown: () => [draw.figure(c.words.planeOf, draw.plane(spread.points, names, { lit: [met.row], label: c.words.planeOf }))],
  };
}

/** Draw the picture with a change, at its own size; gives a data URL. */
function painted(image, change) {
  const canvas = h("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const ink = canvas.getContext("2d");
  ink.imageSmoothingEnabled = false;
  ink.drawImage(image, 0, 0);
  change(ink, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

const swapped = (image) =>
  painted(image, (ink, width, height) => {
    const half = Math.floor(width / 2);
    ink.drawImage(image, 0, 0, half, height, width - half, 0, half, height);
    ink.drawImage(image, width - half, 0, half, height, 0, 0, half, height);
  });

async function positions(c) {
  const url = swapped(c.image);
  const [before, after] = await c.classify([c.url, url]);
  const same = before[0].label === after[0].label;
  const change = after.find(({ label }) => label === before[0].label).probability - before[0].probability;
  const right = !same ? 2 : change < -0.05 ? 1 : 0;
  const tiles = c.view.figures.find(({ group, kind }) => group === "positions" && kind === "heat");
  const turned = { ...c, url };
  return {
    given: { label: before[0].label, after: after[0].label, share: percent(before[0].probability), then: percent(before[0].probability + change) },
    options: c.words.halves(before[0].label),
    right,
    above: () => [h("div", { class: "path-pair" }, picture(c, { lines: false }), picture(turned, { lines: false }))],
    shown: () => [
      draw.figure(c.words.before, draw.bars(percentages(before.slice(0, 4)))),
      draw.figure(c.words.swappedHalves, draw.bars(percentages(after.slice(0, 4)))),
      tiles ? draw.figure(c.words.tiles, draw.heat(tiles.values, c.words.tiles, "square")) : null,
    ],
  };
}

async function keys(c) {
  const met = followed(c);
  if (!met) return null;
  const { map, head, row, best, weights, extra, framed } = met;
  const order = descending(weights.slice(extra)).filter((i) => i !== framed);
  const asked = lettered(spreadOut([best - extra, ...order.filter((i) => i !== best - extra)]));
  const steps = await c.ask("look/head", { site: map.site, head: head + 1, row: row + 1 });
  const root = Math.sqrt(steps.size);
  const lit = c.words.mapOf(asked.options[asked.right], percent(weights[best]));
  const shownKeys = descending(steps.weights).slice(0, 8);
  const name = (i) => asked.marks[i - extra] ?? (i < extra ? c.words.classToken : c.words.patch(map.columns[i].split(" ").at(-1)));
  return {
    ...asked,
    given: { best: asked.options[asked.right], share: percent(weights[best]), layer: map.layer, head: head + 1, size: steps.size },
    told: (i) => percent(weights[asked.cells[i] + extra]),
    above: () => [picture(c, { marks: asked.marks, framed })],
    shown: () => [
      draw.figure(lit, mapOf(c, weights, { marks: asked.marks, framed, label: lit })),
      draw.figure(c.words.tableOf(map.layer, head + 1), draw.table(
        [c.words.key, "q·k", `÷ √${steps.size}`, "softmax"],
        shownKeys.map((i) => [name(steps.keys[i]), steps.products[i].toFixed(1), (steps.products[i] / root).toFixed(2), percent(steps.weights[i])]),
        0,
      )),
      draw.figure(c.words.strip(steps.size), draw.heat([steps.query, steps.strongest], c.words.strip(steps.size))),
    ],
  };
}

function heads(c) {
  const met = followed(c);
  if (!met || met.map.weights.length < 2) return null;
  const { map, row, best, extra, framed } = met;
  const looks = map.weights.map((each) => each[row]);
  const count = looks.filter((weights) => strongest(weights) === best).length;
  const options = looks.map((_, i) => i + 1);
  return {
    given: { count, heads: options.length },
    options: options.map(String),
    right: options.indexOf(count),
    above: () => [picture(c, { marks: { [best - extra]: "A" }, framed })],
    shown: () => [
      h(
        "div",
        { class: "path-maps" },
        looks.map((weights, i) => {
          const told = `${c.words.head(i + 1)}: ${map.columns[strongest(weights)].replace("patch", "")} ${percent(Math.max(...weights))}`;
          return draw.figure(c.words.head(i + 1), mapOf(c, weights, { marks: { [strongest(weights) - extra]: "A" }, framed, label: told, small: true }));
        }),
      ),
    ],
  };
}

function layers(c) {
  const met = followed(c);
  const maps = stack(c.view).filter((map) => met && map.mean.length === met.map.mean.length);
  if (!maps.length) return null;
  const { row, extra, framed } = met;
  const flows = draw.rollout(maps, row);
  const order = descending(flows.at(-1).slice(extra)).filter((i) => i !== framed);
  const asked = lettered(spreadOut(order));
  const share = (cell) => `${(100 * flows.at(-1)[cell + extra]).toFixed(1)}%`;
  return {
    ...asked,
    given: { best: asked.options[asked.right], share: share(order[0]), own: share(framed), layers: maps.length },
    told: (i) => share(asked.cells[i]),
    above: () => [picture(c, { marks: asked.marks, framed })],
    shown: () => draw.mixture(flows, [[row], [order[0] + extra]], ["◎", asked.options[asked.right], c.words.rest], c.words.layer),
  };
}

async function classes(c) {
  const [found] = await c.classify([c.url]);
  if (found.length < 3) return null;
  const [first, second, ...rest] = found;
  const { options, right } = draw.choice(second.label, rest.map(({ label }) => label), c.url.slice(-80));
  return {
    given: { first: first.label, best: second.label, share: percent(second.probability) },
    options,
    right,
    told: (i) => percent(found.find(({ label }) => label === options[i]).probability),
    above: () => [picture(c, { lines: false })],
    shown() {
      const box = h("div");
      const heated = (temperature) => {
        const raised = found.map(({ label, probability }) => [label, probability ** (1 / temperature)]);
        const sum = raised.reduce((total, [, share]) => total + share, 0);
        box.replaceChildren(draw.bars(raised.map(([label, share]) => [label, share / sum]).slice(0, 10), { chosen: 1 }));
      };
      heated(1);
      const options = { min: 0.2, max: 3, step: 0.1, value: 1, written: (value) => value.toFixed(1) };
      return [draw.figure(c.words.classTemperature, draw.dial("path-temperature", c.words.temperature, options, heated), box)];
    },
  };
}

/** The picture with some of SIDE x SIDE parts in grey. */
const covered = (image, parts) =>
  painted(image, (ink, width, height) => {
    ink.fillStyle = GREY;
    for (const part of parts) {
      const [x, y] = [part % SIDE, Math.floor(part / SIDE)];
      ink.fillRect(Math.floor((x * width) / SIDE), Math.floor((y * height) / SIDE), Math.ceil(width / SIDE), Math.ceil(height / SIDE));
    }
  });

async function fool(c) {
  const all = Array.from({ length: SIDE * SIDE }, (_, i) => i);
  const quarters = [[0, 0], [2, 0], [0, 2], [2, 2]].map(([x, y]) =>
    all.filter((i) => Math.floor((i % SIDE) / 2) * 2 === x && Math.floor(i / SIDE / 2) * 2 === y),
  );
  const [before, ...after] = await c.classify([c.url, ...quarters.map((parts) => covered(c.image, parts))]);
  const { label, probability } = before[0];
  const left = after.map((found) => found.find((each) => each.label === label)?.probability ?? 0);
  const right = left.indexOf(Math.min(...left));
  return {
    given: { label, share: percent(probability), left: percent(left[right]), best: LETTERS[right] },
    options: LETTERS,
    right,
    told: (i) => percent(left[i]),
    above: () => {
      const letters = LETTERS.map((letter) => h("b", {}, h("span", {}, letter)));
      return [h("div", { class: "path-picture quarters" }, h("img", { src: c.url, alt: c.words.yourPicture }), h("div", {}, letters))];
    },
    shown: () => [play(quarters[right])],
  };

  /** Cover parts, and read what the model makes of the rest. */
  function play(first) {
    const hidden = new Set(first);
    const image = h("img", { src: c.url, alt: c.words.yourPicture });
    const out = h("div");
    const told = h("p", { role: "status" });
    const asker = makeAsker({
      begin: () => out.classList.add("old"),
      done([found]) {
        out.classList.remove("old");
        out.replaceChildren(draw.bars(percentages(found.slice(0, 5))));
        told.textContent = found[0].label === label ? c.words.stillClass(label, percent(found[0].probability)) : c.words.fooled(label, found[0].label);
      },
      failed: c.busy,
    });
    function follow() {
      image.src = covered(c.image, hidden);
      asker.ask((signal) => c.classify([image.src], signal));
    }
    const buttons = all.map((i) =>
      h("button", {
        type: "button",
        "aria-pressed": String(hidden.has(i)),
        "aria-label": c.words.part(Math.floor(i / SIDE) + 1, (i % SIDE) + 1),
        onclick: (event) => {
          if (!hidden.delete(i)) hidden.add(i);
          event.currentTarget.setAttribute("aria-pressed", String(hidden.has(i)));
          follow();
        },
      }),
    );
    follow();
    return h(
      "div",
      { class: "path-free" },
      h("p", { class: "about" }, c.words.coverHint),
      h("div", { class: "path-play" }, h("div", { class: "path-picture cover" }, image, h("div", { role: "group", "aria-label": c.words.coverHint }, buttons)), h("div", {}, out, told)),
    );
  }
}

export const IMAGE_STEPS = [patches, vectors, positions, keys, heads, layers, classes, fool];
