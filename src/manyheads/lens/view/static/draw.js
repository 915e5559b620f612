// Small things that every figure needs: colours, labels, numbers, a tooltip.

const { select } = globalThis.d3;

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** Blend a ramp of hex colours: 0 gives the first, 1 the last. Returns red, green, blue. */
export function blend(share, ramp) {
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  const [a, b] = [channels(ramp[low]), channels(ramp[low + 1])];
  return a.map((value, i) => Math.round(value + (b[i] - value) * (place - low)));
}

export const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

/** Black or white, whichever is read more easily on a colour (WCAG's relative luminance). */
export function inkOn(colour) {
  const linear = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return light > 0.179 ? "#000000" : "#ffffff"; // 4.58 : 1 at least
}

export const isDark = () => {
  if (matchMedia("print").matches) return false; // paper is white
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** The colours of magnitude: one hue; of signed numbers a second one for "against". */
export function shades(colours) {
  const ramp = isDark() ? colours.dark : colours.light;
  const against = isDark() ? colours.againstDark : colours.againstLight;
  return (share) => (share < 0 ? blend(-share, against) : blend(share, ramp));
}

/** Drop sentencepiece's mark of a word's start and make the rest visible (as lens/labels.py). */
export function label(token) {
  const text = token.replaceAll("▁", " ").trim();
  if (!text) return "␣";
  return text.replace(/\p{Cc}/gu, (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, 0)}`);
}

/** A weight as it is kept: four decimals, or what the page's rounding leaves of them. */
export const exact = (value) => (value === 0 ? "0" : value.toFixed(4));

/** Short, beside a word: .37 rather than 0.3702. */
export const short = (value) => {
  const text = Math.abs(value).toFixed(2).replace(/^0/, "");
  return (value < 0 ? "−" : "") + text;
};

/** Three digits that mean something. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return (value || 0).toLocaleString("en"); // no "-0"
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}

export const reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** One note that follows the pointer or the focus, for exact numbers. */
export function makeTip() {
  const tip = select(document.body).append("div").attr("class", "tip").attr("aria-hidden", "true");
  const made = {
    show(event, lines) {
      tip.selectAll("span").data(lines).join("span").text((line) => line);
      const { offsetWidth: width, offsetHeight: height } = tip.node();
      const left = Math.min(event.clientX + 14, innerWidth - width - 6);
      const below = event.clientY + 18 + height < innerHeight;
      const top = below ? event.clientY + 18 : event.clientY - height - 10;
      tip.style("left", `${Math.max(left, 4)}px`).style("top", `${top}px`);
      tip.classed("shown", true);
    },
    /** Under a place: of an element, or a rectangle in the window. */
    under(place, lines) {
      const { left, right, bottom } = place.getBoundingClientRect?.() ?? place;
      if (lines.length) made.show({ clientX: (left + right) / 2 - 14, clientY: bottom - 10 }, lines);
      else made.hide();
    },
    hide: () => tip.classed("shown", false),
    remove: () => tip.remove(),
  };
  return made;
}

/** Colour a canvas of one pixel a cell; the style sheet makes it large. */
export function paint(canvas, rows, columns, colourAt) {
  canvas.width = Math.max(columns, 1);
  canvas.height = Math.max(rows, 1);
  const pixels = new ImageData(canvas.width, canvas.height);
  let place = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const colour = colourAt(row, column);
      if (colour) pixels.data.set([...colour, 255], place);
      place += 4;
    }
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** The scale below a map: what no shade and the full shade stand for. */
export function scaleBar(parent, low, high, shade, words = "") {
  const bar = parent.selectAll("div.scale").data([null]).join("div").attr("class", "scale");
  bar.selectAll("*").remove();
  bar.append("span").text(number(low));
  const canvas = bar.append("canvas").attr("aria-hidden", "true").node();
  const span = high - low || 1;
  paint(canvas, 1, 64, (_, i) => shade(low < 0 ? (2 * i) / 63 - 1 : i / 63, span));
  bar.append("span").text(`${number(high)}${words}`);
}
