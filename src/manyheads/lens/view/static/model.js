// What there is to choose from: kinds of maps, their layers, and in each the mean, heads, overlays.
//
// A look is one matrix over a layer's rows and columns, `at(row, column)`, or, of an image, one
// number a cell of a grid, `cells`.

const ORDER = ["decoder cross", "decoder self", "encoder self"];

export function textKinds(view, matrices, identity) {
  const overlays = [...named(view.overlays ?? []).map(overlayLook), ...alignmentLook(view)];
  const names = [...new Set(view.maps.map((map) => map.kind))];
  names.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9);
  const translating = names.some((name) => name.startsWith("decoder"));
  const kinds = names.map((name) => ({
    name,
    layers: view.maps.flatMap((map, number) =>
      map.kind === name
        ? [textLayer(map, heads(map, matrices[number], identity), overlays, name, translating)]
        : [],
    ),
  }));
  // What explains the answer and is no layer's map: a kind of its own where no layer carries it.
  const carried = new Set(kinds.flatMap((kind) => kind.layers.flatMap((layer) => layer.looks)));
  for (const look of overlays.filter((each) => !carried.has(each))) {
    kinds.push({
      name: look.name,
      layers: [{ ...bare(look.rows, look.columns), site: look.name, looks: [look] }],
    });
  }
  if (!kinds.length) {
    kinds.push({ name: "", layers: [{ ...bare(view.output, view.source), site: "", looks: [] }] });
  }
  for (const kind of kinds) for (const layer of kind.layers) answers(view, kind.name, layer);
  return kinds;
}

export function imageKinds(view, matrices, identity) {
  const overlays = named(view.overlays ?? []).map((found) => ({
    name: found.name,
    label: found.name,
    legend: found.legend,
    cells: found.weights,
    grid: found.grid,
    signed: found.signed,
  }));
  const layers = view.maps.map((map, number) => ({
    ...map,
    looks: [...heads(map, matrices[number], identity), ...overlays],
  }));
  if (!layers.length) {
    // A model without attention: what explains its answer, or only the image and its classes.
    const nowhere = { ...bare([], []), site: "", row_grid: null, column_grid: null };
    layers.push({ ...nowhere, looks: overlays });
  }
  return [{ name: "", layers }];
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

function textLayer(map, looks, overlays, kind, translating) {
  const fitting = overlays.filter(
    (look) =>
      look.rows.length === map.rows.length &&
      look.columns.length === map.columns.length &&
      (kind === "decoder cross" || !translating),
  );
  return { ...map, looks: [...looks, ...fitting] };
}

function heads(map, matrices, identity) {
  const width = map.columns.length;
  const at = (matrix) => (row, column) => matrix[row * width + column];
  const mean = { name: "mean", label: "mean", legend: map.legend, at: at(matrices[0]) };
  if (matrices.length === 2) return [{ ...mean, label: "one head" }];
  return [
    mean,
    ...matrices.slice(1).map((matrix, number) => ({
      name: String(number + 1),
      label: `head ${number + 1}`,
      legend: map.head_legends[number],
      at: at(matrix),
      colour: identity[number % identity.length],
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

const bare = (rows, columns) => ({ rows, columns, legend: "", causal: false });

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

/** The largest weight of a look, without its sign. */
export function peakOf(look, rows, columns) {
  if (look.cells) return Math.max(...look.cells.map(Math.abs), 1e-9);
  let peak = 1e-9;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      peak = Math.max(peak, Math.abs(look.at(row, column)));
    }
  }
  return peak;
}
