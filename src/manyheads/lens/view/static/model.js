// What there is to choose from: kinds of maps, their layers, and in each the mean, heads, overlays.
//
// A look is one matrix over a layer's rows and columns, `at(row, column)`, or, of an image, one
// number a cell of a grid, `cells`. Attention has layers and heads; explanations belong to no layer.

const ORDER = ["decoder cross", "decoder self", "encoder self"];

const LABELS = {
  "decoder cross": "Translation to source",
  "decoder self": "Translation to earlier words",
  "encoder self": "Source to source",
};
const ONE_TEXT = { "decoder self": "Text to earlier words", "encoder self": "Text to text" };

export function textKinds(view, matrices) {
  const overlays = [...named(view.overlays ?? []).map(overlayLook), ...alignmentLook(view)];
  const names = [...new Set(view.maps.map((map) => map.kind))];
  names.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9);
  const labels = names.includes("decoder cross") ? LABELS : ONE_TEXT;
  const kinds = names.map((name) => ({
    name,
    label: labels[name] ?? name,
    group: "attention",
    layers: view.maps.flatMap((map, number) =>
      map.kind === name ? [{ ...map, looks: heads(map, matrices[number]) }] : [],
    ),
  }));
  // Those over the same tokens are chosen among like heads; of other tokens there are more kinds.
  const shapes = Map.groupBy(overlays, (look) => `${look.rows.length} ${look.columns.length}`);
  for (const looks of shapes.values()) {
    const [{ rows, columns }] = looks;
    kinds.push(explanations([{ ...bare(rows, columns), looks }], kinds));
  }
  if (!kinds.length) {
    kinds.push({ ...explanations([{ ...bare(view.output, view.source), looks: [] }], []), name: "" });
  }
  for (const kind of kinds) for (const layer of kind.layers) answers(view, kind.name, layer);
  return kinds;
}

function explanations(layers, kinds) {
  const many = kinds.filter((kind) => kind.group === "explanations").length;
  const name = many ? `explanations ${many + 1}` : "explanations";
  return { name, label: "Explanations", group: "explanations", layers };
}

export function imageKinds(view, matrices) {
  const overlays = named(view.overlays ?? []).map((found) => ({
    name: found.name,
    label: found.name,
    legend: found.legend,
    cells: found.weights,
    grid: found.grid,
    signed: found.signed,
  }));
  const layers = view.maps.map((map, number) => ({ ...map, looks: heads(map, matrices[number]) }));
  const kinds = [];
  if (layers.length) kinds.push({ name: "attention", label: "Attention", group: "attention", layers });
  // A model without attention has what explains its answer, or only the image and its classes.
  if (overlays.length || !layers.length) {
    const nowhere = { ...bare([], []), row_grid: null, column_grid: null };
    kinds.push(explanations([{ ...nowhere, looks: overlays }], kinds));
  }
  return kinds;
}

/** A layer's name: which it is of how many. */
export function layerName(layer, layers) {
  if (!layer.site) return "";
  if (layer.site.startsWith("pool")) return "Final pooling: which patches the answer is built from";
  const own = layers.filter((each) => !each.site.startsWith("pool"));
  const plain = /^(encoder|decoder) layer \d+( self| cross)?$/.test(layer.site);
  const name = `Layer ${own.indexOf(layer) + 1} of ${own.length}`;
  return plain ? name : `${name} (${layer.site})`;
}

const TRUST = {
  rollout:
    "Rollout multiplies the attention of all layers and ignores what else they compute. " +
    "It is the same for every class.",
  relevance:
    "Relevance weighs attention by gradients and keeps only what raises the score. " +
    "It is an estimate: compare it with covering or leaving out.",
  "integrated gradients":
    "Integrated gradients add up to the change of the score from an empty input. " +
    "Trust them if they do add up.",
  "grad-cam":
    "Grad-CAM shows coarsely which region raises the score of the class; small details are lost.",
  alignment:
    "Alignment is a best guess at which word each token was translated from; " +
    "tokens without a link stay unaligned.",
};

