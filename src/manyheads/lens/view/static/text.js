// The sentence: what is looked at above, what looks below, and threads whose width is the weight.

import { css, exact, inkOn, label, shades, short } from "./draw.js";
import { peakOf } from "./model.js";
const { linkVertical, select } = globalThis.d3;

const THICKEST = 9; // pixels of a thread of weight 1
const IDLE = 0.08; // threads that are drawn while nothing is lit
const LIT = 0.005;
const MOST = 600; // threads at a time

export function makeText(parent, app) {
  const box = parent.append("div").attr("class", "sentence");
  const threads = box.append("svg").attr("class", "threads").attr("aria-hidden", "true");
  const keys = side("keys", "column", "What is looked at");
  const gap = box.append("div").attr("class", "gap");
  const queries = side("queries", "row", "What looks");
  let shown = null; // the tokens that stand there, with what is under them
  let writing = false;

  function side(name, axis, title) {
    const group = box.append("div").attr("class", `tokens ${name}`);
    group.attr("role", "group").attr("aria-label", title);
    group.node().dataset.axis = axis;
    return group;
  }

  /** Write the tokens, those of a word without a gap; each can be hovered, focused and pinned. */
  function write(group, tokens, axis, chances, said) {
    const marked = tokens.some((token) => token.startsWith("▁"));
    const words = [];
    tokens.forEach((token, index) => {
      const starts = !marked || token.startsWith("▁") || !words.length || /^<\/?s>$/.test(token);
      if (starts) words.push([]);
      words.at(-1).push({ token, index });
    });
    const word = group.selectAll("span.word").data(words).join("span").attr("class", "word");
    word.selectAll("*").remove();
    const chip = word.selectAll("button").data((pieces) => pieces).join("button")
      .attr("type", "button")
      .attr("class", (piece) => `token${/^<.*>$/.test(piece.token) ? " special" : ""}`)
      .attr("data-index", (piece) => piece.index)
      .attr("tabindex", (piece) => (piece.index === 0 ? 0 : -1))
      .attr("aria-label", (piece) => spoken(piece, tokens.length, chances, said));
    chip.append("span").attr("class", "text").text((piece) => label(piece.token));
    chip.append("span").attr("class", "weight");
    if (chances) {
      const chance = chip.append("span").attr("class", "chance");
      if (said) chance.append("span").attr("class", "said").text((d) => label(said[d.index]));
      const bar = chance.append("span").attr("class", "bar");
      bar.append("span").style("width", (d) => `${100 * chances[d.index]}%`);
      chance.append("span").attr("class", "percent").text((d) => percent(chances[d.index]));
    }
    chip
      .on("pointerenter", (event, d) => {
        app.state.hover({ [axis]: d.index });
        const others = chances && app.alternatives(d.index);
        if (others?.length) app.tip.show(event, others);
      })
      .on("pointerleave", () => {
        app.tip.hide();
        app.state.hover(null);
      })
      .on("click", (_, d) => app.state.pin({ [axis]: d.index }))
      .on("focus", (event, d) => {
        if (event.target.matches(":focus-visible")) app.state.hover({ [axis]: d.index });
      })
      .on("blur", () => writing || app.state.hover(null)); // what is written over loses the focus too
  }

  function draw() {
    const layer = app.state.layer();
    // Layers of a kind have the same tokens: they stay, and with them the focus.
    const wanted = JSON.stringify([layer.rows, layer.columns, layer.chances, layer.said]);
    if (shown !== wanted) {
      const focused = document.activeElement?.closest(".sentence .token");
      const [group, place] = [focused?.closest(".keys") ? keys : queries, focused?.dataset.index];
      const many = Math.max(layer.rows.length, layer.columns.length);
      const height = Math.max(72, Math.min(150, 64 + 4 * many));
      gap.style("height", `${layer.looks.length ? height : 24}px`);
      writing = true;
      write(keys, layer.columns, "column", null, null);
      write(queries, layer.rows, "row", layer.chances, layer.said);
      writing = false;
      shown = wanted;
      // Focus lights up, which every part has to be drawn for.
      if (focused) queueMicrotask(() => stand(group, Number(place)));
    }
    size();
    light();
  }

  /** Focus a token of a side, if there is one at this place: it is where Tab comes back to. */
  function stand(group, index) {
    const token = group.selectAll("button").filter((d) => d.index === index);
    if (token.empty()) return;
    group.selectAll("button").attr("tabindex", (d) => (d.index === index ? 0 : -1));
    token.node().focus();
  }

  /** As large as fits on one line, down to a size at which two lines are easier to read. */
  function size() {
    box.style("--size", 1).classed("one-line", true);
    const needed = Math.max(...[keys, queries].map((group) => group.node().scrollWidth));
    const share = Math.min(box.node().clientWidth / needed, 1);
    const { rows, columns } = app.state.layer();
    const many = Math.max(rows.length, columns.length);
    box.style("--size", share >= 0.6 ? share : many <= 40 ? 0.75 : 0.55).classed("one-line", false);
    // Gaps of whole pixels do not shrink with the type, and widths are fractions of pixels: a little
    // smaller, until it does stand on one line.
    for (let less = 0.98; share >= 0.6 && less > 0.85 && wrapped(); less -= 0.02) {
      box.style("--size", share * less);
    }
    queries.selectAll("button").classed("narrow", function narrow() {
      const percent = this.querySelector(".percent");
      return percent !== null && percent.scrollWidth > this.offsetWidth + 6;
    });
  }

  /** Light up what the active token looks at, or by what it is looked at. */
  function light() {
    const layer = app.state.layer();
    const look = app.state.look();
    const { row, column } = app.state.active();
    const shade = shades(app.colours);
    const idle = row === null && column === null;
    const weigh = (axis, index) => {
      if (!look || idle) return null;
      if (axis === "column") return row === null ? null : look.at(row, index);
      return column === null ? null : look.at(index, column);
    };
    for (const [group, axis, self] of [[keys, "column", column], [queries, "row", row]]) {
      const weights = group.selectAll("button").data().map((d) => weigh(axis, d.index));
      const peak = Math.max(...weights.map((weight) => Math.abs(weight ?? 0)), 1e-9);
      group.selectAll("button").each(function each(d) {
        const weight = weights[d.index];
        const colour = weight === null ? null : shade(weight / Math.max(peak, 0.05));
        const chip = select(this).classed("lit", d.index === self);
        chip.classed("asked", weight !== null);
        chip.style("background-color", colour && css(colour));
        chip.style("color", colour && inkOn(colour));
        const shows = weight !== null && Math.abs(weight) >= LIT;
        chip.select(".weight").text(shows ? short(weight) : "");
      });
    }
    thread(layer, look, row, column);
    const links = row === null && column === null ? null : app.about(row, column);
    if (links && document.activeElement?.closest(".tokens")) app.say(links.join(", "));
  }

  function thread(layer, look, row, column) {
    const bounds = box.node().getBoundingClientRect();
    threads.attr("width", bounds.width).attr("height", bounds.height);
    const ends = (group, edge) =>
      group.selectAll("button").nodes().map((node) => {
        const found = node.getBoundingClientRect();
        return [(found.left + found.right) / 2 - bounds.left, found[edge] - bounds.top];
      });
    const idle = row === null && column === null;
    const links = [];
    if (look) {
      const least = idle ? idleLeast(layer, look) : LIT;
      const [above, below] = [ends(keys, "bottom"), ends(queries, "top")];
      const few = idle && wrapped();
      layer.rows.forEach((_, r) => {
        if (row !== null && r !== row) return;
        const best = idle ? strongest(layer.columns, (c) => look.at(r, c)) : null;
        layer.columns.forEach((__, c) => {
          const weight = look.at(r, c);
          if (column !== null && row === null && c !== column) return;
          if (c !== best && (few || Math.abs(weight) < least)) return;
          const chosen = column === null || row === null || c === column;
          links.push({ r, c, weight, chosen, source: above[c], target: below[r] });
        });
      });
      links.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).splice(MOST);
    }
    const peak = look?.signed ? peakOf(look, layer.rows.length, layer.columns.length) : 1;
    threads.selectAll("path").data(links, (link) => `${link.r},${link.c}`).join("path")
      .attr("d", linkVertical())
      .attr("stroke-width", (d) => Math.max((THICKEST * Math.abs(d.weight)) / peak, 0.6))
      .attr("class", (d) => (d.weight < 0 ? "against" : null))
      .style("stroke", look?.colour ?? null)
      .style("opacity", (d) => (d.chosen ? 0.25 + 0.6 * Math.min(Math.abs(d.weight) / peak, 1) : 0.12));
  }

  /** Over several lines threads cross words: then each row shows its strongest alone. */
  const wrapped = () => [keys, queries].some((group) => {
    const tops = group.selectAll("span.word").nodes().map((node) => node.offsetTop);
    return Math.max(...tops) > Math.min(...tops) + 4;
  });

  /** In rows that look everywhere alike, threads of 0.08 would be all or none. */
  function idleLeast(layer, look) {
    if (look.signed) return 0.15 * peakOf(look, layer.rows.length, layer.columns.length);
    return Math.max(IDLE, 1.5 / layer.columns.length);
  }

  /** Arrows: along the sentence, and across to the strongest partner. */
  function walk(key) {
    const layer = app.state.layer();
    const look = app.state.look();
    const { row, column } = app.state.active();
    const onKeys = row === null && column !== null;
    const [axis, now, many] = onKeys
      ? ["column", column, layer.columns.length]
      : ["row", row, layer.rows.length];
    let place = { [axis]: 0 };
    if (key === "ArrowLeft" && now !== null) place = { [axis]: Math.max(now - 1, 0) };
    else if (key === "ArrowRight" && now !== null) place = { [axis]: Math.min(now + 1, many - 1) };
    else if (key === "ArrowUp" && row !== null && look) {
      place = { column: strongest(layer.columns, (c) => look.at(row, c)) };
    } else if (key === "ArrowDown" && onKeys && look) {
      place = { row: strongest(layer.rows, (r) => look.at(r, column)) };
    } else if (key === "ArrowDown" || key === "ArrowUp") place = { [axis]: now ?? 0 };
    app.state.pin(place, false);
    stand(place.column === undefined ? queries : keys, place.column ?? place.row);
  }

  app.state.on("choice", draw);
  app.state.on("focus", light);
  return { draw, walk };
}

const percent = (chance) => `${Math.round(100 * chance)}%`;

function spoken({ token, index }, many, chances, said) {
  const name = `${label(token)}, token ${index + 1} of ${many}`;
  const answer = said ? `, answer ${label(said[index])}` : "";
  return chances ? `${name}${answer}, probability ${exact(chances[index])}` : name;
}

function strongest(tokens, weight) {
  const size = (i) => Math.abs(weight(i));
  return tokens.reduce((best, _, i) => (size(i) > size(best) ? i : best), 0);
}
