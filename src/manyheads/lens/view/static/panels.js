// Everything that is no attention map: heats, lines, bars, scatters and tables, as lens/panels.py.

import { label, number, paint, scaleBar, shades } from "./draw.js";
import { say } from "./language.js";
import { makeTable } from "./table.js";
const { line, area, ticks, extent, select } = globalThis.d3;

const [WIDEST, HIGH] = [560, 260]; // of a chart
const NAME = 12; // pixels of a name beside a heat: its type
const EDGE = { left: 52, right: 14, top: 12, bottom: 40 };

/** A drawer for each group, drawn when it is first opened; `open` says which are open at first. */
export function makePanels(parent, app, figures, open) {
  for (const [name, members] of grouped(figures)) {
    const drawer = parent.append("details").attr("class", "drawer");
    const summary = drawer.append("summary");
    summary.append("h2").text(say(name || "more"));
    summary.append("span").text(members.map((found) => say(found.title)).join("  ·  "));
    const row = drawer.append("div").attr("class", "row");
    let drawn = false;
    const draw = () => {
      if (drawn || !drawer.property("open")) return;
      drawn = true;
      // All places before what stands in them: each is measured beside its neighbours.
      const place = row.selectAll("figure").data(members).join("figure").attr("class", "panel");
      place.each(function each(found) {
        panel(select(this), app, found);
      });
    };
    drawer.on("toggle", draw).property("open", open.includes(name));
    draw();
  }
}

/** Neighbours of the same group stand together. */
function grouped(figures) {
  const groups = [];
  for (const found of figures) {
    if (groups.at(-1)?.[0] !== (found.group ?? "")) groups.push([found.group ?? "", []]);
    groups.at(-1)[1].push(found);
  }
  return groups;
}

const MAKERS = { heat, lines, bars, scatter, table: () => null };

function panel(figure, app, found) {
  figure.attr("class", `panel of-${found.kind}`);
  figure.append("h3").text(say(found.title));
  const stage = figure.append("div").attr("class", "chart");
  const draw = MAKERS[found.kind]?.(stage, app, found);
  const twin = tableOf(found);
  if (found.kind === "table") makeTable(stage, { ...twin, name: say(found.title), open: true });
  figure.append("figcaption").text(say(found.legend ?? ""));
  if (found.kind !== "table") makeTable(figure, { ...twin, name: say(found.title) });
  if (!draw) return;
  draw();
  app.onTheme(draw);
}

function heat(stage, app, found) {
  const [rows, columns] = [found.values.length, found.values[0]?.length ?? 0];
  const known = found.values.flat().filter((value) => value !== null);
  const [least, most] = found.scale ?? extent(known);
  const bound = Math.max(Math.abs(least), Math.abs(most)) || 1;
  const frame = stage.append("div").attr("class", "heat");
  const named = (names, many) => names?.length && many <= 40;
  const [rowNames, columnNames] = [found.rows ?? [], found.columns ?? []]
    .map((all) => all.map(structural));
  const showRows = named(rowNames, rows);
  const showColumns = named(columnNames, columns);
  const canvas = frame.append("canvas").attr("role", "img").attr("aria-label", say(found.title));
  // Cells as large as they may be without the whole growing over its column.
  const room = roomOf(stage);
  const cell = Math.max(Math.min(room / columns, 300 / rows, 26), 1);
  const wide = Math.min(Math.max(cell, 2) * columns, room);
  const square = rows > 24 || columns > 24 ? wide * (rows / columns) : cell * rows;
  const high = Math.min(Math.max(square, 12 * Math.min(rows, 6)), 420);
  frame.style("--wide", `${wide}px`).style("--ratio", `${wide} / ${high}`);
  if (showRows) names(frame.append("div").attr("class", "row-names"), rowNames);
  if (showColumns) names(frame.append("div").attr("class", "column-names"), columnNames);
  const thin = () => {
    const { clientWidth, clientHeight } = canvas.node();
    everyFew(frame.selectAll(".row-names span"), clientHeight / rows);
    everyFew(frame.selectAll(".column-names span"), clientWidth / columns);
  };
  new ResizeObserver(thin).observe(canvas.node());
  if (!showColumns && found.x) frame.append("div").attr("class", "axis-x").text(say(found.x));
  if (!showRows && found.y) frame.append("div").attr("class", "axis-y").text(say(found.y));
  if (found.tile) tiles(frame, found.tile, rows, columns);
  const foot = stage.append("div");
  canvas.on("pointermove", (event) => {
    const bounds = canvas.node().getBoundingClientRect();
    const row = Math.floor(((event.clientY - bounds.top) / bounds.height) * rows);
    const column = Math.floor(((event.clientX - bounds.left) / bounds.width) * columns);
    if (row < 0 || column < 0 || row >= rows || column >= columns) return;
    const name = (all, i, axis) => (all.length ? label(all[i]) : `${say(axis)} ${i + 1}`);
    app.tip.show(event, [
      `${name(rowNames, row, found.y ?? "row")} · ${name(columnNames, column, found.x ?? "column")}`,
      number(found.values[row][column]),
    ]);
  });
  canvas.on("pointerleave", () => app.tip.hide());
  return () => {
    const shade = shades(app.colours);
    const share = (value) => (found.signed ? value / bound : (value - least) / (most - least || 1));
    paint(canvas.node(), rows, columns, (row, column) => {
      const value = found.values[row][column];
      return value === null ? null : shade(share(value));
    });
    foot.selectAll("*").remove();
    if (found.signed) scaleBar(foot, -bound, bound, shade);
    else {
      scaleBar(foot, 0, 1, shade);
      const ends = foot.selectAll(".scale > span");
      ends.data([least, most]).text((value) => number(value));
    }
  };
}

