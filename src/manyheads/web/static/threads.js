// The editable source and its answer, tied by threads: a word lights up what it was translated from.

import { h } from "./parts.js";

export const SHOWN = 0.15; // share of attention from which a thread is drawn
const THICKEST = 7; // pixels of a thread of weight 1
const THIN = 3; // pixels of one that passes between words
const NARROWEST = 3; // pixels between two words, from which a thread fits
const ASIDE = 7; // pixels between a thread and the end of a line
const LETTERS = 0.58; // from the middle of a line to the ends of its letters, of the font's size
const NAMESPACE = "http://www.w3.org/2000/svg";

/** A textarea over a copy of its text, whose words can be lit, struck and tied. */
export function makeEditor(area) {
  const mirror = h("div", { class: "mirror", "aria-hidden": "true" });
  const box = h("div", { class: "editor" }, mirror, area);
  let words = []; // { begin, end, sentence, word, span }

  /** Write the copy; `ranges` are the words, in order: { begin, end, sentence, word }. */
  function write(ranges) {
    const text = area.value;
    const parts = [];
    let at = 0;
    words = ranges.filter(({ begin, end }) => begin >= at && end <= text.length);
    for (const range of words) {
      range.span = h("span", { class: "w" }, text.slice(range.begin, range.end));
      parts.push(text.slice(at, range.begin), range.span);
      at = range.end;
    }
    mirror.replaceChildren(...parts, `${text.slice(at)}\u200b`);
    grow();
  }

  /** As high as its text. */
  function grow() {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
  }

  const at = (sentence, word) => words.find((each) => each.sentence === sentence && each.word === word);

  /** The word under a point of the screen. */
  const under = (x, y) =>
    words.find(({ span }) =>
      [...span.getClientRects()].some((r) => x >= r.left && x <= r.right && y >= r.top && y <= r.bottom),
    ) ?? null;

  const atCaret = () => {
    const place = area.selectionStart;
    return words.find(({ begin, end }) => begin <= place && place <= end) ?? null;
  };

  return { box, write, grow, at, under, atCaret, get words() { return words; } };
}

/** The lines of text that elements stand on, from top to bottom: { top, bottom, middle, boxes }. */
function linesOf(elements) {
  const lines = [];
  for (const element of elements) {
    const half = LETTERS * parseFloat(getComputedStyle(element).fontSize);
    for (const { left, right, top, bottom } of element.getClientRects()) {
      if (left === right) continue;
      const middle = (top + bottom) / 2;
      let line = lines.find((each) => Math.abs(each.middle - middle) < half);
      if (!line) lines.push((line = { top: middle - half, bottom: middle + half, middle, boxes: [] }));
      line.boxes.push({ left, right });
    }
  }
  for (const { boxes } of lines) boxes.sort((one, other) => one.left - other.left);
  return lines.sort((one, other) => one.middle - other.middle);
}

/** Where a thread passes a line of text, as near to `x` as words leave room: [place, room]. */
function passage({ boxes }, x, frame) {
  const [start, end] = [boxes[0].left - ASIDE, Math.max(...boxes.map((each) => each.right)) + ASIDE];
  const open = [[Math.min(x, start), THICKEST]];
  if (end < frame.right) open.push([Math.min(Math.max(x, end), frame.right), THICKEST]);
  boxes.slice(1).forEach(({ left }, i) => {
    const { right } = boxes[i];
    if (left - right >= NARROWEST) open.push([(left + right) / 2, left - right - NARROWEST]);
  });
  return open.reduce((best, each) => (Math.abs(each[0] - x) < Math.abs(best[0] - x) ? each : best));
}

/**
 * Threads between pairs of elements, in the coordinates of `box`; `pairs` are [from, to, weight]. Between
 * lines of text they pass through the spaces of `words()`, never behind a word.
 */
export function makeThreads(box, words) {
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("class", "ties");
  svg.setAttribute("aria-hidden", "true");
  box.prepend(svg);
  const first = (element) => element.getClientRects()[0] ?? element.getBoundingClientRect();

  /** The way from one word to another, and how thick a thread may be on it. */
  function route(a, b, lines, frame) {
    const [from, to] = [(a.left + a.right) / 2, (b.left + b.right) / 2];
    const between = lines.filter(({ middle }) => middle > a.bottom && middle < b.top);
    const at = (x, y) => `${(x - frame.left).toFixed(1)},${(y - frame.top).toFixed(1)}`;
    let way = `M${at(from, a.bottom)}`;
    let [x, y, room] = [from, a.bottom, THICKEST];
    /** Bend to a place below; between two lines of text there is no room to leave upwards first. */
    const bend = (nextX, nextY) => {
      const by = between.length ? (nextY - y) / 2 : Math.max(14, (nextY - y) / 2);
      way += `C${at(x, y + by)} ${at(nextX, nextY - by)} ${at(nextX, nextY)}`;
    };
    between.forEach((line, i) => {
      const [place, free] = passage(line, x + (to - x) / (between.length - i + 1), frame);
      bend(place, Math.max(line.top, y));
      way += `L${at(place, line.bottom)}`;
      [x, y, room] = [place, line.bottom, Math.min(room, free, THIN)];
    });
    bend(to, b.top);
    return [way, room];
  }

  return {
    svg,
    draw(pairs, lit = false) {
      const frame = box.getBoundingClientRect();
      svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
      const drawn = pairs.filter(([, , weight]) => weight >= SHOWN);
      const lines = drawn.length ? linesOf(words()) : [];
      svg.replaceChildren(
        ...drawn.map(([from, to, weight]) => {
          const [way, room] = route(first(from), first(to), lines, frame);
          const path = document.createElementNS(NAMESPACE, "path");
          path.setAttribute("d", way);
          path.setAttribute("stroke-width", Math.max(1, Math.min(room, THICKEST * weight)).toFixed(1));
          if (lit) path.setAttribute("class", "lit");
          return path;
        }),
      );
    },
  };
}
