// The words of the figures in the person's language: `lang` of the document, English or Korean.
//
// Texts are written in English, here and in Python; `korean.js` has the Korean of each. A text that
// is not there is shown as it is.

import { PATTERNS, TEXTS } from "./korean.js";

export const isKorean = () => document.documentElement.lang.startsWith("ko");

/** The person's language among the two: the browser's first of them. */
export function preferred() {
  return navigator.languages.find((each) => /^(ko|en)\b/.test(each))?.slice(0, 2) ?? "en";
}

/** A text in the language of the page; `{name}` is replaced by what is given. */
export function say(text, given = {}) {
  const said = isKorean() ? korean(text) : text;
  return said.replace(/\{(\w+)\}/g, (all, name) => (name in given ? String(given[name]) : all));
}

/** The Korean of an English text; the text itself if there is none. */
export function korean(text) {
  if (!text) return text ?? "";
  if (Object.hasOwn(TEXTS, text)) return TEXTS[text];
  for (const [pattern, template] of PATTERNS) {
    const found = pattern.exec(text);
    if (found) return template.replace(/([$@])(\d)/g, (_, how, i) => part(how, found[i] ?? ""));
  }
  return text;
}

const part = (how, found) => (how === "@" ? korean(found) : found);

/** Whether there is Korean for a text, or none is needed: tests ask. */
export const hasKorean = (text) =>
  !/[a-z]{3}/i.test(text) || Object.hasOwn(TEXTS, text) || korean(text) !== text;