/** When to trust a look, in a line; `incomplete` gradients are not to be. */
export function trust(look, incomplete) {
  if (look.shared) {
    return look.name === "mean" && look.label !== "one head"
      ? "A mean hides heads that do different things: look at single heads before you conclude."
      : "Attention shows where values were read from, not what they did to the answer.";
  }
  if (incomplete && look.name.startsWith("integrated")) return "Incomplete: do not rely on these.";
  const known = Object.keys(TRUST).find((name) => look.name.startsWith(name));
  return (
    TRUST[known] ??
    "A reading of where the answer comes from: compare it with leaving words out or covering patches."
  );
}

/** Looks are chosen by name, so those of one name are numbered. */
function named(overlays) {
  const seen = {};
  return overlays.map((found) => {
    seen[found.name] = (seen[found.name] ?? 0) + 1;
    const more = seen[found.name] > 1 ? ` ${seen[found.name]}` : "";
    return { ...found, name: `${found.name}${more}` };
  });
}

function heads(map, matrices) {
  const width = map.columns.length;
  const at = (matrix) => (row, column) => matrix[row * width + column];
  const mean = { name: "mean", label: "mean", legend: map.legend, at: at(matrices[0]), shared: true };
  if (matrices.length === 2) return [{ ...mean, label: "one head" }];
  return [
    mean,
    ...matrices.slice(1).map((matrix, number) => ({
      name: String(number + 1),
      label: `head ${number + 1}${map.taken_out?.includes(number + 1) ? " (taken out)" : ""}`,
      legend: map.head_legends[number],
      at: at(matrix),
      shared: true,
    })),
  ];
}

function overlayLook(found) {
  return {
    name: found.name,
    label: found.name,
    legend: found.legend,
    signed: found.signed,
    rows: found.rows,
    columns: found.columns,
    at: (row, column) => found.weights[row][column],
  };
}

function alignmentLook(view) {
  const found = view.alignment;
  if (!found) return [];
  const links = new Map(found.links.map(([row, column, weight]) => [`${row} ${column}`, weight]));
  return [
    {
      name: "alignment",
      label: "alignment",
      legend: `${found.legend}; ${found.why}`,
      rows: view.output,
      columns: view.source,
      at: (row, column) => links.get(`${row} ${column}`) ?? 0,
    },
  ];
}

const bare = (rows, columns) => ({ rows, columns, site: "", legend: "", causal: false });

/** Say what stands under each row: the model's answer there, with its probability. */
function answers(view, kind, layer) {
  const fits = view.output.length === layer.rows.length;
  const decoding = view.maps.some((map) => map.kind.startsWith("decoder"));
  const rowsAreOutput = layer.rows.every((row, i) => row === view.output[i]);
  // A source may read like its translation: the encoder's rows are never the output.
  if (!fits || (decoding && (!rowsAreOutput || kind.startsWith("encoder")))) return;
  layer.chances = view.probabilities;
  layer.said = rowsAreOutput ? null : view.output; // a tag, or the token that comes next
}

/**
 * What the full shade stands for, of a map: the largest weight of any head of the layer, for equal
 * weights to have equal colours wherever they are drawn; of what has a unit of its own, its largest.
 */
export function peakFor(layer, look) {
  return Math.max(ownPeak(layer, look), layer.other?.(look) ?? 0);
}

/** The same without the figure that a layer is compared with. */
export function ownPeak(layer, look) {
  const largest = (each) => peakOf(each, layer.rows.length, layer.columns.length);
  if (look.shared) layer.peak ??= Math.max(...layer.looks.map(largest));
  else look.peak ??= largest(look);
  return look.shared ? layer.peak : look.peak;
}

/** The largest weight of a look, without its sign. */
function peakOf(look, rows, columns) {
  if (look.cells) return Math.max(...look.cells.map(Math.abs), 1e-9);
  let peak = 1e-9;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      peak = Math.max(peak, Math.abs(look.at(row, column)));
    }
  }
  return peak;
}
