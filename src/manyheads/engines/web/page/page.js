// The page: one input, one answer.

import { load } from "./manyheads.js";

const $ = (name) => document.getElementById(name);
const model = await load();
const { kind, name, languages = [] } = model.about;
$("name").textContent = name;
document.title = name;
$(kind === "translate" ? "text-form" : "image-form").hidden = false;
for (const { code } of languages) $("language").add(new Option(code));
$("language").hidden = languages.length < 2;

async function show(run) {
  $("answer").textContent = "...";
  try {
    $("answer").textContent = await run();
  } catch (error) {
    $("answer").textContent = error.message;
  }
}

$("text-form").addEventListener("submit", (event) => {
  event.preventDefault();
  show(() => model.answer($("text").value));
});

async function ofImage() {
  const [file] = $("image").files;
  if (!file) return "";
  const found = await model.answer(file, $("language").value || undefined);
  if (typeof found === "string") return found;
  return found.slice(0, 5).map(({ label, probability }) => `${(100 * probability).toFixed(1)}%  ${label}`).join("\n");
}
$("image-form").addEventListener("change", () => show(ofImage));

window.model = model;
document.documentElement.dataset.ready = "yes";
