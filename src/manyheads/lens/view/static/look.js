// Draws a view: one sentence or one image, with everything that its model looks at.
//
// `draw(root, data, packed)` is the way in. `data` is what lens/view/report.py writes: the view with its
// weights taken out, and `packed`, which are these weights. Nothing is ever fetched. What it returns has
// `update(data, packed)`, to draw another view in the same place, and `destroy()`. Of `options`,
// `languages` are those of the source and of the target, `compute` gives the steps of a head, and a
// `second` figure of a page leaves the address and the keys of the page to the first. With a `panel`
// only this group of the figures below is drawn.

import { exact, isDark, label, makeTip } from "./draw.js";
import { makeChoices, makeHeads, matrixCells } from "./heads.js";
import { say } from "./language.js";
import { makeMatrix } from "./matrix.js";
import { imageKinds, layerName, ownPeak, peakFor, textKinds, trust } from "./model.js";
import { gatePanels, makePanels } from "./panels.js";
import { asker, imageCells, makeImage, readers } from "./image.js";
import { download, toPng } from "./save.js";
import { makeState } from "./state.js";
import { makeSteps } from "./steps.js";
import { makeTable } from "./table.js";
import { makeText } from "./text.js";
import { spread, unpack } from "./unpack.js";
const { select } = globalThis.d3;

