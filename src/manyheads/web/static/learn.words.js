// The words of the Learn view that are needed before the path is opened, in English and in Korean.

const EN = {
  parts: "Ways to learn",
  path: "The path: eight steps",
  book: "The book of ideas",
  own: "Try it on your own sentence",
  ownImage: "Try it on your own picture",
  example: "Back to the example",
  unknown: (id) => `There is no idea “${id}”. This is the first one.`,
};
const KO = {
  parts: "배우는 길",
  path: "여덟 걸음",
  book: "개념 모음",
  own: "내 문장으로 해 보기",
  ownImage: "내 사진으로 해 보기",
  example: "예문으로 돌아가기",
  unknown: (id) => `“${id}”라는 개념은 없습니다. 첫 개념을 보여 드립니다.`,
};

export const learnWords = () => (document.documentElement.lang === "ko" ? KO : EN);
