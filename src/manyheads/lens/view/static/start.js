// The report's own last step: find what lens/view/report.py wrote into the page, and draw it.

import { preferred } from "./language.js";
import { draw } from "./look.js";

const text = (id) => document.getElementById(id).textContent;
const root = document.getElementById("look");

document.documentElement.lang = preferred();

try {
  await draw(root, JSON.parse(text("look-data")), text("look-weights"));
} catch (error) {
  const words = document.createElement("p");
  words.textContent = `This page could not be drawn: ${error.message}. It needs a browser of 2024 or later.`;
  root.replaceChildren(words);
  throw error;
}
