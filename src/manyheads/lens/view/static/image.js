// The image under its patches, and beside it where the chosen patch, or the answer, looks.

import { css, exact, label, number, scaleBar, shades } from "./draw.js";
import { say } from "./language.js";
const { select } = globalThis.d3;

/** What a look gives on a grid of the image, from one row or from those the answer is read from. */
export function imageCells(view, layer, look, active, alone = false) {
  const grid = view.grids[look.cells ? look.grid : layer.column_grid];
  // Overlays have a number a cell; maps have one a token, and first come those that stand nowhere.
  const extra = look.cells ? 0 : grid.extra.length;
  const asked = active.row === null ? readers(view, layer) : [active.row];
  const values = look.cells ?? received(look, asked, extra + grid.rows * grid.columns);
  const laid = values.slice(extra);
  const own = peakOf(layer, look, asked, laid, extra);
  return {
    grid,
    name: cellNames(view, grid),
    rows: grid.rows,
    columns: grid.columns,
    values: laid,
    elsewhere: look.cells ? [] : grid.extra.map((name, i) => [name, values[i]]),
    at: (row, column) => laid[row * grid.columns + column],
    peak: Math.max(own, alone ? 0 : (layer.other?.(look, active) ?? 0)),
    key: `${layer.site} ${look.name} ${look.cells ? "" : asked.length > 1 ? "all" : asked[0]}`,
    marks: () => mark(view, layer, grid, active),
  };
}

/** What each token gives to those that ask, on average. */
const received = (look, asked, many) =>
  Array.from(
    { length: many },
    (_, column) => asked.reduce((sum, row) => sum + look.at(row, column), 0) / asked.length,
  );

/** What the full shade stands for: of all heads of a layer the largest in the row that is shown. */
function peakOf(layer, look, asked, laid, extra) {
  const largest = (values) => Math.max(...values.map(Math.abs), 1e-9);
  if (!look.shared) return largest(laid);
  const row = asked.join();
  if (layer.shown?.row !== row) {
    const rows = layer.looks.map((each) => received(each, asked, laid.length + extra).slice(extra));
    layer.shown = { row, peak: Math.max(...rows.map(largest)) };
  }
  return layer.shown.peak;
}

/** What the cells of a grid are called: the model's own patches by their names, others by place. */
function cellNames(view, grid) {
  const sides = (map) => [[map.row_grid, map.rows], [map.column_grid, map.columns]];
  const own = view.maps.flatMap(sides).find(([number]) => view.grids[number] === grid);
  if (own) return (i) => say(own[1][grid.extra.length + i]);
  return (i) => say(`row ${Math.floor(i / grid.columns) + 1}, column ${(i % grid.columns) + 1}`);
}

/** What of a map is pointed at: patches that ask, or, of a pool, which has but one, those asked. */
const axisOf = (layer) => (layer.row_grid === null ? "column" : "row");

const gridOf = (view, layer) => view.grids[layer.row_grid ?? layer.column_grid];

/** The rows that the answer is read from: those of tokens made for it, or else of all patches. */
export function readers(view, layer) {
  const extra = layer.row_grid === null ? [] : view.grids[layer.row_grid].extra;
  const rows = layer.rows.map((_, i) => i);
  const made = rows.slice(0, extra.length).filter((i) => !extra[i].startsWith("register "));
  return made.length ? made : rows.slice(extra.length);
}

/** Whose looks are shown, in words. */
export function asker(view, layer, row) {
  if (row !== null) return layer.rows[row];
  const found = readers(view, layer).map((i) => layer.rows[i]);
  return found.length > 2 ? "all tokens on average" : found.join(" and "); // in English: say() it
}

/** Outline the lit patch in a thumbnail, whose cells are the keys' grid. */
function mark(view, layer, grid, active) {
  const box = boxOf(view, layer, active);
  if (!box) return "";
  const [first, last] = [grid.boxes[0], grid.boxes.at(-1)];
  const down = grid.rows / (last[0] + last[2] - first[0]);
  const across = grid.columns / (last[1] + last[3] - first[1]);
  const [x, y] = [(box[1] - first[1]) * across, (box[0] - first[0]) * down];
  return `M${x},${y}h${box[3] * across}v${box[2] * down}h${-box[3] * across}z`;
}

function boxOf(view, layer, active) {
  const grid = gridOf(view, layer);
  const place = active[axisOf(layer)];
  if (!grid || place === null) return null;
  return place < grid.extra.length ? null : grid.boxes[place - grid.extra.length];
}

/** The number of the box that a point lies in; -1: in none. */
const boxAt = (boxes, [y, x]) =>
  boxes.findIndex(
    ([top, left, high, wide]) => y >= top && y < top + high && x >= left && x < left + wide,
  );

