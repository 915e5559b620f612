// What is chosen and what is lit: one state for the whole page, and its twin in the address.

/**
 * Choices are kept in the address, unless `address` is false; `hover` is not. Listeners hear "choice"
 * or "focus".
 */
export function makeState(kinds, open = {}, signal = undefined, address = true) {
  const listeners = { choice: [], focus: [] };
  const nothing = { row: null, column: null };
  const first = { kind: 0, layer: 0, head: "mean" };
  kinds.forEach((each, kind) => {
    const layer = each.layers.findIndex((found) => found.site === open.site);
    if (open.site && layer >= 0) Object.assign(first, { kind, layer });
  });
  const state = { ...first, pin: nothing, hover: null };

  const layersOf = (kind) => kinds[kind].layers;
  const layer = () => layersOf(state.kind)[state.layer];
  const look = () => layer().looks.find((each) => each.name === state.head) ?? layer().looks[0];
  const active = () => state.hover ?? state.pin;
  const inside = (value, count) =>
    Number.isInteger(value) && value >= 0 && value < count ? value : null;

  function tell(what) {
    for (const listener of listeners[what]) listener();
  }

  /** Write the state into the address, without a step in the history. */
  function remember() {
    if (!address) return;
    const words = new URLSearchParams(location.hash.slice(1)); // a served page has its own words there
    for (const name of ["map", "layer", "head", "row", "column"]) words.delete(name);
    if (kinds.length > 1) words.set("map", kinds[state.kind].name);
    if (layersOf(state.kind).length > 1) words.set("layer", state.layer + 1);
    if (look()) words.set("head", look().name);
    if (state.pin.row !== null) words.set("row", state.pin.row + 1);
    if (state.pin.column !== null) words.set("column", state.pin.column + 1);
    try {
      history.replaceState(null, "", `#${words}`);
    } catch {
      // A page without an address of its own, such as a frame: nothing to remember in.
    }
  }

  /** The kind of an address; where it names none, an explanation is known by its own name. */
  function kindOf(name, head) {
    const has = (kind) => kind.layers.some(({ looks }) => looks.some((look) => look.name === head));
    const named = kinds.findIndex((each) => each.name === name);
    const kind = named < 0 ? first.kind : named;
    if (!head || has(kinds[kind])) return kind;
    const other = kinds.findIndex((each) => each.group === "explanations" && has(each));
    return other < 0 ? kind : other;
  }

  /** Read the state from the address; what does not fit is left as it is at first. */
  function recall() {
    const words = new URLSearchParams(address ? location.hash.slice(1) : "");
    const number = (name) => (words.has(name) ? Number(words.get(name)) - 1 : null);
    state.kind = kindOf(words.get("map"), words.get("head"));
    const fallback = state.kind === first.kind ? first.layer : layersOf(state.kind).length - 1;
    state.layer = inside(number("layer"), layersOf(state.kind).length) ?? fallback;
    state.head = words.get("head") ?? first.head;
    const { rows, columns } = layer();
    state.pin = {
      row: inside(number("row"), rows.length),
      column: inside(number("column"), columns.length),
    };
    state.hover = null;
  }

  function choose(change) {
    const before = layer();
    Object.assign(state, change);
    if (change.kind !== undefined && change.layer === undefined) {
      state.layer = Math.min(state.layer, layersOf(state.kind).length - 1);
    }
    if (layer().rows.length !== before.rows.length || change.kind !== undefined) {
      state.pin = nothing; // other tokens: what was pinned or hovered is not among them
      state.hover = null;
    }
    remember();
    tell("choice");
  }

  recall();
  addEventListener("hashchange", () => {
    if (!address) return;
    recall();
    tell("choice");
  }, { signal });
  return {
    kinds,
    layer,
    look,
    active,
    choose,
    layers: () => layersOf(state.kind),
    get kind() {
      return state.kind;
    },
    get number() {
      return state.layer;
    },
    get pinned() {
      return state.pin;
    },
    on: (what, listener) => listeners[what].push(listener),
    redraw: () => tell("choice"),
    /** What another state can adopt, as far as it fits there. */
    choices: () => ({ ...state, kind: kinds[state.kind].name }),
    adopt({ kind, layer: number, head, pin, hover }) {
      const before = JSON.stringify([state.kind, state.layer, state.head]);
      const found = kinds.findIndex((each) => each.name === kind);
      if (found >= 0) state.kind = found;
      state.layer = Math.min(number, layersOf(state.kind).length - 1);
      state.head = head;
      const { rows, columns } = layer();
      const fit = (place) => ({
        row: inside(place.row, rows.length),
        column: inside(place.column, columns.length),
      });
      state.pin = fit(pin);
      state.hover = hover && fit(hover);
      remember();
      const changed = JSON.stringify([state.kind, state.layer, state.head]) !== before;
      tell(changed ? "choice" : "focus");
    },
    hover(place) {
      state.hover = place && { ...nothing, ...place };
      tell("focus");
    },
    /** Hold on to a place; the same place again, or null, lets go. */
    pin(place, toggle = true) {
      const wanted = { ...nothing, ...place };
      const same = wanted.row === state.pin.row && wanted.column === state.pin.column;
      state.pin = toggle && same ? nothing : wanted;
      state.hover = null;
      remember();
      tell("focus");
    },
  };
}
