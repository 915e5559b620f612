// Heads as small multiples on one scale; kinds of attention, and the scrubber of layers.

import { paint, shades } from "./draw.js";
import { peakOf } from "./model.js";

/** Kinds as buttons, layers as a slider. */
export function makeChoices(parent, app) {
  const box = parent.append("div").attr("class", "choices");
  const kinds = box.append("div").attr("class", "kinds").attr("role", "group");
  kinds.attr("aria-label", "Kind of attention");
  const scrubber = box.append("label").attr("class", "scrubber");
  const site = scrubber.append("span").attr("class", "site");
  const slider = scrubber.append("input").attr("type", "range").attr("min", 1).attr("step", 1);
  slider.on("input", () => app.state.choose({ layer: Number(slider.node().value) - 1 }));

  function draw() {
    const all = app.state.kinds;
    kinds.style("display", all.length > 1 ? null : "none");
    kinds.selectAll("button").data(all).join("button")
      .attr("type", "button")
      .attr("aria-pressed", (_, i) => String(i === app.state.kind))
      .text((kind) => kind.name)
      .on("click", (_, kind) => app.state.choose({ kind: all.indexOf(kind) }));
    const layers = app.state.layers();
    const name = app.state.layer().site;
    scrubber.style("display", name ? null : "none");
    site.text(name);
    slider.style("display", layers.length > 1 ? null : "none");
    slider.attr("max", layers.length).attr("aria-label", "Layer").attr("aria-valuetext", name);
    slider.style("--steps", layers.length - 1);
    slider.node().value = app.state.number + 1;
  }

  app.state.on("choice", draw);
  return { draw };
}

/** A button for the mean, each head and each overlay. */
export function makeHeads(parent, app, cellsOf, aspect) {
  const box = parent.append("div").attr("class", "heads").attr("role", "group");
  box.attr("aria-label", "Heads");

  function draw() {
    const layer = app.state.layer();
    box.style("display", layer.looks.length > 1 ? null : "none");
    const chosen = app.state.look();
    const button = box.selectAll("button").data(layer.looks).join((enter) => {
      const made = enter.append("button").attr("type", "button");
      made.append("canvas").attr("aria-hidden", "true");
      made.append("svg").attr("aria-hidden", "true").append("path").attr("class", "lit");
      made.append("span");
      return made;
    });
    button
      .attr("aria-pressed", (look) => String(look === chosen))
      .attr("title", (look) => look.legend)
      .style("--mark", (look) => look.colour ?? "transparent")
      .style("--aspect", (look) => aspect(layer, look))
      .on("click", (_, look) => app.state.choose({ head: look.name }));
    button.select("span").text((look) => look.label);
    light();
  }

  function light() {
    const layer = app.state.layer();
    const shade = shades(app.colours);
    const found = layer.looks.map((look) => cellsOf(layer, look));
    const heads = found.filter((cells, i) => !layer.looks[i].signed && !layer.looks[i].cells);
    const shared = Math.max(...heads.map((cells) => cells.peak), 1e-9);
    box.selectAll("button").each(function each(look, i) {
      const cells = found[i];
      const peak = look.signed || look.cells ? cells.peak : shared;
      const canvas = this.querySelector("canvas");
      const key = `${app.paintKey()} ${cells.key} ${peak}`;
      if (canvas.dataset.key !== key) {
        paint(canvas, cells.rows, cells.columns, (r, c) => shade(cells.at(r, c) / peak));
        canvas.dataset.key = key;
      }
      const svg = this.querySelector("svg");
      svg.setAttribute("viewBox", `0 0 ${cells.columns} ${cells.rows}`);
      svg.setAttribute("preserveAspectRatio", "none");
      svg.firstChild.setAttribute("d", cells.marks(app.state.active()));
    });
  }

  app.state.on("choice", draw);
  app.state.on("focus", light);
  return { draw };
}

/** The cells of a matrix, with the lit row and column as marks. */
export function matrixCells(layer, look) {
  const [rows, columns] = [layer.rows.length, layer.columns.length];
  look.peak ??= peakOf(look, rows, columns);
  return {
    rows,
    columns,
    at: look.at,
    peak: look.peak,
    key: `${layer.site} ${look.name}`,
    marks: ({ row, column }) =>
      (row === null ? "" : `M0,${row}h${columns}v1h${-columns}z`) +
      (column === null ? "" : `M${column},0h1v${rows}h-1z`),
  };
}
