// Runs an exported model with onnxruntime-web: `const model = await load(); await model.answer(...)`.

import * as ort from "./ort/ort.wasm.min.mjs";
import { allowed, loops } from "./loops.js";
import { decodeImage, toInput } from "./pixels.js";
import { Tokenizer } from "./tokenizer.js";

// The Unicode Standard, table 3-7: of each state the bytes that may follow and the state behind.
const UTF8 = [
  [[0x00, 0x7f, 0], [0xc2, 0xdf, 1], [0xe0, 0xe0, 4], [0xe1, 0xec, 2], [0xed, 0xed, 5],
    [0xee, 0xef, 2], [0xf0, 0xf0, 6], [0xf1, 0xf3, 3], [0xf4, 0xf4, 7]],
  [[0x80, 0xbf, 0]], [[0x80, 0xbf, 1]], [[0x80, 0xbf, 2]], [[0xa0, 0xbf, 1]],
  [[0x80, 0x9f, 1]], [[0x90, 0xbf, 2]], [[0x80, 0x8f, 2]],
];
const LACKING = [0, 1, 2, 3, 2, 2, 3, 3]; // bytes that a character lacks in each state

export async function load(base = new URL(".", import.meta.url)) {
  ort.env.wasm.wasmPaths = new URL("ort/", base).href;
  ort.env.wasm.numThreads = 1;
  const about = await (await fetch(new URL("model.json", base))).json();
  const sessions = {};
  for (const [name, { file }] of Object.entries(about.graphs)) {
    sessions[name] = await ort.InferenceSession.create(new URL(file, base).href, { executionProviders: ["wasm"] });
  }
  return new { classify: Classifier, translate: Translator, caption: Captioner }[about.kind](about, sessions);
}

class Model {
  constructor(about, sessions) {
    this.about = about;
    this.sessions = sessions;
  }

  async image(given) { // a file, or pixels with data, width and height
    const pixels = given instanceof Blob ? await decodeImage(given) : given;
    const { values, dims } = toInput(pixels, this.about.preprocessing);
    return new ort.Tensor("float32", values, dims);
  }
}

class Classifier extends Model {
  // All classes with their probabilities, the most probable first.
  async answer(given) {
    const { logits } = await this.sessions.model.run({ images: await this.image(given) });
    const values = [...logits.data], most = Math.max(...values);
    const shares = values.map((each) => Math.exp(each - most));
    const sum = shares.reduce((a, b) => a + b, 0);
    const chances = this.about.multi_label
      ? values.map((each) => 1 / (1 + Math.exp(-each)))
      : shares.map((each) => each / sum);
    return this.about.classes
      .map((label, n) => ({ label, probability: chances[n] }))
      .sort((a, b) => b.probability - a.probability);
  }
}

class Writer extends Model {
  constructor(about, sessions) {
    super(about, sessions);
    this.target = new Tokenizer(about.target);
  }

  // Greedy search: the most likely token at each step, behind a prefix.
  async write(source, limit, loop, prefix = []) {
    const { ids, graphs, decode } = this.about;
    const read = await this.sessions.encoder.run(source);
    const [, heads, , size] = read.source_keys_0.dims;
    const inputs = graphs.decoder.inputs.slice(1);
    const past = inputs.filter((name) => name.startsWith("past_"));
    let feeds = Object.fromEntries(inputs.filter((name) => name in read).map((name) => [name, read[name]]));
    for (const name of past) feeds[name] = new ort.Tensor("float32", new Float32Array(0), [1, 1, heads, 0, size]);
    const written = [];
    let token = ids.start, state = 0;
    while (written.length < limit) {
      feeds.tokens = new ort.Tensor("int64", [BigInt(token)], [1, 1]);
      const found = await this.sessions.decoder.run(feeds);
      const scores = found.log_probabilities.data;
      if (written.length < prefix.length) token = prefix[written.length];
      else {
        const last = decode.forced_end && written.length === limit - 1;
        const room = limit - (decode.forced_end ? 1 : 0) - written.length;
        const ends = last || loops(written, loop);
        token = ends && state === 0 ? ids.end : this.best(scores, state, room);
      }
      if (token === ids.end) break;
      written.push(token);
      state = this.follows(state, token);
      for (const name of past) feeds[name] = found[name.slice("past_".length)];
    }
    return this.target.decode(written.slice(prefix.length));
  }

  // The state of UTF-8 behind a token; -1: it may not follow.
  follows(state, token) {
    const byte = this.target.byteOf.get(token);
    if (byte === undefined) return state === 0 ? 0 : -1;
    const found = UTF8[state].find(([first, last]) => first <= byte && byte <= last);
    return found ? found[2] : -1;
  }

  best(scores, state, room) {
    const { banned } = this.about.decode;
    for (const token of banned) scores[token] = -Infinity;
    let chosen = -1;
    for (let token = 0; token < scores.length; token++) {
      if (chosen >= 0 && !(scores[token] > scores[chosen])) continue;
      if (scores[token] === -Infinity) continue;
      if (state !== 0 || this.target.byteOf.has(token)) {
        const behind = this.follows(state, token);
        if (behind < 0 || (state === 0 && room > 0 && room < 4 && LACKING[behind] >= room)) continue;
      }
      chosen = token;
    }
    return chosen < 0 ? this.about.ids.end : chosen;
  }
}

class Translator extends Writer {
  constructor(about, sessions) {
    super(about, sessions);
    this.source = about.source ? new Tokenizer(about.source) : this.target;
  }

  async answer(text) {
    if (!text.trim()) return "";
    const { ids, most, decode } = this.about;
    const tokens = [...this.source.encode(text), ids.end];
    if (tokens.length > most) throw new Error(`The text has ${tokens.length} tokens, and may have ${most}.`);
    const source = new ort.Tensor("int64", BigInt64Array.from(tokens.map(BigInt)), [1, tokens.length]);
    const limit = decode.max_length ?? 2 * tokens.length + 16;
    return this.write({ source }, limit, allowed(tokens, decode.max_loop));
  }
}

class Captioner extends Writer {
  async answer(given, language = this.about.languages[0]?.code) {
    const token = this.about.languages.find(({ code }) => code === language)?.token;
    const prefix = token === undefined ? [] : [token];
    const { decode } = this.about;
    const limit = (decode.max_length ?? 128) + prefix.length;
    return this.write({ images: await this.image(given) }, limit, decode.max_loop, prefix);
  }
}
