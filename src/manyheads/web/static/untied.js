// Words of the source that no thread leads to: the translation may have left them out.

import { SHOWN } from "./threads.js";

// Words that may have none though nothing is lost: of grammar, and verbs that say little by themselves.
const USUAL = new Set(
  `
    a an the this that these those there here i me my mine myself you your yours yourself he him his himself
    she her hers herself it its itself we us our ours ourselves they them their theirs themselves one am is
    are was were be been being do does did done doing have has had having will would shall should can could
    may might must ought and or but nor so if than as because while although though when where who whom
    whose which what how why whether of in on at by for with from to into onto upon out up down off over
    under about after before between through during without within against across along around behind beside
    near since until till toward towards away back some any all both each every either neither such too very
    just even also only more most much many few own other another same then let get gets got getting gotten
    go goes went going gone come comes came coming take takes took taking taken make makes made making give
    gives gave giving given put puts putting look looks looked looking keep keeps kept keeping turn turns
    turned turning lets used
  `.trim().split(/\s+/),
);
// Languages between which the mark is right more often than wrong, counted by hand in sentences that the list
// was not made from: by en-de in 35 sentences 5 of 8 marked words, by multi30k-en-de in 15 captions 7 of 8. By
// de-en, with a list like this, it was 2 of 7 in 15 sentences.
const MARKED = "en-de";

/** A word without its punctuation. */
export const bare = (text) => text.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

function isUsual(text) {
  const word = bare(text).toLowerCase();
  return !word || /n['’]t$/.test(word) || USUAL.has(word.split(/['’]/)[0]);
}

/** Places of words of the source that no link of a drawn weight leads to. `model` has their languages. */
export function untied(words, links, model) {
  if (`${model.source}-${model.target}` !== MARKED) return [];
  const tied = new Set(links.filter(({ weight }) => weight >= SHOWN).map(({ origin }) => origin));
  return words.flatMap(({ text, index }) => (tied.has(index) || isUsual(text) ? [] : [index]));
}
