// Sentencepiece's unigram model: the segmentation with the highest score (Kudo 2018), found by
// Viterbi; what has no piece is written as bytes. Equal to sentencepiece, float32 sums included.

const SPACE = "\u2581";
const UNKNOWN_PENALTY = 10;

export class Tokenizer {
  constructor({ pieces, scores, bytes, skipped, first }) {
    this.pieces = pieces; // text of each token
    this.bytes = bytes; // token of each byte
    this.first = first; // tokens below are special, and no part of a text
    this.skipped = new Set(skipped); // control symbols, such as languages
    this.byteOf = new Map(bytes.map((token, byte) => [token, byte]));
    this.known = new Map();
    this.longest = 1;
    const lowest = Math.min(...scores.filter((score) => score !== null));
    this.unknown = Math.fround(lowest - UNKNOWN_PENALTY);
    for (let token = 0; token < pieces.length; token++) {
      if (scores[token] === null) continue; // special, or a byte
      this.known.set(pieces[token], [token, Math.fround(scores[token])]);
      this.longest = Math.max(this.longest, [...pieces[token]].length);
    }
  }

  encode(text) {
    let clean = text.replace(/^ +/, "").replaceAll(/ +/g, SPACE);
    while (clean.endsWith(SPACE)) clean = clean.slice(0, -SPACE.length);
    if (!clean) return [];
    const letters = [...(SPACE + clean)];
    const best = letters.map(() => null).concat(null); // [score, begin, token] of each end
    best[0] = [0, -1, -1];
    for (let begin = 0; begin < letters.length; begin++) {
      let piece = "", alone = false;
      const reach = Math.min(letters.length, begin + this.longest);
      for (let end = begin + 1; end <= reach; end++) {
        piece += letters[end - 1];
        const found = this.known.get(piece);
        if (!found) continue;
        alone ||= end === begin + 1;
        offer(best, begin, end, found[1], found[0]);
      }
      if (!alone) offer(best, begin, begin + 1, this.unknown, -1);
    }
    const ids = [];
    for (let end = letters.length; end > 0; end = best[end][1]) {
      const [, begin, token] = best[end];
      if (token >= 0) ids.push(token);
      else ids.push(...[...new TextEncoder().encode(letters[begin])].reverse().map((b) => this.bytes[b]));
    }
    return ids.reverse();
  }

  decode(ids) {
    let text = "", open = [];
    const close = () => {
      if (open.length) text += new TextDecoder().decode(new Uint8Array(open));
      open = [];
    };
    for (const id of ids) {
      if (id < this.first || this.skipped.has(id)) continue;
      if (this.byteOf.has(id)) {
        open.push(this.byteOf.get(id));
        continue;
      }
      close();
      const piece = this.pieces[id];
      text += (!text && piece.startsWith(SPACE) ? piece.slice(1) : piece).replaceAll(SPACE, " ");
    }
    close();
    return text;
  }
}

function offer(best, begin, end, score, token) {
  const sum = Math.fround(best[begin][0] + score);
  if (best[end] === null || sum > best[end][0]) best[end] = [sum, begin, token];
}
