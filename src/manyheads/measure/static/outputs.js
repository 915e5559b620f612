const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("outputs");
const STEP = 100;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const truth = (row) => row.truth.join(" / ");
const length = (row) => [...(row.name || row.image ? truth(row) || row.answer : row.input)].length;
const near = (row) => !row.right &&
  (row.others.length ? row.others.some(([label]) => row.truth.includes(label)) : row.score >= 75);
const ORDERS = {
  "worst first": (a, b) => a.score - b.score || b.probability - a.probability || a.number - b.number,
  "most certain mistakes first": (a, b) =>
    a.right - b.right || (b.probability ?? 0) - (a.probability ?? 0) || a.number - b.number,
  "least certain first": (a, b) => (a.probability ?? 1) - (b.probability ?? 1) || a.number - b.number,
  "longest first": (a, b) => length(b) - length(a) || a.number - b.number,
  "order of the data": (a, b) => a.number - b.number,
};

/* Words of an answer that no right answer has. */
function marked(text, others) {
  if (!/\s/.test(text) || others.length === 0) return [text];
  const known = new Set(others.join(" ").split(/\s+/));
  return text.split(/(\s+)/).map((word) =>
    word.trim() && !known.has(word) ? element("mark", {}, word) : word);
}

const percent = (share) => `${(100 * share).toFixed(share > 0.9995 || share < 0.0995 ? 2 : 1)}%`;

const field = (name, label, properties) =>
  element("label", {}, label, element("input", { name, ...properties }));

function choice(name, label, values) {
  const select = element("select", { name }, element("option", { value: "" }, "all"));
  for (const value of values) select.append(element("option", { value }, value || "(empty)"));
  return element("label", {}, label, select);
}

/* A list where there are few values, a search where there are many. */
function filter(name, label, values) {
  const different = [...new Set(values)].sort();
  return different.length <= 60 && different.length < values.length
    ? choice(name, label, different)
    : field(name, `${label} contains`, { type: "search" });
}

const probable = data.rows.some((row) => row.probability !== undefined);
const lookable = data.rows.some((row) => row.look);
const form = element("form", {},
  filter("truth", "Truth", data.rows.map(truth)),
  filter("answer", "Answer", data.rows.map((row) => row.answer)),
  field("input", "Input contains", { type: "search" }),
  field("shortest", "Length from", { type: "number", min: 0 }),
  field("longest", "to", { type: "number", min: 0 }));
if (probable) {
  form.append(
    field("least", "Probability from", { type: "number", min: 0, max: 1, step: 0.01 }),
    field("most", "to", { type: "number", min: 0, max: 1, step: 0.01 }));
}
const order = element("select", { name: "order" });
for (const name of Object.keys(ORDERS)) {
  if (probable || !name.includes("certain")) order.append(element("option", {}, name));
}
form.append(
  element("label", {}, "Order", order),
  element("label", { className: "check" },
    element("input", { type: "checkbox", name: "wrong" }), "mistakes only"),
  element("label", { className: "check" },
    element("input", { type: "checkbox", name: "near" }), "near misses only"),
  element("button", { type: "reset" }, "Reset"));

const chips = element("div", { className: "chips" });
let confused = null;
for (const [is, said, count] of data.confusions) {
  const chip = element("button", { type: "button", ariaPressed: "false" },
    `${is || "(empty)"} → ${said || "(empty)"}: ${count}`);
  chip.addEventListener("click", () => {
    const own = confused && confused[0] === is && confused[1] === said;
    confused = own ? null : [is, said];
    for (const each of chips.children) each.ariaPressed = "false";
    chip.ariaPressed = String(!own);
    draw();
  });
  chips.append(chip);
}

const status = element("p", { role: "status" });
const body = element("tbody");
const more = element("button", { type: "button", hidden: true }, `Show ${STEP} more`);
let room = STEP;
more.addEventListener("click", () => { room += STEP; draw(false); });

function drawRow(row) {
  const name = row.name ?? row.input;
  const input = element("td", {},
    ...(row.image ? [element("img", { src: row.image, alt: "" }), element("small", {}, name)] : [name]));
  if (row.language) input.append(element("small", {}, row.language));
  if (row.note) input.append(element("small", {}, row.note));
  const answer = element("td", { className: row.right ? "good" : "bad" },
    ...(row.answer ? marked(row.answer, row.truth) : [element("small", {}, "(empty)")]));
  for (const [label, share] of row.others) {
    const own = row.truth.includes(label);
    answer.append(element("small", { className: own ? "good" : "" },
      `${label} ${share.toFixed(3)}${own && !row.right ? " (the truth)" : ""}`));
  }
  const look = element("button", { type: "button", className: "look", title: row.look ?? "" }, "Copy look");
  look.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(row.look);
      look.textContent = "Copied";
    } catch {
      look.replaceWith(element("code", {}, row.look));
    }
  });
  return element("tr", {},
    element("td", { className: "number" }, String(row.number + 1)), input,
    element("td", {}, ...row.truth.flatMap((text, n) => (n ? [element("br"), text] : [text]))), answer,
    ...(probable ? [element("td", { className: "number" }, percent(row.probability ?? 0))] : []),
    element("td", { className: "number" }, row.score.toFixed(1)),
    ...(lookable ? [element("td", {}, row.look ? look : "")] : []));
}

function draw(anew = true) {
  if (anew) room = STEP;
  const asked = Object.fromEntries(new FormData(form));
  const fits = (name, value) => {
    const wanted = form.elements[name];
    if (!wanted.value) return true;
    return wanted.type === "search"
      ? value.toLowerCase().includes(wanted.value.toLowerCase()) : value === wanted.value;
  };
  const between = (value, low, high) =>
    (!low || (value !== undefined && value >= Number(low))) &&
    (!high || (value !== undefined && value <= Number(high)));
  const rows = data.rows.filter((row) =>
    fits("truth", truth(row)) && fits("answer", row.answer) && fits("input", row.name ?? row.input) &&
    between(length(row), asked.shortest, asked.longest) &&
    between(row.probability, asked.least, asked.most) &&
    (!asked.wrong || !row.right) && (!asked.near || near(row)) &&
    (!confused || (truth(row) === confused[0] && row.answer === confused[1])));
  rows.sort(ORDERS[order.value]);
  status.textContent = `${rows.length} of ${data.rows.length} rows` +
    (data.count > data.rows.length ? `, the worst of ${data.count}; outputs.jsonl has all` : "");
  body.replaceChildren(...rows.slice(0, room).map(drawRow));
  more.hidden = rows.length <= room;
}

form.addEventListener("input", () => draw());
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => {
  confused = null;
  for (const each of chips.children) each.ariaPressed = "false";
  draw();
}));
const heads = ["#", "Input", "Truth", "Answer", ...(probable ? ["Probability"] : []), "Score", ...(lookable ? ["Command"] : [])];
main.append(
  element("p", {}, `${data.metric}` + (data.rows.some((row) => row.truth.length)
    ? `. ${data.wrong} of ${data.count} answers differ from the truth.` : "")));
if (data.confusions.length) {
  main.append(element("p", {}, "Truth → answer, the most frequent mistakes:"), chips);
}
main.append(form, status,
  element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((each) => element("th", {}, each)))), body),
  more);
draw();
document.documentElement.dataset.ready = "yes";
