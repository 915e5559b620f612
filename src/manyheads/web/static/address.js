// What the address remembers: after the #, which is never sent to the server.

const words = () => new URLSearchParams(location.hash.slice(1));

export const recall = (name) => words().get(name);

/** Set some; null removes. What the figure remembers stays. */
export function remember(change) {
  const all = words();
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === "") all.delete(name);
    else all.set(name, value);
  }
  history.replaceState(null, "", `#${all}`);
}
