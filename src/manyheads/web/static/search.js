// Find images of the served index by words, or by an image that they resemble.

import { makeAsker, post } from "./api.js";
import { debounced, dropZone, h, statusLine } from "./parts.js";
import { recall, remember } from "./address.js";
import { t } from "./words.js";

const TOP = 24;

export function search(page) {
  const field = h("input", { id: "query", type: "search", value: recall("query") ?? "", autocomplete: "off" });
  const drop = dropZone((url) => ask({ images: [url] }));
  const status = statusLine();
  const found = h("ol", { class: "found" });
  const asker = makeAsker({
    begin: () => found.classList.add("old"),
    done({ answers: [answer] }) {
      found.classList.remove("old");
      const images = answer?.images ?? [];
      status.say(answer ? t().found(images.length) : "");
      found.replaceChildren(
        ...images.map((each) => {
          const name = each.label ?? each.path.split(/[\\/]/).at(-1);
          const shown = each.thumbnail ? h("img", { src: each.thumbnail, alt: name }) : h("span", {}, "?");
          return h("li", {}, h("figure", {}, shown, h("figcaption", {}, name, h("small", {}, ` ${each.score.toFixed(2)}`))));
        }),
      );
    },
    failed: status.fail,
  });
  const ask = (given) =>
    asker.ask((signal) => post("/api/v1/search", { ...given, top: TOP, thumbnails: true }, { signal }));
  function follow() {
    const query = field.value.trim();
    remember({ view: "search", query });
    if (query) ask({ queries: [query] });
  }
  field.addEventListener("input", debounced(follow, 120));
  page.append(
    h("div", { class: "choice" }, h("label", { for: "query" }, t().query), field),
    drop.zone,
    status.line,
    found,
  );
  follow();
  return {
    destroy() {
      asker.stop();
      drop.destroy();
    },
  };
}
