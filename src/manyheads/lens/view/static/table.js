// The table twin of a figure: for screen readers, for copying, and as CSV.

import { number } from "./draw.js";
import { say } from "./language.js";
import { download } from "./save.js";

const SHOWN = 400; // rows of a table; a file has all

/** A folded table; its rows are made when it is opened, and `drawn` is told of them each time. */
export function makeTable(parent, { name, columns, rows, open = false, drawn = () => {} }) {
  const details = parent.append("details").attr("class", "twin").property("open", open);
  details.append("summary").text(say("Table"));
  const tools = details.append("div").attr("class", "tools");
  const done = tools.append("span").attr("class", "done").attr("role", "status");
  button("Copy", async () => {
    await copy(text("\t"));
    done.text(say("Copied."));
  });
  button("CSV", () => download(new Blob([`\ufeff${text(",")}`], { type: "text/csv" }), `${name}.csv`));
  const room = details.append("div").attr("class", "room").attr("tabindex", 0);
  // Not a landmark: figures have as many tables as panels, some of one name.
  room.attr("role", "group").attr("aria-label", say(`Table: ${name}`));
  let now = { columns, rows };

  function button(label, act) {
    tools.insert("button", ".done").attr("type", "button").text(say(label)).on("click", act);
  }

  function fresh() {
    const value = (found) => (typeof found === "function" ? found() : found);
    now = { columns: value(columns), rows: value(rows) };
    done.text("");
  }

  function text(separator) {
    fresh();
    const quoted = (cell) => {
      const plain = String(cell ?? "");
      if (separator !== ",") return plain.replace(/[\t\n]/g, " ");
      // A spreadsheet would run what begins like a formula.
      const safe = typeof cell === "string" && /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
      return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return [now.columns, ...now.rows].map((row) => row.map(quoted).join(separator)).join("\n");
  }

  function draw() {
    if (!details.property("open")) return;
    fresh();
    room.selectAll("*").remove();
    const table = room.append("table");
    // A column's head is aligned as what stands below it: words left, numbers right. A corner heads none.
    const named = (cell) => String(cell ?? "") !== "";
    const words = (cell, i) => named(cell) && (!i || now.rows.some((cells) => typeof cells[i] === "string"));
    table.append("thead").append("tr").selectAll("*").data(now.columns)
      .join((heads) => heads.append((cell) => document.createElement(named(cell) ? "th" : "td")))
      .attr("scope", (cell) => (named(cell) ? "col" : null)).classed("words", words).text((cell) => cell);
    const row = table.append("tbody").selectAll("tr").data(now.rows.slice(0, SHOWN)).join("tr");
    row.append("th").attr("scope", "row").text((cells) => cells[0]);
    row.selectAll("td").data((cells) => cells.slice(1)).join("td")
      .classed("words", (cell) => typeof cell === "string").text((cell) => number(cell));
    drawn(table);
    if (now.rows.length > SHOWN) {
      room.append("p").text(say(`${SHOWN} of ${now.rows.length} rows; the CSV has all.`));
    }
  }

  details.on("toggle", draw);
  if (open) draw();
  return { draw };
}

/** The clipboard needs a safe address; a page from a disk falls back to a selection. */
async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    const area = document.createElement("textarea");
    area.value = words;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
