// Save what is shown: as a PNG, drawn from the page as it stands, or as JSON.

/** Hand a file to the person. */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[\\/:*?"<>|]+/g, " ").trim() || "look";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Draw a part of the page, twice as fine as the screen at least; nothing is fetched for it. */
export async function toPng(element, margin = 24) {
  const bounds = element.getBoundingClientRect();
  const fine = Math.max(devicePixelRatio, 2);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((bounds.width + 2 * margin) * fine);
  canvas.height = Math.ceil((bounds.height + 2 * margin) * fine);
  const ink = canvas.getContext("2d");
  ink.scale(fine, fine);
  ink.fillStyle = getComputedStyle(document.body).backgroundColor;
  ink.fillRect(0, 0, canvas.width, canvas.height);
  ink.translate(margin - bounds.left, margin - bounds.top);
  await drawElement(ink, element);
  return new Promise((done) => {
    canvas.toBlob(done, "image/png");
  });
}

async function drawElement(ink, element) {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  const skipped = element.matches("details, .unsaved, .unseen") || style.visibility === "hidden";
  if (style.display === "none" || skipped) return;
  if (element.matches("input[type=range]")) {
    drawSlider(ink, element, box, style);
    return;
  }
  ink.save();
  ink.globalAlpha *= Number(style.opacity);
  if (style.mixBlendMode !== "normal") ink.globalCompositeOperation = style.mixBlendMode;
  if (style.filter !== "none") ink.filter = style.filter;
  if (style.backgroundColor !== "rgba(0, 0, 0, 0)") {
    ink.fillStyle = style.backgroundColor;
    ink.beginPath();
    ink.roundRect(box.left, box.top, box.width, box.height, parseFloat(style.borderTopLeftRadius) || 0);
    ink.fill();
  }
  const place = [box.left, box.top, box.width, box.height];
  if (style.overflowX === "auto") {
    ink.beginPath();
    ink.rect(...place);
    ink.clip(); // what has to be scrolled to
  }
  if (box.width && box.height) {
    if (element instanceof HTMLCanvasElement || element instanceof HTMLImageElement) {
      ink.imageSmoothingEnabled = style.imageRendering !== "pixelated";
      ink.drawImage(element, ...place);
    } else if (element instanceof SVGSVGElement) {
      ink.drawImage(await rasterised(element, box), ...place);
    }
  }
  if (!(element instanceof SVGElement)) {
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) drawText(ink, child, style);
    }
    for (const child of element.children) await drawElement(ink, child);
  }
  ink.restore();
}

/** A slider, whose track and thumb are the browser's own: no style tells what they look like. */
function drawSlider(ink, { value, min, max }, box, style) {
  const thumb = box.left + 8 + ((box.width - 16) * (value - min)) / (max - min);
  const middle = box.top + box.height / 2;
  const track = (end, colour, opacity) => {
    ink.globalAlpha = opacity;
    ink.fillStyle = colour;
    ink.beginPath();
    ink.roundRect(box.left, middle - 2.5, end - box.left, 5, 2.5);
    ink.fill();
  };
  ink.save();
  track(box.right, style.color, 0.2);
  track(thumb, style.accentColor, 1);
  ink.beginPath();
  ink.arc(thumb, middle, 8, 0, 2 * Math.PI);
  ink.fill();
  ink.restore();
}

/** Write each word where the page has it. */
function drawText(ink, node, style) {
  ink.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  ink.fillStyle = style.color;
  ink.textBaseline = "middle";
  const range = document.createRange();
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    ink.fillText(word, box.left, box.top + box.height / 2);
  }
}

const COPIED = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "visibility",
  "stroke-opacity", "font-family", "font-size", "font-weight", "vector-effect", "stroke-linecap",
];

/** An SVG as an image: its styles are written into a copy, for it stands alone then. */
function rasterised(svg, box) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    // As attributes, which a policy without inline styles allows.
    for (const name of COPIED) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("style");
  });
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  const source = new XMLSerializer().serializeToString(copy);
  return new Promise((done, failed) => {
    const image = new Image();
    image.onload = () => done(image);
    image.onerror = failed;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  });
}