/** Names of layers have a translation; tokens stay as they are. */
const STRUCTURAL = /^(embedded|((encoder|decoder|pool) )?layer \d+( \w+)?|patch \d+,\d+)$/;
const structural = (name) => (STRUCTURAL.test(name) ? say(name) : name);

/** Thin gaps between the small maps of a mosaic. */
function tiles(frame, [down, across], rows, columns) {
  const svg = frame.append("svg").attr("class", "tiles").attr("aria-hidden", "true");
  svg.attr("viewBox", `0 0 ${columns} ${rows}`).attr("preserveAspectRatio", "none");
  const lines = [];
  for (let row = down; row < rows; row += down) lines.push(`M0,${row}H${columns}`);
  for (let column = across; column < columns; column += across) lines.push(`M${column},0V${rows}`);
  svg.append("path").attr("d", lines.join(""));
}

function names(box, texts) {
  box.selectAll("span").data(texts).join("span").text((text) => label(text));
}

/** Where cells are lower than type is high, every second, third, ... name stands there. */
function everyFew(spans, cell) {
  const step = Math.ceil(NAME / cell);
  spans.style("visibility", (_, i) => (i % step ? "hidden" : null));
}

/** Okabe & Ito's colours, over and over. */
const identity = (app, i) => app.colours.identity[i % app.colours.identity.length];

/** An axis: where numbers stand between two ends, and at which of them a tick is written. */
function axis(values, from, to, log = false) {
  const kept = values.filter((value) => value !== null && (!log || value > 0));
  let [low, high] = extent(kept);
  if (low === undefined) [low, high] = [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const curve = log ? Math.log : (value) => value;
  const scale = (value) =>
    from + ((curve(value) - curve(low)) / (curve(high) - curve(low))) * (to - from);
  const powers = () =>
    ticks(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)), 5)
      .filter(Number.isInteger).map((power) => 10 ** power);
  let marks = log ? powers() : ticks(low, high, 5);
  if (kept.every(Number.isInteger)) marks = marks.filter(Number.isInteger); // half a layer is none
  if (log && marks.length < 2) marks = [low, high];
  return { scale, marks };
}

/** A chart is as wide as its column when it is drawn, so that its type keeps its size. */
const roomOf = (stage) => Math.min(Math.max(stage.node().clientWidth, 240), WIDEST);

