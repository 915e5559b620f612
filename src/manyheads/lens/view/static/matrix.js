// The whole map: queries down, keys across. Labels where there is room, a hatch over what is masked.

import { exact, label, paint, scaleBar, shades } from "./draw.js";
import { say } from "./language.js";
import { layerName, peakFor } from "./model.js";
const { select } = globalThis.d3;

const LINE = 11; // pixels of a cell below which names would overlap: the sentence has them
const BOLD = 1.12; // how much wider the name of a lit row may become
const LEAST = 2; // pixels of a cell: a map with more than fit scrolls in its box

export function makeMatrix(parent, app) {
  const box = parent.append("div").attr("class", "matrix");
  const scroll = box.append("div").attr("class", "scroll");
  const frame = scroll.append("div").attr("class", "frame");
  const canvas = frame.append("canvas").attr("tabindex", 0).attr("role", "application");
  const marks = frame.append("svg").attr("class", "marks").attr("aria-hidden", "true");
  const names = frame.append("svg").attr("class", "names").attr("aria-hidden", "true");
  const foot = box.append("div");
  let cell = 20;
  let left = 0;
  let top = 0;

  function cellAt(event) {
    const { rows, columns } = app.state.layer();
    const bounds = canvas.node().getBoundingClientRect();
    const row = Math.floor(((event.clientY - bounds.top) / bounds.height) * rows.length);
    const column = Math.floor(((event.clientX - bounds.left) / bounds.width) * columns.length);
    const fits = row >= 0 && column >= 0 && row < rows.length && column < columns.length;
    return fits ? { row, column } : null;
  }

  canvas
    .on("pointermove", (event) => {
      const place = cellAt(event);
      if (!place) return;
      app.state.hover(place);
      app.tip.show(event, app.about(place.row, place.column));
    })
    .on("pointerleave", () => {
      app.tip.hide();
      app.state.hover(null);
    })
    .on("click", (event) => app.state.pin(cellAt(event)))
    .on("keydown", (event) => {
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const { rows, columns } = app.state.layer();
      const { row, column } = app.state.active();
      const walk = (now, by, many) => Math.min(Math.max(now === null ? 0 : now + by, 0), many - 1);
      app.state.pin(
        { row: walk(row, step[0], rows.length), column: walk(column, step[1], columns.length) },
        false,
      );
      const at = app.state.active();
      // Where the map is larger than its box, what is lit comes into view.
      const view = scroll.node();
      view.scrollLeft = Math.min(view.scrollLeft, left + at.column * cell - 40);
      view.scrollLeft = Math.max(view.scrollLeft, left + at.column * cell + 40 - view.clientWidth);
      app.say(app.about(at.row, at.column).join(", "));
      noteCell(at);
    })
    .on("blur", () => app.tip.hide());

  /** What the pointer would be told of a cell, for the keyboard. */
  function noteCell({ row, column }) {
    const bounds = canvas.node().getBoundingClientRect();
    const { rows, columns } = app.state.layer();
    const middle = bounds.left + ((column + 0.5) / columns.length) * bounds.width;
    const bottom = bounds.top + ((row + 1) / rows.length) * bounds.height;
    app.tip.under({ left: middle, right: middle, bottom }, app.about(row, column));
  }

  function draw() {
    const layer = app.state.layer();
    const { rows, columns, causal } = layer;
    const look = app.state.look();
    box.style("display", look && look.at ? null : "none");
    if (!look || !look.at) return;
    const shade = shades(app.colours);
    const peak = peakFor(layer, look);
    paint(canvas.node(), rows.length, columns.length, (r, c) => shade(look.at(r, c) / peak));

    // Sizes: as large as the room allows, labels measured in their own type.
    const room = box.node().clientWidth || 320;
    const named = (room - 70) / columns.length >= LINE;
    const longest = (tokens) => Math.max(...tokens.map((token) => width(label(token))), 8);
    left = named ? Math.min(BOLD * longest(rows) + 10, room / 3) : 12;
    cell = Math.max(Math.min((room - left - 4) / columns.length, 34), LEAST);
    const lying = named && longest(columns) < cell - 4;
    top = named ? (lying ? 20 : Math.min(longest(columns), 110) + 8) : 12;
    const wide = cell * columns.length;
    const high = Math.min(cell, named ? 34 : cell) * rows.length;
    frame.style("width", `${left + wide}px`).style("height", `${top + high}px`);
    canvas
      .style("left", `${left}px`).style("top", `${top}px`)
      .style("width", `${wide}px`).style("height", `${high}px`)
      .attr("aria-label", called(layer, look));

    marks
      .style("left", `${left}px`).style("top", `${top}px`)
      .attr("width", wide).attr("height", high)
      .attr("viewBox", `0 0 ${columns.length} ${rows.length}`)
      .attr("preserveAspectRatio", "none");
    marks.selectAll("*").remove();
    if (cell >= 7) {
      const lines = [
        ...rows.slice(1).map((_, i) => `M0,${i + 1}H${columns.length}`),
        ...columns.slice(1).map((_, i) => `M${i + 1},0V${rows.length}`),
      ];
      marks.append("path").attr("class", "between").attr("d", lines.join(""));
    }
    if (causal) hatch(marks, rows, columns, Math.max(7 / cell, 1));
    marks.append("rect").attr("class", "lit row");
    marks.append("rect").attr("class", "lit column");

    names.attr("width", left + wide).attr("height", top + high);
    names.selectAll("*").remove();
    if (named) {
      names.append("g").attr("class", "rows").selectAll("text").data(rows).join("text")
        .attr("x", left - 6).attr("y", (_, i) => top + (i + 0.5) * (high / rows.length))
        .attr("text-anchor", "end").attr("dominant-baseline", "central")
        .text((token) => fit(label(token), (left - 8) / BOLD));
      names.append("g").attr("class", "columns").selectAll("text").data(columns).join("text")
        .attr("transform", (_, i) => {
          const x = left + (i + 0.5) * cell;
          return lying ? `translate(${x},${top - 6})` : `translate(${x + 4},${top - 5})rotate(-90)`;
        })
        .attr("text-anchor", lying ? "middle" : "start")
        .text((token) => fit(label(token), lying ? cell : top - 6));
    }
    const hatched = causal ? say("  ·  hatched: hidden by the mask") : "";
    scaleBar(foot, look.signed ? -peak : 0, peak, shade, hatched);
    light();
  }

  function called(layer, look) {
    const name = layerName(layer, app.state.layers()) || "Explanations";
    return say(`${name}, ${look.label}: ${layer.rows.length} rows, ${layer.columns.length} columns`);
  }

  function light() {
    const { rows, columns } = app.state.layer();
    const { row, column } = app.state.active();
    marks.select(".row").attr("visibility", row === null ? "hidden" : null)
      .attr("x", 0).attr("y", row ?? 0).attr("width", columns.length).attr("height", 1);
    marks.select(".column").attr("visibility", column === null ? "hidden" : null)
      .attr("x", column ?? 0).attr("y", 0).attr("width", 1).attr("height", rows.length);
    names.selectAll(".rows text").classed("lit", (_, i) => i === row);
    names.selectAll(".columns text").classed("lit", (_, i) => i === column);
  }

  app.state.on("choice", draw);
  app.state.on("focus", light);
  return { draw };
}

/** Strokes over everything above the diagonal, `step` cells apart so that they stay apart. */
function hatch(svg, rows, columns, step) {
  const pattern = svg.append("pattern").attr("id", "hatch").attr("patternUnits", "userSpaceOnUse");
  pattern.attr("width", step).attr("height", step);
  pattern.append("path").attr("class", "stroke")
    .attr("d", `M${0.2 * step},${0.8 * step}L${0.8 * step},${0.2 * step}`);
  const many = columns.length;
  const hidden = rows.slice(0, many - 1).map((_, i) => `M${i + 1},${i}H${many}v1H${i + 1}z`);
  svg.append("path").attr("class", "masked").attr("fill", "url(#hatch)").attr("d", hidden.join(""));
}

const measure = document.createElement("canvas").getContext("2d");

function width(text) {
  measure.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return measure.measureText(text).width;
}

function fit(text, room) {
  if (width(text) <= room) return text;
  let cut = text;
  while (cut.length > 1 && width(`${cut}…`) > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}
