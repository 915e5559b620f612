// The editable source and its answer, tied by threads: a word lights up what it was translated from.

import { h } from "./parts.js";

const SHOWN = 0.15; // share of attention from which a thread is drawn
const THICKEST = 7; // pixels of a thread of weight 1
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

/** Threads between pairs of elements, in the coordinates of `box`; `pairs` are [from, to, weight]. */
export function makeThreads(box) {
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("class", "ties");
  svg.setAttribute("aria-hidden", "true");
  box.prepend(svg);
  const first = (element) => element.getClientRects()[0] ?? element.getBoundingClientRect();
  return {
    svg,
    draw(pairs, lit = false) {
      const frame = box.getBoundingClientRect();
      svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
      svg.replaceChildren(
        ...pairs
          .filter(([, , weight]) => weight >= SHOWN)
          .map(([from, to, weight]) => {
            const [a, b] = [first(from), first(to)];
            const [x1, y1] = [(a.left + a.right) / 2 - frame.left, a.bottom - frame.top];
            const [x2, y2] = [(b.left + b.right) / 2 - frame.left, b.top - frame.top];
            const bend = Math.max(14, (y2 - y1) / 2);
            const path = document.createElementNS(NAMESPACE, "path");
            path.setAttribute("d", `M${x1},${y1}C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`);
            path.setAttribute("stroke-width", Math.max(1, THICKEST * weight).toFixed(1));
            if (lit) path.setAttribute("class", "lit");
            return path;
          }),
      );
    },
  };
}
