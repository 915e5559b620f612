// What is kept on this machine, and nowhere else: the text, the choices, and what was translated before.

const NAME = "manyheads";
const MOST = 20; // texts of the history

function all() {
  try {
    return JSON.parse(localStorage.getItem(NAME)) ?? {};
  } catch {
    return {}; // forbidden, or not ours
  }
}

export const kept = (name) => all()[name] ?? null;

export function keep(change) {
  try {
    localStorage.setItem(NAME, JSON.stringify({ ...all(), ...change }));
  } catch {
    // Full or forbidden: the page works without.
  }
}

export const history = () => kept("history") ?? [];

/** Put a text on top of the history; what it only went on from is replaced. */
export function addToHistory(entry) {
  const others = history().filter(
    (each) => each.model !== entry.model || !(entry.text.startsWith(each.text) || each.text === entry.text),
  );
  keep({ history: [entry, ...others].slice(0, MOST) });
}

export const clearHistory = () => keep({ history: [] });
