// A search's rule against endless repetition, as decode/loops.py has it.

const PERIOD = 16; // tokens of the longest unit whose repetition counts
const EVERY = 7; // steps between checks

/** Whether the last tokens, more than `most`, only repeat those a period before. */
export function loops(tokens, most) {
  const { length } = tokens;
  if (!most || length % EVERY) return false;
  for (let period = 1; period <= Math.min(PERIOD, length - most); period++) {
    if (tokens.slice(length - most).every((token, n) => token === tokens[length - most + n - period])) return true;
  }
  return false;
}

/** How many tokens a translation may repeat: more where its source repeats itself. */
export function allowed(source, most) {
  let longest = 0;
  for (let period = 1; period <= Math.min(PERIOD, source.length - 1); period++) {
    let row = 0;
    for (let n = period; n < source.length; n++) {
      row = source[n] === source[n - period] ? row + 1 : 0;
      longest = Math.max(longest, row);
    }
  }
  return most && most * (1 + Math.floor((2 * longest) / most));
}