export function makeImage(parent, app, view, source) {
  const box = parent.append("div").attr("class", "seen");
  const plain = panel("plain", say("The image under its patches"));
  const asked = panel("asked", say("Where it looks"));
  const aside = box.append("div").attr("class", "aside");
  const classes = aside.append("div").attr("class", "classes");
  const tokens = aside.append("div").attr("class", "extra").attr("role", "group");
  tokens.attr("aria-label", say("Tokens without a place"));
  const foot = asked.figure.append("div");

  function panel(name, title) {
    const figure = box.append("div").attr("class", `panel ${name}`);
    const stage = figure.append("div").attr("class", "stage").attr("tabindex", 0);
    stage.attr("role", "application").attr("aria-label", title);
    stage.style("aspect-ratio", `${view.width} / ${view.height}`);
    const canvas = name === "asked" ? stage.append("canvas").attr("aria-hidden", "true") : null;
    if (name === "plain") {
      const image = stage.append("img").attr("src", source).attr("alt", "");
      image.classed("coarse", Math.max(view.width, view.height) <= 128);
    }
    const svg = stage.append("svg").attr("viewBox", `0 0 ${view.width} ${view.height}`);
    svg.attr("preserveAspectRatio", "none").attr("aria-hidden", "true");
    stage
      .on("pointermove", (event) => point(event, stage.node()))
      .on("pointerleave", () => {
        app.tip.hide();
        app.state.hover(null);
      })
      .on("blur", () => app.tip.hide())
      .on("click", (event) => {
        const patch = patchAt(pixelAt(event, stage.node()));
        if (patch) app.state.pin(patch);
      });
    return { figure, stage, canvas, svg };
  }

  function point(event, stage) {
    const pixel = pixelAt(event, stage);
    app.state.hover(patchAt(pixel));
    const lines = told(pixel);
    if (!lines.length) return app.tip.hide();
    return app.tip.show(event, lines);
  }

  /** What the tooltip says: whom the patch there looks at most; or the number there, and the largest. */
  function told(pixel) {
    const layer = app.state.layer();
    const look = app.state.look();
    if (!look) return [];
    const asks = !look.cells && layer.row_grid !== null;
    const { row } = (asks && patchAt(pixel)) || { row: null };
    const cells = imageCells(view, layer, look, { row });
    const here = boxAt(cells.grid.boxes, pixel);
    if (asks ? row === null : here < 0) return [];
    const line = (i) => `${cells.name(i)}: ${exact(cells.values[i])}`;
    const top = cells.values.map((value, i) => [Math.abs(value), i]).sort((a, b) => b[0] - a[0]);
    const lines = asks ? [say(`${layer.rows[row]} looks at`)] : [line(here), say("the largest:")];
    for (const [, i] of top.slice(0, 3)) lines.push(line(i));
    for (const [extra, value] of cells.elsewhere) lines.push(`${say(extra)}: ${exact(value)}`);
    return lines;
  }

  /** Row and column, in pixels of the image. */
  function pixelAt(event, stage) {
    const { left, top, width, height } = stage.getBoundingClientRect();
    const [down, across] = [(event.clientY - top) / height, (event.clientX - left) / width];
    return [down * view.height, across * view.width];
  }

  function patchAt(pixel) {
    const layer = app.state.layer();
    const grid = gridOf(view, layer);
    const found = grid ? boxAt(grid.boxes, pixel) : -1;
    return found < 0 ? null : { [axisOf(layer)]: found + grid.extra.length };
  }

  function draw() {
    const layer = app.state.layer();
    const grid = gridOf(view, layer);
    box.classed("alone", !layer.looks.length);
    const windows = (layer.windows ?? []).flat(2);
    for (const { svg } of [plain, asked]) {
      svg.selectAll("*").remove();
      // Twice each, dark below light, to be seen on any image.
      for (const tone of ["dark", "light"]) {
        if (grid && grid.boxes.length <= 1024 && svg === plain.svg) {
          svg.append("path").attr("class", `patches ${tone}`).attr("d", outlines(grid.boxes));
        }
        svg.append("path").attr("class", `windows ${tone}`).attr("d", outlines(windows));
        svg.append("path").attr("class", `group ${tone}`);
        svg.append("path").attr("class", `patch ${tone}`);
      }
    }
    const bar = classes.selectAll("div").data(view.classes).join((enter) => {
      const made = enter.append("div").attr("class", "class");
      made.append("span").attr("class", "name");
      made.append("span").attr("class", "bar").append("span");
      made.append("span").attr("class", "percent");
      made.filter((found) => found.explained).append("span").attr("class", "explained")
        .text(say("The explanation maps are for this class"));
      return made;
    });
    bar.select(".name").text((found) => label(found.label));
    bar.select(".bar span").style("width", (found) => `${100 * found.probability}%`);
    bar.select(".percent").text((found) => `${(100 * found.probability).toFixed(1)}%`);
    const extra = layer.row_grid === null ? [] : view.grids[layer.row_grid].extra;
    tokens.selectAll("button").data(extra).join("button").attr("type", "button").attr("class", "token")
      .text((name) => say(name))
      .on("pointerenter", (_, name) => app.state.hover({ row: extra.indexOf(name) }))
      .on("pointerleave", () => app.state.hover(null))
      .on("click", (_, name) => app.state.pin({ row: extra.indexOf(name) }));
    light();
  }

  function light() {
    const layer = app.state.layer();
    const look = app.state.look();
    const active = app.state.active();
    const { row } = active;
    if (!look) return;
    const cells = imageCells(view, layer, look, active);
    const shade = shades(app.colours);
    const canvas = asked.canvas.node();
    const bounds = canvas.getBoundingClientRect();
    canvas.width = Math.round(bounds.width * devicePixelRatio) || 1;
    canvas.height = Math.round(bounds.height * devicePixelRatio) || 1;
    const ink = canvas.getContext("2d");
    ink.scale(canvas.width / view.width, canvas.height / view.height);
    cells.grid.boxes.forEach(([top, left, high, wide], i) => {
      ink.fillStyle = css(shade(cells.values[i] / cells.peak));
      ink.fillRect(left, top, wide, high);
    });
    const box = boxOf(view, layer, active);
    const group = box ? groupOf(layer.windows, box) : [];
    for (const { svg } of [plain, asked]) {
      svg.selectAll(".patch").attr("d", box ? outlines([box]) : "");
      svg.selectAll(".group").attr("d", outlines(group));
    }
    const reads = row === null ? readers(view, layer) : [row];
    tokens.selectAll("button").classed("lit", (_, i) => reads.length <= 2 && reads.includes(i));
    const low = look.signed ? -cells.peak : 0;
    const rest = cells.elsewhere.map(([name, value]) => say(`${number(value)} to the ${name}`));
    scaleBar(foot, low, cells.peak, shade, rest.length && !look.cells ? `  ·  ${rest.join(", ")}` : "");
    const whose = asker(view, layer, row);
    const named = look.cells ? look.legend : `Where ${whose} looks: ${look.legend}`;
    asked.stage.attr("aria-label", say(named));
    if (document.activeElement?.classList.contains("stage") && box) {
      const [top, left, high, wide] = box;
      const lines = told([top + high / 2, left + wide / 2]);
      app.say(lines.join(", "));
      if (document.activeElement.matches(":focus-visible")) noteAt(document.activeElement, box, lines);
    }
  }

  /** What the pointer would be told of a patch, for the keyboard. */
  function noteAt(stage, [top, left, high, wide], lines) {
    const bounds = stage.getBoundingClientRect();
    const middle = bounds.left + ((left + wide / 2) / view.width) * bounds.width;
    const bottom = bounds.top + ((top + high) / view.height) * bounds.height;
    app.tip.under({ left: middle, right: middle, bottom }, lines);
  }

  /** Arrows walk over the grid of patches. */
  function walk(key) {
    const layer = app.state.layer();
    const grid = gridOf(view, layer);
    if (!grid) return;
    const extra = grid.extra.length;
    const now = app.state.active()[axisOf(layer)];
    let place = (now ?? extra) - extra;
    if (now === null || now < extra) place = 0;
    else {
      const [y, x] = [Math.floor(place / grid.columns), place % grid.columns];
      const clamp = (value, most) => Math.min(Math.max(value, 0), most - 1);
      const down = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
      const across = { ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0;
      place = clamp(y + down, grid.rows) * grid.columns + clamp(x + across, grid.columns);
    }
    app.state.pin({ [axisOf(layer)]: place + extra }, false);
  }

  app.state.on("choice", draw);
  app.state.on("focus", light);
  return { draw, walk };
}

const outlines = (boxes) =>
  boxes.map(([top, left, high, wide]) => `M${left},${top}h${wide}v${high}h${-wide}z`).join("");

/** The boxes of the window that a patch attends in: the group that its centre lies in. */
function groupOf(windows, [top, left, high, wide]) {
  const [y, x] = [top + high / 2, left + wide / 2];
  const holds = ([t, l, h, w]) => y >= t && y < t + h && x >= l && x < l + w;
  return (windows ?? []).flat().find((group) => group.some(holds)) ?? [];
}
