// The words of the page, in English and in Korean.

const EN = {
  views: { translate: "Translate", see: "See", describe: "Describe", read: "Read", search: "Search", compare: "Compare", learn: "Learn" },
  sections: "Sections",
  language: "한국어",
  languageLabel: "Switch to Korean",
  theme: "Switch theme",
  model: "Model",
  source: "Your sentence",
  translation: "Translation",
  hint: "Type a sentence: its translation follows.",
  examples: "Examples",
  others: "Other translations",
  candidates: (word) => `Other candidates for “${word}”`,
  force: "Choose one, and the rest is translated again.",
  forced: (text) => `It has to begin with “${text}”.`,
  release: "Let the model choose",
  chance: (percent) => `probability ${percent}`,
  without: "Leave words out",
  withoutHint: "Click words to leave out, and see what changes.",
  withoutWords: (words) => `Without ${words}`,
  own: "Your own translation",
  ownHint: "Write a translation to see how probable each of its words is to the model.",
  perWord: "How surprised the model was by each word",
  attention: "What the model attended to",
  figureOf: "The figure below belongs to the model's own translation, not to the one that you forced.",
  save: "Save this view as a page",
  trained: (data) => `Trained on ${data}`,
  measured: (name, value) => `${name} ${value}`,
  drop: "Drop an image here, or choose one",
  images: { ship: "a ship", car: "a car", airplane: "an airplane", heart: "a heart", seven: "a seven", line: "a Korean sentence" },
  paste: "PNG, JPEG, WebP and others; it stays on this machine's server.",
  cover: "Click parts of the image to cover them, and see what changes.",
  uncover: "Uncover all",
  covered: "Part {row}, {column}",
  classes: "Most probable classes",
  labels: "Classes, in words",
  labelsHint: "separated by commas",
  describeHint: "What the model says about the image, in each of its languages.",
  readHint: "The text in the image, and its translation.",
  translateTo: "Translate to",
  none: "not at all",
  query: "Words to search for",
  hints: {
    translate: "Point at a word to see what it was translated from.",
    see: "Every image gets one of the model's classes, also one that shows none of them.",
  },
  pair: (from, to) => `${from} to ${to}`,
  parameters: (count) => `${count} parameters`,
  integrate: "Add integrated gradients (slow)",
  cancel: "Cancel",
  depth: "How much is shown",
  depths: ["Answer", "Attention", "Lab"],
  depthHints: ["Only the answer", "Also what the model attended to", "Also every measure of the model"],
  idea: "Idea",
  back: "Back",
  next: "Next",
  equation: "Equation",
  errata: "What is often said, and what is true",
  errataHint: "Introductions to attention often get these wrong.",
  said: "Often said:",
  right: "True:",
  liveOn: (model) => `The figure is computed now, by ${model}. Code of this idea:`,
  notServed: "No served model can draw the figure of this idea. Its code:",
  sides: ["First", "Second"],
  compareHint: "Two models, or two inputs of one: what you point at lights up in both, and equal weights have equal colours.",
  difference: "Difference",
  differenceOf: "The second map less the first: blue where the second attends more, orange where less.",
  noDifference: "The two maps have different shapes, so there is no difference to draw: choose one model and inputs of as many tokens, or the same kind of map.",
  found: (count) => `${count} images`,
  waiting: "Working…",
  late: "The model is being loaded…",
  token: "This server asks for a token",
  send: "Send",
  unsure: (words) => `The model was unsure of: ${words}`,
  failed: "No answer",
};

