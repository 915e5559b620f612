// Sentences to begin with: what a model's own data are like.

const TEXTS = {
  "en-de": ["Can you recommend a good restaurant around here?", "I left my suitcase in the taxi."],
  "de-en": ["Können Sie hier ein gutes Restaurant empfehlen?", "Ich habe meinen Koffer im Taxi vergessen."],
  "en-fr": ["Can you recommend a good restaurant around here?", "I left my suitcase in the taxi."],
  "multi30k-en-de-distil": ["Two young men play the guitar.", "Three dogs run through deep snow."],
  "multi30k-en-de": [
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Two dogs play in the snow.",
  ],
  "en-ko": ["Where is the bathroom?", "I like coffee."],
  "ko-en": ["이 가방은 얼마예요?", "오늘은 날씨가 아주 좋네요."],
  "enko-en-ko": ["This book is interesting.", "He is my friend."],
  "enko-ko-en": ["나는 그 책을 읽지 않았다.", "나는 집에 가고 싶어."],
  "date-en-ko": ["Friday, 20 November 2026", "March 3, 1999"],
  "korean-spacing-lstm": ["아버지가방에들어가신다", "이함수는리스트의길이를반환합니다."],
};

// Two sentences of as many tokens that differ in a word, to compare.
const PAIRS = {
  "en-de": ["I lost my key.", "I lost my bag."],
  "de-en": ["Das Wasser ist kalt.", "Das Wasser ist warm."],
  "en-fr": ["I lost my key.", "I lost my bag."],
  "multi30k-en-de": ["A man is riding a bicycle.", "A man is riding a horse."],
  "multi30k-en-de-distil": ["Two boys play in the water.", "Two girls play in the water."],
  "en-ko": ["I like coffee.", "I like music."],
  "ko-en": ["저는 커피를 좋아해요.", "저는 음악을 좋아해요."],
  "enko-en-ko": ["The function returns a string.", "The function returns a set."],
  "enko-ko-en": ["이 함수는 값을 반환합니다.", "이 메서드는 값을 반환합니다."],
  "date-en-ko": ["March 3, 1999", "March 5, 1999"],
};

// Pictures to begin with, each for the model that knows such.
export const IMAGES = {
  ship: "cifar10-cct-2-3x2",
  car: "cifar10-cct-2-3x2",
  airplane: "cifar10-cct-2-3x2",
  seven: "digits",
  heart: "emoji-caption",
  line: "read-ko",
};

// What a model has read or seen, in both languages of the page.
export const DATA = {
  "en-de": { en: "everyday sentences and photo captions (234,000 pairs)", ko: "일상 문장과 사진 설명문 (23만 4천 쌍)" },
  "de-en": { en: "everyday sentences and photo captions (193,000 pairs)", ko: "일상 문장과 사진 설명문 (19만 3천 쌍)" },
  "en-fr": { en: "everyday sentences (161,000 pairs)", ko: "일상 문장 (16만 1천 쌍)" },
  "multi30k-en-de": { en: "29,000 photo captions, nothing else", ko: "사진 설명문 2만 9천 개뿐" },
  "multi30k-en-de-distil": { en: "210,000 photo captions, nothing else", ko: "사진 설명문 21만 개뿐" },
  "en-ko": { en: "everyday sentences, captions, news, software documentation (71,000 pairs)", ko: "일상 문장, 사진 설명문, 뉴스, 소프트웨어 문서 (7만 1천 쌍)" },
  "ko-en": { en: "everyday sentences, captions, news, software documentation (61,000 pairs)", ko: "일상 문장, 사진 설명문, 뉴스, 소프트웨어 문서 (6만 1천 쌍)" },
  "enko-en-ko": { en: "software documentation and a few everyday sentences (29,000 pairs)", ko: "소프트웨어 문서와 일상 문장 조금 (2만 9천 쌍)" },
  "enko-ko-en": { en: "software documentation and a few everyday sentences (29,000 pairs)", ko: "소프트웨어 문서와 일상 문장 조금 (2만 9천 쌍)" },
  "date-en-ko": { en: "dates, nothing else", ko: "날짜뿐" },
  "cifar10-cct-2-3x2": { en: "45,000 tiny photos of 10 kinds: animals and vehicles", ko: "10가지 동물과 탈것의 아주 작은 사진 4만 5천 장" },
  digits: { en: "1,400 handwritten digits, nothing else", ko: "손으로 쓴 숫자 1,400개뿐" },
  "emoji-caption": { en: "emoji, nothing else", ko: "이모지뿐" },
  "emoji-search": { en: "emoji, nothing else", ko: "이모지뿐" },
  "icon-search": { en: "icons, nothing else", ko: "아이콘뿐" },
  "read-ko": { en: "lines of printed Korean", ko: "인쇄된 한국어 줄" },
  "korean-spacing-lstm": { en: "Korean sentences", ko: "한국어 문장" },
};

/** What a model has read, in words; of others the name of their data. */
export const dataOf = (model, language) => DATA[model.name]?.[language] ?? model.trained_on;

export const textExamples = (model) => TEXTS[model.name] ?? [];

export const pairExamples = (model) => PAIRS[model.name] ?? textExamples(model);