export async function draw(root, data, packed, options = {}) {
  const { view } = data;
  const matrices = spread(view.maps, await unpack(packed, data.weights));
  const ending = new AbortController();
  const { signal } = ending; // takes all listeners away at the end
  const image = view.kind === "image";
  const kinds = (image ? imageKinds : textKinds)(view, matrices);
  const themed = [];
  const app = {
    state: makeState(kinds, data.open, signal, !options.second),
    colours: data.colours,
    tip: makeTip(),
    paintKey: () => (isDark() ? "dark" : "light"),
    onTheme: (redraw) => themed.push(redraw),
    scaleOf: (layer, look) => (image ? cellsOf(layer, look).peak : peakFor(layer, look)),
    languageOf: (axis) => languageOf(app, options.languages ?? {}, axis),
    about: (row, column) => about(app, row, column),
    alternatives: (index) => alternatives(view, index),
  };

  const page = select(root);
  page.selectAll("*").remove();
  const figure = page.append("section").attr("class", `figure ${view.kind}`);
  if (data.told.model) figure.append("h1").text(data.told.model);
  const { text, translation, instead, instead_translation: other } = data.told;
  const both = `${text} → ${translation}\n${instead} → ${other}`;
  if (instead) figure.append("p").attr("class", "both").text(both);
  const place = (name) => figure.append("div").attr("class", name);
  const first = place("large");
  const main = place("main");
  const status = page.append("p").attr("class", "unseen").attr("role", "status");
  app.say = (words) => status.text(words);

  // The person's own sentence or image first; under it what it is, and what else there is to see.
  const large = image ? makeImage(first, app, view, data.image) : makeText(first, app);
  const legend = main.append("p").attr("class", "legend");
  const trusted = main.append("p").attr("class", "trust");
  const choices = makeChoices(main, app);
  const cellsOf = image
    ? (layer, look) => imageCells(view, layer, look, app.state.active())
    : matrixCells;
  const aspect = (layer, look) => {
    if (!image) return `${layer.columns.length} / ${layer.rows.length}`;
    const { boxes } = view.grids[look.cells ? look.grid : layer.column_grid];
    const last = boxes.at(-1);
    return `${last[1] + last[3] - boxes[0][1]} / ${last[0] + last[2] - boxes[0][0]}`;
  };
  const heads = makeHeads(main, app, cellsOf, aspect);
  const parts = [large, choices, heads];
  const attends = kinds.some((kind) => kind.layers.some((layer) => layer.looks.length));
  if (attends && !image) parts.push(makeMatrix(place("beside"), app));
  if (options.compute && kinds.some((kind) => kind.group === "attention")) {
    const rowOf = ({ row }) => (image ? heldRow(view, app.state.layer(), row) : row);
    parts.push(makeSteps(place("computation"), app, options.compute, rowOf, signal));
  }
  const twin = makeTable(page, twinOf(app, view, image));
  // What belongs to this input comes open; the rest is a click away.
  const open = image ? ["distance", "positions"] : ["gates"];
  const told = view.figures.some((found) => found.group === "gates");
  const gates = told ? [] : gatePanels(view.gates ?? []);
  const panels = [...gates, ...view.figures];
  const wanted = panels.filter((found) => !options.panel || found.group === options.panel);
  makePanels(page, app, wanted, options.panel ? [options.panel] : open);
  const notes = page.append("ul").attr("class", "notes");
  notes.selectAll("li").data([...view.notes, ...(data.rounding ? [data.rounding] : [])]).join("li")
    .text((note) => say(note));
  tools(page, app, data, matrices, figure.node());

  function explain() {
    const look = app.state.look();
    for (const each of [legend, trusted]) each.style("display", look ? null : "none");
    if (!look) return;
    const { row } = app.state.active();
    const pooled = app.state.layer().row_grid === null; // one row, which the legend names
    const whose = image && !look.cells && !pooled ? `Row of ${asker(view, app.state.layer(), row)}: ` : "";
    const cut = data.rounding ? say(" (rounded, see below)") : "";
    legend.text(`${say(`${whose}${look.legend}`)}${cut}`);
    const incomplete = view.notes.some((note) => note.startsWith("Integrated gradients do not add up"));
    const line = trust(look, incomplete);
    trusted.text(say(line)).classed("wrong", line.startsWith("Incomplete"));
  }
  /** A new layer or head, to those who do not see it. */
  const announce = () => {
    const look = app.state.look();
    const place = layerName(app.state.layer(), app.state.layers()) || "Explanations";
    if (look) app.say(`${say(place)}, ${say(look.label)}`);
  };

  const everything = () => {
    document.documentElement.toggleAttribute("data-dark", isDark()); // for what CSS cannot ask
    for (const part of parts) part.draw();
    explain();
    twin.draw();
  };
  app.state.on("choice", explain);
  app.state.on("choice", announce);
  app.state.on("focus", explain);
  app.state.on("choice", twin.draw);
  app.state.on("focus", () => image && twin.draw());
  everything();
  keyboard(app, large, first.node(), signal, options.second);
  const again = () => {
    for (const redraw of themed) redraw();
    everything();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, { signal });
  document.addEventListener("themechange", again, { signal });
  // On paper the text is of another size, and the paper is white: threads have to end on its words.
  matchMedia("print").addEventListener("change", again, { signal });
  addEventListener("beforeprint", again, { signal });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) everything(); // a phone's bars come and go, and change the height only
    width = innerWidth;
  }, { signal });
  document.fonts?.ready.then(() => signal.aborted || everything());
  document.documentElement.dataset.ready = "yes";

  function destroy() {
    ending.abort();
    app.tip.remove();
    page.selectAll("*").remove();
  }
  const update = (...next) => {
    destroy();
    return draw(root, ...next, options);
  };
  /** The full shade of one of these layers, for another figure to be drawn on the same scale. */
  const peakAt = (layer, name, active) => {
    const look = layer.looks.find((each) => each.name === name);
    if (!look) return 0;
    return image ? imageCells(view, layer, look, active, true).peak : ownPeak(layer, look);
  };
  const cells = (layer, look) => cellsOf(layer, look);
  const { colours } = data;
  return { update, destroy, image, colours, kinds, state: app.state, redraw: everything, peakAt, cells };
}

/** The row of an image's map that is held; or the one that the answer is read from, if it is one. */
function heldRow(view, layer, row) {
  if (layer.row_grid === null || row !== null) return row ?? 0;
  const read = readers(view, layer);
  return read.length === 1 ? read[0] : null;
}

/** The language of the tokens on a side, for who reads them aloud. */
function languageOf({ state }, { source, target }, axis) {
  const { name } = state.kinds[state.kind];
  if (name.startsWith("encoder")) return source ?? null;
  if (name === "decoder self") return target ?? source ?? null;
  return (axis === "row" ? target : source) ?? null;
}

/** What is lit, in words with exact weights: the strongest five, or one cell. */
function about(app, row, column) {
  const { rows, columns } = app.state.layer();
  const look = app.state.look();
  if (!look?.at) return [];
  if (row !== null && column !== null) {
    return [`${label(rows[row])} → ${label(columns[column])}`, exact(look.at(row, column))];
  }
  const [from, to, weight] =
    row === null
      ? [columns[column], rows, (i) => look.at(i, column)]
      : [rows[row], columns, (i) => look.at(row, i)];
  const order = to.map((_, i) => i).sort((a, b) => Math.abs(weight(b)) - Math.abs(weight(a)));
  const strongest = order.slice(0, 5).map((i) => `${label(to[i])} ${exact(weight(i))}`);
  return [say(`${label(from)} ${row === null ? "is looked at by" : "looks at"}`), ...strongest];
}