const KO = {
  views: { translate: "번역", see: "보기", describe: "설명", read: "읽기", search: "찾기", compare: "비교", learn: "배우기" },
  sections: "화면",
  language: "English",
  languageLabel: "영어로 바꾸기",
  theme: "밝기 바꾸기",
  model: "모델",
  source: "원문",
  translation: "번역문",
  hint: "문장을 쓰면 번역이 따라옵니다.",
  examples: "예문",
  others: "다른 번역",
  candidates: (word) => `“${word}” 자리의 다른 후보`,
  force: "하나를 고르면 뒤를 다시 번역합니다.",
  forced: (text) => `“${text}”로 시작해야 합니다.`,
  release: "모델에 맡기기",
  chance: (percent) => `확률 ${percent}`,
  without: "단어 빼기",
  withoutHint: "단어를 눌러 빼고 무엇이 달라지는지 보세요.",
  withoutWords: (words) => `${words} 없이`,
  own: "나의 번역",
  ownHint: "번역을 쓰면 모델이 보는 단어마다의 확률이 나옵니다.",
  perWord: "단어마다 모델이 놀란 정도",
  attention: "모델이 주목한 곳",
  figureOf: "아래 그림은 후보를 고른 번역이 아니라 모델 자신의 번역에 대한 것입니다.",
  save: "이 화면을 파일로 저장",
  trained: (data) => `학습 자료: ${data}`,
  measured: (name, value) => `${name} ${value}`,
  drop: "이미지를 여기에 놓거나 고르세요",
  images: { ship: "배", car: "자동차", airplane: "비행기", heart: "하트", seven: "숫자 7", line: "한국어 문장" },
  paste: "PNG, JPEG, WebP 등. 이 컴퓨터의 서버를 벗어나지 않습니다.",
  cover: "이미지의 부분을 눌러 가리고 무엇이 달라지는지 보세요.",
  uncover: "모두 되돌리기",
  covered: "{row}행 {column}열",
  classes: "가장 그럴듯한 분류",
  labels: "분류 (말로)",
  labelsHint: "쉼표로 나눕니다",
  describeHint: "모델이 아는 언어마다 이미지를 설명합니다.",
  readHint: "이미지 속의 글과 그 번역입니다.",
  translateTo: "번역할 언어",
  none: "번역하지 않음",
  query: "찾을 말",
  hints: {
    translate: "단어를 가리키면 무엇에서 번역되었는지 보입니다.",
    see: "모든 이미지는 모델의 분류 가운데 하나를 받습니다. 어느 것도 아닌 이미지도 그렇습니다.",
  },
  pair: (from, to) => `${from}에서 ${to}로`,
  parameters: (count) => `파라미터 ${count}`,
  integrate: "적분 기울기 더하기 (느림)",
  cancel: "그만두기",
  depth: "보이는 깊이",
  depths: ["답", "어텐션", "실험실"],
  depthHints: ["답만", "모델이 주목한 곳도", "모델의 모든 측정값도"],
  idea: "개념",
  back: "이전",
  next: "다음",
  equation: "수식",
  errata: "흔히 하는 말과 사실",
  errataHint: "어텐션을 소개하는 글이 자주 틀리는 것들입니다.",
  said: "흔히 하는 말:",
  right: "사실:",
  liveOn: (model) => `그림은 지금 ${model}이(가) 계산한 것입니다. 이 개념의 코드:`,
  notServed: "이 개념의 그림을 그릴 모델이 없습니다. 코드:",
  sides: ["첫째", "둘째"],
  compareHint: "모델 둘, 또는 한 모델의 입력 둘. 가리키는 것이 둘 다에서 빛나고, 같은 가중치는 같은 색입니다.",
  difference: "차이",
  differenceOf: "둘째 지도에서 첫째를 뺀 것: 파랑은 둘째가 더, 주황은 덜 주목한 곳입니다.",
  noDifference: "두 지도의 모양이 달라 차이를 그릴 수 없습니다. 한 모델과 토큰 수가 같은 입력, 또는 같은 종류의 지도를 고르세요.",
  found: (count) => `이미지 ${count}개`,
  waiting: "계산하는 중…",
  late: "모델을 불러오는 중…",
  token: "이 서버는 토큰이 필요합니다",
  send: "보내기",
  unsure: (words) => `모델이 자신 없어 한 단어: ${words}`,
  failed: "답이 없습니다",
};

const CHOSEN = "manyheads-language";
let words = null;

function stored() {
  try {
    return localStorage.getItem(CHOSEN);
  } catch {
    return null; // storage is switched off
  }
}

/** The words of the chosen language: the person's choice, or the browser's first of the two. */
export function t() {
  if (!words) use(stored() ?? (navigator.languages.find((each) => /^(ko|en)/.test(each)) ?? "en"));
  return words;
}

function use(language) {
  words = language.startsWith("ko") ? KO : EN;
  document.documentElement.lang = words === KO ? "ko" : "en";
}

/** The other language, from now on. */
export function switchLanguage() {
  const language = t() === KO ? "en" : "ko";
  try {
    localStorage.setItem(CHOSEN, language);
  } catch {
    // for this visit only
  }
  use(language);
}

const names = {};

/** The name of a language in the page's own. */
export function languageName(code) {
  const own = document.documentElement.lang;
  names[own] ??= new Intl.DisplayNames([own], { type: "language" });
  return code ? names[own].of(code) : "";
}