function axes(svg, x, y, found, wide) {
  const [left, bottom] = [EDGE.left, HIGH - EDGE.bottom];
  const lines = svg.append("g").attr("class", "axes");
  for (const mark of y.marks) {
    lines.append("path").attr("d", `M${left},${y.scale(mark)}H${wide - EDGE.right}`);
    lines.append("text").attr("x", left - 6).attr("y", y.scale(mark)).attr("text-anchor", "end")
      .attr("dominant-baseline", "central").text(number(mark));
  }
  for (const mark of x?.marks ?? []) {
    lines.append("text").attr("x", x.scale(mark)).attr("y", bottom + 16)
      .attr("text-anchor", "middle").text(number(mark));
  }
  lines.append("text").attr("class", "title").attr("x", (left + wide - EDGE.right) / 2)
    .attr("y", HIGH - 6).attr("text-anchor", "middle").text(say(found.x ?? ""));
  lines.append("text").attr("class", "title").attr("text-anchor", "middle")
    .attr("transform", `translate(12,${(EDGE.top + bottom) / 2})rotate(-90)`).text(say(found.y ?? ""));
}

function chart(stage, found, wide, high) {
  const svg = stage.append("svg").attr("class", "plot").attr("viewBox", `0 0 ${wide} ${high}`);
  return svg.attr("role", "img").attr("aria-label", say(found.title));
}

function key(stage, app, names) {
  if (names.length < 2) return;
  const list = stage.append("div").attr("class", "key");
  const entry = list.selectAll("span").data(names).join("span");
  entry.append("i").style("background", (_, i) => identity(app, i));
  entry.append("b").text((name) => say(name));
}

const DASHES = [null, "6 3", "2 3"]; // when colours come round again

function lines(stage, app, found) {
  const wide = roomOf(stage);
  const svg = chart(stage, found, wide, HIGH);
  const every = (what) => found.curves.flatMap((curve) => curve[what] ?? []);
  const x = axis(every("x"), EDGE.left, wide - EDGE.right, found.log_x);
  const heights = [...every("y"), ...every("low"), ...every("high")];
  const y = axis(heights, HIGH - EDGE.bottom, EDGE.top, found.log_y);
  axes(svg, x, y, found, wide);
  found.curves.forEach((curve, number_) => {
    const colour = identity(app, number_);
    const there = (_, i) => curve.y[i] !== null && curve.y[i] !== undefined;
    const across = (_, i) => x.scale(curve.x[i]);
    if (curve.low?.length) {
      const band = area().defined((_, i) => curve.low[i] !== null && curve.high[i] !== null)
        .x(across).y0((_, i) => y.scale(curve.low[i])).y1((_, i) => y.scale(curve.high[i]));
      svg.append("path").attr("class", "band").attr("fill", colour).attr("d", band(curve.x));
      // A point between gaps has no band, so each has its interval as a line too.
      const bars = curve.x.map((at, i) =>
        curve.low[i] === null || curve.high[i] === null
          ? ""
          : `M${x.scale(at)},${y.scale(curve.low[i])}V${y.scale(curve.high[i])}`,
      );
      svg.append("path").attr("class", "interval").attr("stroke", colour).attr("d", bars.join(""));
    }
    const path = line().defined(there).x(across).y((_, i) => y.scale(curve.y[i]));
    svg.append("path").attr("class", "curve").attr("stroke", colour).attr("d", path(curve.x))
      .attr("stroke-dasharray", DASHES[Math.floor(number_ / app.colours.identity.length) % DASHES.length]);
    svg.append("g").selectAll("circle").data(curve.x.map((_, i) => i).filter((i) => there(0, i)))
      .join("circle").attr("r", 3).attr("fill", colour)
      .attr("cx", (i) => x.scale(curve.x[i])).attr("cy", (i) => y.scale(curve.y[i]))
      .on("pointerenter", (event, i) =>
        app.tip.show(event, [say(curve.name), `${number(curve.x[i])}: ${number(curve.y[i])}`]))
      .on("pointerleave", () => app.tip.hide());
  });
  key(stage, app, found.curves.map((curve) => curve.name));
  return null;
}

