// Sentences to begin with: what a model's own data are like.

const TEXTS = {
  "en-de": ["Can you recommend a good restaurant around here?", "I left my suitcase in the taxi."],
  "multi30k-en-de": [
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Two dogs play in the snow.",
  ],
  "enko-en-ko": ["This book is interesting.", "He is my friend."],
  "enko-ko-en": ["나는 그 책을 읽지 않았다.", "나는 집에 가고 싶어."],
  "date-en-ko": ["Friday, 20 November 2026", "March 3, 1999"],
  "korean-spacing-lstm": ["아버지가방에들어가신다", "이함수는리스트의길이를반환합니다."],
};

// What their data are, in both languages of the page.
const DATA = {
  "en-de": { en: "everyday sentences and photo captions", ko: "일상 문장과 사진 설명문" },
  "multi30k-en-de": { en: "photo captions", ko: "사진 설명문" },
  "enko-en-ko": { en: "software documentation", ko: "소프트웨어 문서" },
  "enko-ko-en": { en: "software documentation", ko: "소프트웨어 문서" },
  "date-en-ko": { en: "dates", ko: "날짜" },
  "cifar10-cct-2-3x2": { en: "small photos of 10 kinds", ko: "10가지 작은 사진" },
  digits: { en: "handwritten digits", ko: "손으로 쓴 숫자" },
  "emoji-caption": { en: "emoji", ko: "이모지" },
  "emoji-search": { en: "emoji", ko: "이모지" },
  "icon-search": { en: "icons", ko: "아이콘" },
  "read-ko": { en: "lines of printed Korean", ko: "인쇄된 한국어 줄" },
};

/** What a model knows, in words; of others the name of their data. */
export const dataOf = (model, language) => DATA[model.name]?.[language] ?? model.trained_on;

export const textExamples = (model) => TEXTS[model.name] ?? [];