/** What else might have stood in an output token's place, as the search found it. */
function alternatives(view, index) {
  const step = view.steps?.[index];
  if (!step) return [];
  const likely = step.candidates.filter(([, chance]) => chance >= 0.001).slice(0, 5);
  const title = say("Other candidates for this position");
  return [title, ...likely.map(([token, chance]) => `${label(token)} ${exact(chance)}`)];
}

/**
 * 1-9 choose layers and Esc lets go, wherever the focus is, unless it needs the key. Arrows walk from
 * the sentence or the image, and from nowhere if it is in view: elsewhere they scroll the page.
 */
function keyboard(app, large, stage, signal, second = false) {
  const walks = (target) => {
    const { top, bottom } = stage.getBoundingClientRect();
    if (second) return stage.contains(target);
    return stage.contains(target) || (target === document.body && top < innerHeight && bottom > 0);
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (second && !event.key.startsWith("Arrow")) return; // the first one's choices are its own
    if (event.key === "Escape") {
      app.tip.hide();
      app.state.pin(null, false);
      return;
    }
    if (event.target.closest?.("textarea, input:not([type=range]), select, details.twin")) return;
    if (/^[1-9]$/.test(event.key)) {
      if (Number(event.key) <= app.state.layers().length) {
        app.state.choose({ layer: Number(event.key) - 1 });
      }
    } else if (event.key.startsWith("Arrow") && walks(event.target)) {
      event.preventDefault();
      large.walk(event.key);
    }
  }, { signal });
}

/** The table twin: the map that is shown, or of an image the row that is lit. */
function twinOf(app, view, image) {
  if (!image) {
    return {
      name: say("attention"),
      columns: () => ["", ...app.state.layer().columns.map(label)],
      rows: () => {
        const { rows, columns } = app.state.layer();
        const look = app.state.look();
        if (!look) return rows.map((token) => [label(token)]);
        return rows.map((token, r) => [label(token), ...columns.map((_, c) => round(look.at(r, c)))]);
      },
    };
  }
  return {
    name: say("attention"),
    columns: () => ["", say(app.state.look()?.label ?? "")],
    rows: () => {
      if (!app.state.look()) return [];
      const cells = imageCells(view, app.state.layer(), app.state.look(), app.state.active());
      return [
        ...cells.elsewhere.map(([extra, value]) => [say(extra), round(value)]),
        ...cells.values.map((value, i) => [cells.name(i), round(value)]),
      ];
    },
  };
}

const round = (value) => Math.round(10_000 * value) / 10_000;

/** At the end of the page: save it, and light or dark. */
function tools(page, app, data, matrices, figure) {
  const bar = page.append("footer").attr("class", "tools");
  const button = (name, act) =>
    bar.append("button").attr("type", "button").text(say(name)).on("click", act);
  const name = data.name || "look";
  button("Save PNG", async () => download(await toPng(figure), `${name}.png`));
  button("Save JSON", () => {
    const blob = new Blob([JSON.stringify(whole(data, matrices))], { type: "application/json" });
    download(blob, `${name}.json`);
  });
  button("Switch theme", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    document.dispatchEvent(new Event("themechange"));
  });
  const keys = "Hover to look, click to hold, arrows to move, Esc to clear; 1-9 choose the layer.";
  bar.append("span").attr("class", "keys").text(say(keys));
}

/** The view as `manyheads look --json` prints it, with the weights that this page has. */
export function whole(data, matrices) {
  const maps = data.view.maps.map(({ heads, ...map }, number) => {
    const width = map.columns.length;
    const rows = (matrix) =>
      map.rows.map((_, r) => Array.from(matrix.subarray(r * width, (r + 1) * width), round));
    const [mean, ...weights] = matrices[number].map(rows);
    return { ...map, mean, weights };
  });
  const notes = [...data.view.notes, ...(data.rounding ? [data.rounding] : [])];
  return { ...data.told, ...data.view, maps, notes };
}