function bars(stage, app, found) {
  const most = Math.max(...found.values.map((value) => value.high ?? value.mean), 1e-9);
  const list = stage.append("div").attr("class", "bars");
  found.names.forEach((name, i) => {
    const { mean, low, high } = found.values[i];
    const row = list.append("div").attr("class", "class");
    row.append("span").attr("class", "name").text(label(name));
    row.append("span").attr("class", "bar").append("span").style("width", `${(100 * mean) / most}%`);
    const interval = low === null || low === undefined ? "" : ` (${number(low)}–${number(high)})`;
    row.append("span").attr("class", "percent").text(`${number(mean)}${interval}`);
  });
  stage.append("div").attr("class", "axis-x").text(say(found.y ?? ""));
  return null;
}

function scatter(stage, app, found) {
  const [wide, tallest, isNamed] = [roomOf(stage), 420, found.points.length <= 80];
  // Both axes in the same unit: what is near in the drawing is near.
  const [left, right] = extent(found.points, (point) => point[0]);
  const [low, top] = extent(found.points, (point) => point[1]);
  const unit = Math.min((wide - 110) / (right - left || 1), (tallest - 50) / (top - low || 1));
  const high = Math.max((top - low) * unit + 50, 120);
  const svg = chart(stage, found, wide, high);
  svg.append("rect").attr("class", "ground").attr("width", wide).attr("height", high);
  const place = ([x, y]) => [
    wide / 2 + (x - (left + right) / 2) * unit,
    high / 2 - (y - (low + top) / 2) * unit,
  ];
  const groups = [...new Set(found.groups ?? [])];
  const colour = (i) =>
    identity(app, groups.length ? groups.indexOf(found.groups[i]) : 0);
  const dot = svg.selectAll("g").data(found.points).join("g")
    .attr("transform", (point) => `translate(${place(point)})`)
    .on("pointerenter", (event, point) => {
      const i = found.points.indexOf(point);
      app.tip.show(event, [label(found.names[i]), point.map(number).join(", ")]);
    })
    .on("pointerleave", () => app.tip.hide());
  dot.append("circle").attr("r", 3.5).attr("fill", (_, i) => colour(i));
  if (isNamed) dot.append("text").attr("x", 6).attr("y", 4).text((_, i) => label(found.names[i]));
  key(stage, app, groups);
  return null;
}

/** The same numbers as a table. */
function tableOf(found) {
  const named = (names, i) => (names?.length ? label(names[i]) : String(i + 1));
  if (found.kind === "table") {
    return { columns: found.columns.map((name) => say(name)), rows: found.rows.map(cells) };
  }
  if (found.kind === "heat") {
    const columns = found.values[0]?.map((_, i) => named(found.columns, i)) ?? [];
    return {
      columns: ["", ...columns],
      rows: found.values.map((row, i) => [named(found.rows, i), ...row]),
    };
  }
  if (found.kind === "lines") {
    const rows = found.curves.flatMap((curve) =>
      curve.x.map((x, i) => [say(curve.name), x, curve.y[i], curve.low?.[i], curve.high?.[i]]),
    );
    return withIntervals(["", say(found.x), say(found.y)], rows);
  }
  if (found.kind === "bars") {
    const rows = found.names.map((name, i) => {
      const { mean, low, high } = found.values[i];
      return [label(name), mean, low, high];
    });
    return withIntervals(["", say(found.y)], rows);
  }
  return {
    columns: ["", say(found.x), say(found.y), say("group")],
    rows: found.points.map(([x, y], i) => [label(found.names[i]), x, y, found.groups?.[i] ?? ""]),
  };
}

/** Rows that end in an interval, if any of them has one. */
function withIntervals(columns, rows) {
  const known = rows.some((row) => (row.at(-2) ?? row.at(-1) ?? null) !== null);
  if (known) return { columns: [...columns, say("low"), say("high")], rows };
  return { columns, rows: rows.map((row) => row.slice(0, -2)) };
}

const cells = (row) => row.map((cell) => (typeof cell === "object" && cell ? cell.mean : cell));

/** Gates of recurrent layers as heats: tokens across, a row a gate. */
export function gatePanels(gates) {
  return gates.map((found) => ({
    kind: "heat",
    group: "gates",
    title: found.site,
    legend: found.legend,
    x: "",
    y: "",
    rows: found.gates,
    columns: found.tokens,
    values: found.gates.map((_, gate) => found.mean.map((token) => token[gate])),
    scale: [0, 1],
  }));
}
