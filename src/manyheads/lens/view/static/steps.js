// How one head came by one row: q.k, scale, mask, softmax and values, with the numbers of the model.
//
// The page asks for them when a head is chosen and a row held; a file of `manyheads look` has them not.

import { css, inkOn, label, number, paint, shades } from "./draw.js";
import { say } from "./language.js";
import { makeTable } from "./table.js";

const MOST = 24; // keys in their order; of more the strongest come first

/** A drawer below the heads; `ask({ site, head, row }, signal)` gives the steps, `rowOf` the held row. */
export function makeSteps(parent, app, ask, rowOf, signal) {
  const drawer = parent.append("details").attr("class", "drawer steps").property("open", true);
  drawer.append("summary").append("h2").text(say("How this head computed it"));
  const body = drawer.append("div").attr("class", "computed");
  let asking = null;
  let shown = "";
  let last = null; // what was asked for, and its steps: another theme only paints them again

  /** What is asked for: null where no head, or no row, is chosen. */
  function wanted() {
    const look = app.state.look();
    const row = rowOf(app.state.pinned);
    if (!look?.shared || row === null) return null;
    const layer = app.state.layer();
    if (look.name === "mean" && layer.looks.length > 1) return null;
    return { site: layer.site, head: look.name === "mean" ? 1 : Number(look.name), row: row + 1 };
  }

  async function draw() {
    const look = app.state.look();
    drawer.style("display", look?.shared ? null : "none");
    const given = wanted();
    const key = JSON.stringify([given, look?.name === "mean"]);
    if (`${key} ${app.paintKey()}` === shown) return;
    shown = `${key} ${app.paintKey()}`;
    asking?.abort();
    if (!given) {
      const single = look?.name !== "mean" || app.state.layer().looks.length === 1;
      tell(
        single
          ? "Hold a word or a patch to see the numbers of its row."
          : "Choose a single head to see how its weights are computed.",
      );
      return;
    }
    if (last?.[0] === key) return write(last[1]);
    const mine = new AbortController();
    asking = mine;
    body.classed("old", true);
    let steps = null;
    try {
      steps = await ask(given, mine.signal);
    } catch (error) {
      if (asking === mine && error.name !== "AbortError") tell(error.message || "No answer");
    }
    if (!steps || asking !== mine || signal.aborted) return;
    last = [key, steps];
    write(steps);
  }

  function tell(words) {
    body.classed("old", false).selectAll("*").remove();
    body.append("p").text(say(words));
  }

  function write(steps) {
    const { rows, columns } = app.state.layer();
    body.classed("old", false).selectAll("*").remove();
    const root = Math.sqrt(steps.size);
    const lead = body.append("p");
    lead.append("b").text(`${say("query")}: ${say(label(rows[steps.row - 1]))}. `);
    lead.append("span").text(
      say(
        "1. Each key is compared with the query by a dot product. " +
          "2. The score is divided by √{size} = {root}. 3. What the mask hides gets no weight. " +
          "4. The softmax turns scores into weights that sum to 1. " +
          "5. The values are mixed by these weights.",
        { size: steps.size, root: number(root) },
      ),
    );
    const masked = steps.allowed?.includes(false);
    const order = steps.keys.map((_, i) => i);
    if (order.length > MOST) order.sort((a, b) => steps.weights[b] - steps.weights[a]);
    const cells = (i) => [
      say(label(columns[steps.keys[i]])),
      steps.products[i],
      steps.products[i] / root,
      ...(steps.bias ? [steps.bias[i]] : []),
      ...(masked ? [say(steps.allowed[i] ? "seen" : "hidden")] : []),
      steps.weights[i],
      steps.lengths[i],
      steps.shares[i],
    ];
    const names = [
      "key",
      "q·k",
      `÷ √${steps.size}`,
      ...(steps.bias ? ["added"] : []),
      ...(masked ? ["mask"] : []),
      "softmax",
      "|v|",
      "share of the output",
    ];
    const shade = shades(app.colours);
    const peak = app.scaleOf(app.state.layer(), app.state.look());
    const colourWeights = (table) =>
      table.selectAll("tbody tr").each(function each(_, place) {
        const colour = shade((steps.weights[order[place]] ?? 0) / peak);
        const cell = this.children[names.indexOf("softmax")];
        cell.style.backgroundColor = css(colour);
        cell.style.color = inkOn(colour);
      });
    makeTable(body, {
      name: say("How this head computed it"),
      columns: names.map((name) => say(name)),
      rows: order.map(cells),
      open: true,
      drawn: colourWeights,
    });
    vectors(steps);
  }

  /** The vectors as strips, and as a table. */
  function vectors(steps) {
    const strips = [
      ["query vector q", steps.query],
      ["key vector k of the strongest", steps.strongest],
      ["output: the values mixed by the weights", steps.output],
    ];
    const shade = shades(app.colours);
    for (const [name, values] of strips) {
      const figure = body.append("figure").attr("class", "strip");
      figure.append("figcaption").text(say(name));
      const canvas = figure.append("canvas").attr("role", "img").attr("aria-label", say(name));
      const most = Math.max(...values.map(Math.abs), 1e-9);
      paint(canvas.node(), 1, values.length, (_, i) => shade(values[i] / most));
    }
    const long = Math.max(...strips.map(([, values]) => values.length));
    makeTable(body, {
      name: strips.map(([name]) => say(name)).join(", "),
      columns: [say("dimension"), ...strips.map(([name]) => say(name))],
      rows: Array.from({ length: long }, (_, i) => [i + 1, ...strips.map(([, all]) => all[i])]),
    });
  }

  app.state.on("choice", draw);
  app.state.on("focus", draw);
  signal.addEventListener("abort", () => asking?.abort());
  return { draw };
}
