// "Believe it?": the same figure by the same model with freshly drawn weights, or with a part set to zero.

import { isKorean, say } from "/static/draw/language.js";
import { h } from "./parts.js";

const WORDS = {
  en: {
    legend: "Believe it?",
    choices: { trained: "this model", untrained: "the same model, untrained", without: "this model without" },
    part: "The part that is set to zero",
    cross: (layer) => `${layer}: what cross-attention adds`,
    attention: (layer) => `${layer}: what attention adds`,
    feedforward: (layer) => `${layer}: what feed-forward adds`,
    state: (token, layer) => `the vector of “${token}” after ${layer}`,
    stays: "Without this part the answer stays the same: other parts do its work here, or it does none.",
    becomes: (before, after) => `Without this part “${before}” becomes “${after}”.`,
    hint: "A map convinces even of a model that has learned nothing: compare.",
    all: "Every head attends otherwise than the untrained model's: what you see was learned.",
    same: (count, of, which) =>
      `${count} of ${of} heads: this attention does not differ from the untrained model's (${which}).`,
    heads: (site, heads) => `${site}, ${heads.length > 1 ? "heads" : "head"} ${heads.join(", ")}`,
  },
  ko: {
    legend: "믿어도 될까요?",
    choices: { trained: "이 모델", untrained: "같은 모델, 학습 전", without: "이 모델에서 빼기:" },
    part: "0으로 만들 부분",
    cross: (layer) => `${layer}: 크로스 어텐션이 더하는 것`,
    attention: (layer) => `${layer}: 어텐션이 더하는 것`,
    feedforward: (layer) => `${layer}: 피드포워드가 더하는 것`,
    state: (token, layer) => `${layer} 다음의 “${token}” 벡터`,
    stays: "이 부분을 빼도 답이 그대로입니다. 다른 부분이 같은 일을 하거나, 여기서는 하는 일이 없습니다.",
    becomes: (before, after) => `이 부분을 빼면 “${before}” 대신 “${after}”가 나옵니다.`,
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

/** The parts that can be set to zero, nearest to what is chosen in a figure first: { site: label }. */
function parts(state, words) {
  const layer = state.layer();
  const found = /^(.+) layer (\d+) (self|cross)$/.exec(layer.site ?? "");
  if (!found) return {};
  const [, stack, number, kind] = found;
  const here = `${stack} layer ${number}`;
  const head = state.look()?.name;
  const sites = /^\d+$/.test(head ?? "") ? { [`${layer.site} head ${head}`]: words.heads(say(layer.site), [head]) } : {};
  const encoder = state.kinds.find(({ name }) => name === "encoder self")?.layers.length;
  const from = kind === "cross" ? `encoder layer ${encoder}` : here;
  const vectors = layer.columns.flatMap((token, place) =>
    typeof token === "string" && (kind !== "cross" || encoder)
      ? [[`${from} state token ${place}`, words.state(token.replaceAll("▁", ""), say(from))]] : []);
  const pinned = vectors[state.pinned.column];
  if (pinned) sites[pinned[0]] = pinned[1];
  const added = kind === "cross" ? "cross" : "attention";
  sites[`${here} added ${added}`] = words[added](say(here));
  sites[`${here} added feedforward`] = words.feedforward(say(here));
  return { ...sites, ...Object.fromEntries(vectors) };
}

/** What a model answered, in words. */
const answerOf = ({ data }) => data.told.translation ?? data.told.answer ?? data.view.classes?.[0]?.label ?? "";

/**
 * A switch between a model, the same one untrained, and the model without a part, on top of `box`.
 *
 * `ask(which, site)` asks for the figure of one of them, `show(answer)` draws an answer of the trained
 * model again, and `state()` is what is chosen in the figure. Whoever draws an answer tells it to `drawn`.
 */
export function makeBelieve(box, { ask, show, state }) {
  const words = WORDS[isKorean() ? "ko" : "en"];
  const name = `believe-${++made}`;
  const said = h("span", { role: "status" });
  const part = h("select", { "aria-label": words.part, onchange: () => ask("without", part.value) });
  const inputs = {};
  const labels = Object.entries(words.choices).map(([which, label]) => {
    inputs[which] = h("input", { type: "radio", name, id: `${name}-${which}`, value: which, onchange: () => choose(which) });
    return h("label", { for: inputs[which].id }, inputs[which], ` ${label} `);
  });
  const switched = h("span", { role: "radiogroup", "aria-label": words.legend }, `${words.legend} `, labels, part);
  const group = h("div", { class: "believe", hidden: true }, h("p", { class: "about" }, switched, h("br"), said));
  box.prepend(group);
  let kept = null;

  function choose(which) {
    if (which === "trained" && kept) show(kept);
    else ask(which, part.value);
  }

  /** Offer the parts that are near to what is chosen now; what is left out already stays. */
  function offer(without = inputs.without.checked ? part.value : null) {
    if (!state()) return;
    const sites = parts(state(), words);
    if (without && !(without in sites)) sites[without] = [...part.options].find((each) => each.value === without)?.text ?? without;
    part.replaceChildren(...Object.entries(sites).map(([site, label]) => h("option", { value: site }, label)));
    if (without) part.value = without;
    part.hidden = inputs.without.parentElement.hidden = !part.options.length;
  }
  for (const event of ["click", "keyup"]) box.addEventListener(event, ({ target }) => group.contains(target) || offer());

  return {
    /** An answer was drawn: of the trained model, of the untrained, or without a part. */
    drawn(answer, which, without) {
      inputs[which].checked = true;
      if (which === "untrained") said.textContent = verdict(answer.data.view);
      else if (which === "without") {
        const [before, after] = [kept ? answerOf(kept) : "", answerOf(answer)];
        said.textContent = !before || before === after ? words.stays : words.becomes(before, after);
      } else if (answer !== kept) said.textContent = words.hint;
      if (which === "trained") kept = answer;
      offer(without);
      group.hidden = !kept?.data.view.maps.length || box.classList.contains("of-panel");
    },
    /** The figure is gone. */
    clear() {
      kept = null;
      group.hidden = true;
    },
    /** What was asked for was not to be had: the last one stays. */
    back(which) {
      inputs[which].checked = true;
    },
  };
}
