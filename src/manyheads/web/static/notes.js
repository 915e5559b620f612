// What a model knows, how sure it is, and what the server notes about an answer, in plain words.

import { say } from "/static/draw/language.js";
import { t } from "./words.js";

const FEW = 3; // new words that are named
const LIST = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/g;
const listed = (text) => [...text.matchAll(LIST)].map((each) => each[1] ?? each[2]);
const NUMBERS = /numbers are not those of the text/; // the note is told as it is
const RULES = [
  [/unusual words: (.*?)(?:; [a-z]|\. Check|$)/, (found) => ({ words: listed(found[1]) })],
  [/letters of another script/, () => ({ kind: "script" })],
  [/characters that the vocabulary does not have: (.*?)(?:; [a-z]|\. Check|$)/, (found) => ({ signs: listed(found[1]) })],
  [/is unsure of this translation: .* probability of (\d+)%/, (found) => ({ sure: Number(found[1]) / 100 })],
  [/is unsure: the most probable class/, () => ({ kind: "classes" })],
  [/learned to (describe|recognise)/, () => ({ kind: "picture" })],
  [/learned to read/, () => ({ kind: "print" })],
  [/written in capitals/, () => ({ kind: "capitals" })],
  [/repeats itself/, () => ({ kind: "repeats" })],
  [/something may be left out/, () => ({ kind: "fewer" })],
  [/was cut off/, () => ({ kind: "cut" })],
  [/more than any in training|only the first/, () => ({ kind: "long" })],
];

/** What notes say of a sentence: new words and signs, how sure, and kinds of doubt; the rest as it is. */
export function read(notes = []) {
  const told = { words: [], signs: [], sure: null, kinds: [], rest: [] };
  for (const note of notes ?? []) {
    let known = false;
    for (const [pattern, make] of RULES) {
      const found = pattern.exec(note);
      if (!found) continue;
      known = true;
      const made = make(found);
      told.words.push(...(made.words ?? []));
      told.signs.push(...(made.signs ?? []));
      if (made.kind) told.kinds.push(made.kind);
      told.sure ??= made.sure ?? null;
    }
    if (!known) told.rest.push(note);
  }
  return told;
}

const isOfAnswer = (note) => NUMBERS.test(note) || RULES.some(([pattern]) => pattern.test(note));

/** The notes of a look that are on its answer. */
export const ofAnswer = (notes) => notes.filter(isOfAnswer);

/** The notes of a look that are on how to read it. */
export const ofLook = (notes) => notes.filter((note) => !isOfAnswer(note));

/** Notes as sentences for a person; those of a document begin with a place. */
export function noteItems(notes, model) {
  return (notes ?? []).map((note) => {
    const place = /^((?:line|paragraph|cell|text) \d+: (?:'.*?'|".*?")): (.*)$/s.exec(note);
    const told = read([place ? place[2] : note]);
    const words = plain(told, model).join(" ") || say(place ? place[2] : note);
    return place ? `${place[1]}: ${words}` : words;
  });
}

/** Whether an answer should be checked: one to a text in capitals need not be. */
export const isDoubtful = ({ words, signs, sure, kinds, rest }) =>
  Boolean(words.length || signs.length || rest.length || sure !== null || kinds.some((kind) => kind !== "capitals"));

/** The sentences that `read` stands for; that the answer should be checked is said once. */
export function plain(told, model) {
  const { words, signs, sure, kinds, rest } = told;
  const few = (all) => all.slice(0, FEW).map((each) => `“${each}”`).join(", ");
  const more = signs.filter((sign) => !words.some((word) => word.includes(sign)));
  return [
    ...(words.length ? [t().newWords(few(words))] : []),
    ...(more.length ? [t().newSigns(few(more))] : []),
    ...kinds.map((kind) => t().doubts[kind](model)),
    ...(sure !== null ? [t().unsureOf] : []),
    ...rest.map((note) => say(note)),
    ...(isDoubtful(told) && !rest.length ? [t().check] : []),
  ];
}
