// "Believe it?": the same figure by the same model with freshly drawn weights, and what does not differ.

import { isKorean, say } from "/static/draw/language.js";
import { h } from "./parts.js";

const WORDS = {
  en: {
    legend: "Believe it?",
    choices: ["this model", "the same model, untrained"],
    hint: "A map convinces even of a model that has learned nothing: compare.",
    all: "Every head attends otherwise than the untrained model's: what you see was learned.",
    same: (count, of, which) =>
      `${count} of ${of} heads: this attention does not differ from the untrained model's (${which}).`,
    heads: (site, heads) => `${site}, ${heads.length > 1 ? "heads" : "head"} ${heads.join(", ")}`,
  },
  ko: {
    legend: "믿어도 될까요?",
    choices: ["이 모델", "같은 모델, 학습 전"],
    hint: "아무것도 배우지 않은 모델의 맵도 그럴듯해 보입니다. 견주어 보세요.",
    all: "모든 헤드의 어텐션이 학습 전 모델과 다릅니다. 보이는 것은 배운 것입니다.",
    same: (count, of, which) => `헤드 ${of}개 가운데 ${count}개의 어텐션은 학습 전 모델과 다르지 않습니다 (${which}).`,
    heads: (site, heads) => `${site}, 헤드 ${heads.join(", ")}`,
  },
};

let made = 0;

/** Say which heads of the trained model do not differ from those of the untrained model's view. */
export function verdict(view) {
  const words = WORDS[isKorean() ? "ko" : "en"];
  const maps = view.maps.filter((map) => map.untrained_distance);
  const same = maps.map((map) => ({
    site: say(map.site),
    heads: map.untrained_distance.flatMap((each, i) => (each <= map.untrained_noise ? [i + 1] : [])),
  })).filter(({ heads }) => heads.length);
  const all = maps.reduce((sum, map) => sum + map.untrained_distance.length, 0);
  if (!all) return "";
  if (!same.length) return words.all;
  const count = same.reduce((sum, { heads }) => sum + heads.length, 0);
  return words.same(count, all, same.map(({ site, heads }) => words.heads(site, heads)).join("; "));
}

/**
 * A switch between a model and the same one untrained, on top of `box`.
 *
 * `ask(untrained)` asks for the figure of one of them, and `show(answer)` draws an answer of the trained
 * model again. Whoever draws an answer tells it to `drawn`.
 */
export function makeBelieve(box, { ask, show }) {
  const words = WORDS[isKorean() ? "ko" : "en"];
  const name = `believe-${++made}`;
  const said = h("span", { role: "status" });
  const [trained, untrained] = words.choices.map((choice, i) =>
    h("input", { type: "radio", name, id: `${name}-${i}`, value: i ? "untrained" : "trained", onchange: () => choose(Boolean(i)) }),
  );
  const labels = [trained, untrained].map((input, i) => h("label", { for: input.id }, input, ` ${words.choices[i]} `));
  const switched = h("span", { role: "radiogroup", "aria-label": words.legend }, `${words.legend} `, labels);
  const group = h("div", { class: "believe", hidden: true }, h("p", { class: "about" }, switched, h("br"), said));
  box.prepend(group);
  let kept = null;

  const choose = (fresh) => (fresh || !kept ? ask(fresh) : show(kept));

  return {
    /** An answer was drawn: of the trained model, or of the untrained. */
    drawn(answer, fresh) {
      (fresh ? untrained : trained).checked = true;
      if (fresh) said.textContent = verdict(answer.data.view);
      else if (answer !== kept) said.textContent = words.hint;
      if (!fresh) kept = answer;
      group.hidden = !kept?.data.view.maps.length || box.classList.contains("of-panel");
    },
    /** The figure is gone. */
    clear() {
      kept = null;
      group.hidden = true;
    },
    /** What was asked for was not to be had: the last one stays. */
    back(fresh) {
      (fresh ? untrained : trained).checked = true;
    },
  };
}
