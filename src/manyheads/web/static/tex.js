// Equations: the part of TeX that learn.json uses, as MathML, which browsers draw and read aloud.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const SIGNS = {
  alpha: "α", delta: "δ", partial: "∂", cdot: "⋅", leq: "≤", infty: "∞", top: "⊤", ldots: "…",
  in: "∈", times: "×", mid: "∣", odot: "⊙", sigma: "σ", tau: "τ", phi: "φ", sum: "∑",
};
const NAMES = ["exp", "max", "sin", "cos", "log", "arg", "tanh", "min"];
const GAPS = { qquad: "2em", quad: "1em", ";": "0.28em", ",": "0.17em", "!": "0em" };

/** Make a `math` element of an equation; what is not known raises an error. */
export function equation(tex) {
  const tokens = tex.match(/\\[a-zA-Z]+|\\.|[a-zA-Z]|\d+(?:\.\d+)?|\S/g) ?? [];
  let at = 0;

  function make(name, ...children) {
    const made = document.createElementNS(SPACE, name);
    made.append(...children);
    return made;
  }

  function row(end) {
    const parts = [];
    while (at < tokens.length && !end.includes(tokens[at])) parts.push(scripted());
    return make("mrow", ...parts);
  }

  function group() {
    if (tokens[at] !== "{") return atom();
    at += 1;
    const found = row(["}"]);
    at += 1;
    return found;
  }

  /** The letters between braces, as they stand. */
  function plain() {
    at += 1;
    const from = at;
    while (tokens[at] !== "}") at += 1;
    return tokens.slice(from, at++);
  }

  function scripted() {
    const base = atom();
    const big = base.textContent === "∑" || base.textContent === "max";
    let [under, over] = [null, null];
    while (["_", "^", "'"].includes(tokens[at])) {
      const sign = tokens[at++];
      if (sign === "_") under = group();
      else if (sign === "^") over = group();
      else over = make("mo", "′");
    }
    const both = big ? "munderover" : "msubsup";
    if (under && over) return make(both, base, under, over);
    if (under) return make(big ? "munder" : "msub", base, under);
    return over ? make(big ? "mover" : "msup", base, over) : base;
  }

  function fenced() {
    const open = tokens[at++];
    const inside = row(["\\right"]);
    at += 1;
    const close = tokens[at++];
    return make("mrow", make("mo", open), inside, make("mo", close));
  }

  function atom() {
    const token = tokens[at++];
    if (token === "{") {
      at -= 1;
      return group();
    }
    if (/^\d/.test(token)) return make("mn", token);
    if (/^[a-zA-Z]$/.test(token)) return make("mi", token);
    if (!token.startsWith("\\")) return sign(token === "-" ? "−" : token);
    return command(token.slice(1));
  }

  /** Parentheses grow only between \left and \right. */
  function sign(text) {
    const made = make("mo", text);
    made.setAttribute("stretchy", "false");
    return made;
  }

  function command(name) {
    if (name in SIGNS) return make(/^(alpha|delta|sigma|tau|phi)$/.test(name) ? "mi" : "mo", SIGNS[name]);
    if (NAMES.includes(name)) return make("mi", name);
    if (name in GAPS) {
      const gap = make("mspace");
      gap.setAttribute("width", GAPS[name]);
      return gap;
    }
    if (name === "frac") return make("mfrac", group(), group());
    if (name === "sqrt") return make("msqrt", group());
    if (name === "left") return fenced();
    if (name === "operatorname") return make("mi", plain().join(""));
    if (name === "text") return make("mtext", plain().join("").replace(/^|$/g, "\u00a0"));
    if (name === "mathbb") return make("mi", { R: "ℝ" }[plain().join("")] ?? "");
    if (name === "bar") return accent("¯");
    if (name === "hat") return accent("^");
    throw new Error(`no TeX: \\${name}`);
  }

  function accent(sign) {
    const made = make("mover", group(), make("mo", sign));
    made.setAttribute("accent", "true");
    return made;
  }

  const math = make("math", row([]));
  math.setAttribute("display", "block");
  return math;
}
