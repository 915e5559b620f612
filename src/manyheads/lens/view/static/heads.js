// Heads as small multiples on one scale; attention or explanations, and the scrubber of layers.

import { paint, shades } from "./draw.js";
import { say } from "./language.js";
import { layerName, peakFor } from "./model.js";

/** Kinds as buttons, layers as a slider: what explains the answer belongs to no layer. */
export function makeChoices(parent, app) {
  const box = parent.append("div").attr("class", "choices");
  const kinds = box.append("div").attr("class", "kinds").attr("role", "group");
  kinds.attr("aria-label", say("Kind of reading"));
  const scrubber = box.append("label").attr("class", "scrubber");
  const site = scrubber.append("span").attr("class", "site");
  const slider = scrubber.append("input").attr("type", "range").attr("min", 1).attr("step", 1);
  slider.on("input", () => app.state.choose({ layer: Number(slider.node().value) - 1 }));

  function draw() {
    const all = app.state.kinds;
    const several = all.filter((kind) => kind.group === "attention").length > 1;
    kinds.style("display", all.length > 1 ? null : "none");
    kinds.selectAll("span").data(several ? ["Attention"] : [])
      .join((enter) => enter.insert("span", ":first-child")).text(say);
    kinds.selectAll("button").data(all).join("button")
      .attr("type", "button")
      .attr("class", (kind) => kind.group)
      .attr("aria-pressed", (_, i) => String(i === app.state.kind))
      .text((kind) => say(kind.label))
      .on("click", (_, kind) => app.state.choose({ kind: all.indexOf(kind) }));
    const layers = app.state.layers();
    const name = say(layerName(app.state.layer(), layers));
    scrubber.style("display", name ? null : "none");
    site.text(name);
    slider.style("display", layers.length > 1 ? null : "none");
    slider.attr("max", layers.length).attr("aria-label", say("Layer")).attr("aria-valuetext", name);
    slider.style("--steps", layers.length - 1);
    slider.node().value = app.state.number + 1;
  }

  app.state.on("choice", draw);
  return { draw };
}

/** A button for the mean and each head, or for each explanation. */
export function makeHeads(parent, app, cellsOf, aspect) {
  const box = parent.append("div").attr("class", "heads").attr("role", "group");

  function draw() {
    const layer = app.state.layer();
    box.attr("aria-label", say(layer.site ? "Heads" : "Explanations"));
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
      .attr("title", (look) => say(look.legend))
      .style("--aspect", (look) => aspect(layer, look))
      .on("click", (_, look) => app.state.choose({ head: look.name }));
    button.select("span").text((look) => say(look.label));
    light();
  }

  function light() {
    const layer = app.state.layer();
    const shade = shades(app.colours);
    box.selectAll("button").each(function each(look) {
      const cells = cellsOf(layer, look);
      const { peak } = cells;
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
  return {
    rows,
    columns,
    at: look.at,
    peak: peakFor(layer, look),
    key: `${layer.site} ${look.name}`,
    marks: ({ row, column }) =>
      (row === null ? "" : `M0,${row}h${columns}v1h${-columns}z`) +
      (column === null ? "" : `M${column},0h1v${rows}h-1z`),
  };
}
