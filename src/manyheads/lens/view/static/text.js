// The sentence: what is looked at above, what looks below, and threads whose width is the weight.

import { css, exact, inkOn, label, number, shades, short } from "./draw.js";
import { say } from "./language.js";
import { peakFor } from "./model.js";
const { linkVertical, select } = globalThis.d3;

const THICKEST = 9; // pixels of a thread of weight 1
const IDLE = 0.08; // threads that are drawn while nothing is lit
const LIT = 0.005;
const MOST = 600; // threads at a time
const LANE = 20; // pixels beside wrapped rows, in which threads pass them
const BELOW = 21; // pixels from a word to the thread beside its row: past the weight that is written there

export function makeText(parent, app) {
  const box = parent.append("div").attr("class", "sentence");
  const threads = box.append("svg").attr("class", "threads").attr("aria-hidden", "true");
  const keys = side("keys", "column", say("What is looked at"));
  const gap = box.append("div").attr("class", "gap");
  const queries = side("queries", "row", say("What looks"));
  const key = parent.append("p").attr("class", "widths");
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
      .attr("lang", app.languageOf(axis));
    chip.append("span").attr("class", "text").text((piece) => label(piece.token));
    chip.append("span").attr("class", "unseen")
      .text((piece) => spoken(piece, tokens.length, chances, said));
    chip.append("span").attr("class", "weight");
    if (chances) {
      const chance = chip.append("span").attr("class", "chance").attr("aria-hidden", "true");
      if (said) chance.append("span").attr("class", "said").text((d) => label(said[d.index]));
      const bar = chance.append("span").attr("class", "bar");
      bar.append("span").style("width", (d) => `${100 * chances[d.index]}%`);
      chance.append("span").attr("class", "percent").text((d) => percent(chances[d.index]));
    }
    chip
      .on("pointerenter", (event, d) => {
        app.state.hover({ [axis]: d.index });
        const others = chances && app.alternatives(d.index);
        if (others?.length && event.pointerType !== "touch") app.tip.show(event, others);
      })
      .on("pointerleave", () => {
        app.tip.hide();
        app.state.hover(null);
      })
      .on("click", (event, d) => {
        app.state.pin({ [axis]: d.index });
        if (event.pointerType === "touch") note(event.currentTarget, axis, d.index);
      })
      .on("focus", (event, d) => {
        if (!event.target.matches(":focus-visible")) return;
        app.state.hover({ [axis]: d.index });
        note(event.target, axis, d.index);
      })
      .on("blur", () => {
        app.tip.hide();
        if (!writing) app.state.hover(null); // what is written over loses the focus too
      });
  }

  /** What the pointer would be told, for the keyboard and for fingers: weights and candidates. */
  function note(token, axis, index) {
    const { row, column } = { row: null, column: null, [axis]: index };
    const lit = app.state.active()[axis] === index;
    const others = axis === "row" ? app.alternatives(index) : [];
    app.tip.under(token, lit ? [...app.about(row, column), ...others] : []);
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
    box.style("--size", 1).classed("wrapped", false).classed("one-line", true);
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
    box.classed("wrapped", wrapped());
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
      group.selectAll("button").each(function each(d) {
        const weight = weights[d.index];
        const colour = weight === null ? null : shade(weight / peakFor(layer, look));
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
    const least = look && idle ? idleLeast(layer, look) : LIT;
    const apart = wrapped();
    if (look && !(idle && apart)) {
      const [above, below] = [ends(keys, "bottom"), ends(queries, "top")];
      layer.rows.forEach((_, r) => {
        if (row !== null && r !== row) return;
        const best = idle ? strongest(layer.columns, (c) => look.at(r, c)) : null;
        layer.columns.forEach((__, c) => {
          const weight = look.at(r, c);
          if (column !== null && row === null && c !== column) return;
          if (c !== best && Math.abs(weight) < least) return;
          const chosen = column === null || row === null || c === column;
          links.push({ r, c, weight, chosen, source: above[c], target: below[r] });
        });
      });
      links.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).splice(MOST);
    }
    const wide = look?.signed ? peakFor(layer, look) : 1;
    const shade = shades(app.colours);
    const thick = (link) => Math.max((THICKEST * Math.abs(link.weight)) / wide, 0.6);
    if (apart) around(links, bounds, thick);
    const straight = linkVertical();
    // The strongest lie above the others.
    threads.selectAll("path").data(links.reverse(), (link) => `${link.r},${link.c}`).join("path")
      .order()
      .attr("d", (link) => link.path ?? straight(link))
      .attr("stroke-width", thick)
      .style("stroke", (d) => css(shade(d.weight / peakFor(layer, look))))
      .style("opacity", (d) => (d.chosen ? null : 0.12));
    widths(layer, look, wide, { idle, none: idle && apart, least });
  }

  /** What the width of a thread stands for, and which threads are drawn. */
  function widths(layer, look, wide, { idle, none, least }) {
    key.style("display", look ? null : "none");
    if (!look) return;
    const steps = [1, 0.5, 0.1].map((share) => share * wide);
    const shown = none
      ? say("the words take several lines: choose one to see its threads")
      : say(
          idle
            ? "at rest, weights of {least} and more, and the strongest of each word"
            : "with a word chosen, weights of {least} and more",
          { least: number(least) },
        );
    const wanted = JSON.stringify([steps, shown, app.paintKey(), look.name, layer.site]);
    if (key.node().dataset.drawn === wanted) return;
    key.node().dataset.drawn = wanted;
    key.selectAll("*").remove();
    key.append("span").text(`${say("Threads")}: ${say("weight")}`);
    const shade = shades(app.colours);
    for (const weight of steps) {
      const step = key.append("span").attr("class", "step");
      const line = step.append("svg").attr("width", 26).attr("height", 12).attr("aria-hidden", "true");
      line.append("path").attr("d", "M1,6H25")
        .attr("stroke-width", Math.max((THICKEST * weight) / wide, 0.6))
        .style("stroke", css(shade(weight / peakFor(layer, look))));
      step.append("span").text(number(weight));
    }
    key.append("span").text(shown);
  }

  /** Words take several lines: threads between rows that are not neighbours would cross others. */
  const wrapped = () => [keys, queries].some((group) => {
    const tops = group.selectAll("span.word").nodes().map((node) => node.offsetTop);
    return Math.max(...tops) > Math.min(...tops) + 4;
  });

  /**
   * Lead threads around rows of words: through the gap at their word, along a lane beside the rows, and
   * back. As the weights of a row sum to 1, the lanes of a chosen word fit side by side.
   */
  function around(links, bounds, thick) {
    const [last, first] = [lineOf(keys, Math.max), lineOf(queries, Math.min)];
    const passing = links.filter(({ source, target }) => source[1] < last - 4 || target[1] > first + 4);
    const lanes = { left: [], right: [] };
    for (const link of passing) {
      const left = link.source[0] + link.target[0] < bounds.width;
      lanes[left ? "left" : "right"].push(link);
    }
    for (const [side, own] of Object.entries(lanes)) {
      const room = own.reduce((sum, link) => sum + thick(link) + 1, 0);
      const share = Math.min((LANE - 5) / room, 1);
      let from = 4; // pixels to the words
      for (const link of own) {
        const apart = LANE - from - (share * thick(link)) / 2;
        link.path = lane(link, side === "left" ? apart : bounds.width - apart);
        from += share * (thick(link) + 1);
      }
    }
  }

  /** The lowest or the highest edge of the words of a side that threads begin or end at. */
  function lineOf(group, most) {
    const edge = group === keys ? "bottom" : "top";
    const box_ = box.node().getBoundingClientRect();
    const edges = group.selectAll("button").nodes().map((node) => node.getBoundingClientRect()[edge]);
    return most(...edges) - box_.top;
  }

  /** In rows that look everywhere alike, threads of 0.08 would be all or none. */
  function idleLeast(layer, look) {
    if (look.signed) return 0.15 * peakFor(layer, look);
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

/** A path down from a word, along a lane at `x`, and down to another word; its corners are round. */
function lane({ source, target }, x) {
  const [[x0, y0], [x1, y1]] = [source, target];
  const [above, below] = [y0 + BELOW, y1 - BELOW];
  const turn = Math.max(Math.min(6, Math.abs(x0 - x), Math.abs(x1 - x), (below - above) / 2), 0);
  const [out, back] = [Math.sign(x - x0) * turn, Math.sign(x1 - x) * turn];
  const places = [
    `M${x0.toFixed(1)},${y0.toFixed(1)}`, `V${above - turn}`,
    `Q${x0},${above} ${x0 + out},${above}`, `H${x - out}`,
    `Q${x},${above} ${x},${above + turn}`, `V${below - turn}`,
    `Q${x},${below} ${x + back},${below}`, `H${x1 - back}`,
    `Q${x1},${below} ${x1},${below + turn}`, `L${x1.toFixed(1)},${y1.toFixed(1)}`,
  ];
  return places.join("");
}

const percent = (chance) => `${Math.round(100 * chance)}%`;

/** What follows a token for those who do not see it: its place, and its probability. */
function spoken({ index }, many, chances, said) {
  const place = say(", token {index} of {many}", { index: index + 1, many });
  const answer = said ? say(", answer {answer}", { answer: label(said[index]) }) : "";
  const chance = chances ? say(", probability {chance}", { chance: exact(chances[index]) }) : "";
  return place + answer + chance;
}

function strongest(tokens, weight) {
  const size = (i) => Math.abs(weight(i));
  return tokens.reduce((best, _, i) => (size(i) > size(best) ? i : best), 0);
}
