// From an image to the input of a model: the same numbers as Pillow gives in Python.

const BITS = 22; // of Pillow's fixed-point weights
const FILTERS = {
  box: [0.5, (x) => (x > -0.5 && x <= 0.5 ? 1 : 0)],
  bilinear: [1, (x) => Math.max(0, 1 - Math.abs(x))],
  hamming: [1, hamming],
  bicubic: [2, bicubic],
  lanczos: [3, (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0)],
};

// Decode a file to red, green, blue and alpha, 0..255.
export async function decodeImage(file) {
  const bitmap = await createImageBitmap(file, { premultiplyAlpha: "none", colorSpaceConversion: "none" });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, bitmap.width, bitmap.height);
}

// Fit an image and normalise it: channel by channel, row by row.
export function toInput({ data, width, height }, how) {
  let image = channelsOf(data, width, height, how.mode);
  image = fit(image, how);
  const { mean, std } = how;
  const size = how.width * how.height, count = image.channels;
  const values = new Float32Array(count * size);
  for (let c = 0; c < count; c++) {
    const m = Math.fround(mean[c % mean.length]), s = Math.fround(std[c % std.length]);
    for (let n = 0; n < size; n++) {
      const scaled = Math.fround(Math.fround(image.data[n * count + c] / 255) - m);
      values[c * size + n] = Math.fround(scaled / s);
    }
  }
  return { values, dims: [1, count, how.height, how.width] };
}

function channelsOf(data, width, height, mode) {
  const channels = mode === "L" ? 1 : 3;
  const found = new Uint8Array(width * height * channels);
  for (let n = 0; n < width * height; n++) {
    const [r, g, b] = [0, 1, 2].map((c) => onWhite(data[4 * n + c], data[4 * n + 3]));
    if (channels === 1) found[n] = (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
    else found.set([r, g, b], 3 * n);
  }
  return { data: found, width, height, channels };
}

function onWhite(value, alpha) {
  const sum = value * alpha * 128 + 255 * (255 - alpha) * 128 + (0x80 << 7);
  return (((sum >> 8) + sum) >> 8) >> 7;
}

function fit(image, how) {
  const { width, height } = how;
  if (how.crop_rounding === "none") {
    const box = cropBox(image, how);
    const whole = [0, 0, width, height];
    if (image.width === width && image.height === height && box.every((e, n) => e === whole[n])) return image;
    return resize(image, width, height, box, how.interpolation);
  }
  const [across, down] = wholeSize(image, how);
  const whole = resize(image, across, down, [0, 0, image.width, image.height], how.interpolation);
  const margins = [across - width, down - height];
  const [left, top] = margins.map((m) => (how.crop_rounding === "down" ? Math.floor(m / 2) : toEven(m / 2)));
  const data = new Uint8Array(width * height * image.channels);
  const line = width * image.channels;
  for (let y = 0; y < height; y++) {
    const from = ((y + top) * across + left) * image.channels;
    data.set(whole.data.subarray(from, from + line), y * line);
  }
  return { data, width, height, channels: image.channels };
}

function cropBox(image, how) {
  let seenWidth = image.width * how.crop, seenHeight = image.height * how.crop;
  if (how.resize_mode !== "stretch") {
    const scale = Math.min(image.width / how.width, image.height / how.height) * how.crop;
    [seenWidth, seenHeight] = [how.width * scale, how.height * scale];
  }
  const left = (image.width - seenWidth) / 2, top = (image.height - seenHeight) / 2;
  return [left, top, left + seenWidth, top + seenHeight];
}

function wholeSize(image, how) {
  let across = Math.floor(how.width / how.crop + 1e-9), down = Math.floor(how.height / how.crop + 1e-9);
  if (how.resize_mode !== "crop") return [across, down];
  if (across === down) {
    const short = Math.min(image.width, image.height);
    return [Math.floor((across * image.width) / short), Math.floor((down * image.height) / short)];
  }
  const ratio = Math.min(image.width / across, image.height / down);
  return [toEven(image.width / ratio), toEven(image.height / ratio)];
}

function toEven(x) { // Python's round
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 ? low + 1 : low;
}

function resize(image, width, height, box, interpolation) {
  const [left, top, right, bottom] = box.map(Math.fround);
  if (width !== image.width || left || right !== width) {
    image = alongRows(image, width, weights(image.width, left, right, width, interpolation));
  }
  if (height !== image.height || top || bottom !== height) {
    image = alongColumns(image, height, weights(image.height, top, bottom, height, interpolation));
  }
  return image;
}

function weights(length, from, to, outputs, interpolation) {
  const [reach, filter] = FILTERS[interpolation];
  const scale = Math.fround(to - from) / outputs;
  const wide = Math.max(scale, 1), support = reach * wide;
  const found = [];
  for (let n = 0; n < outputs; n++) {
    const centre = from + (n + 0.5) * scale;
    const begin = Math.max(0, Math.trunc(centre - support + 0.5));
    const end = Math.min(length, Math.trunc(centre + support + 0.5));
    const row = [];
    for (let x = begin; x < end; x++) row.push(filter((x - centre + 0.5) * (1 / wide)));
    const sum = row.reduce((a, b) => a + b, 0);
    const fixed = row.map((w) => (sum ? w / sum : w) * 2 ** BITS).map((w) => Math.trunc(w + (w < 0 ? -0.5 : 0.5)));
    found.push([begin, fixed]);
  }
  return found;
}

function alongRows(image, width, rows) {
  const { channels: count, height, data } = image;
  const made = new Uint8Array(width * height * count);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [begin, row] = rows[x];
      for (let c = 0; c < count; c++) {
        let sum = 2 ** (BITS - 1);
        for (let k = 0; k < row.length; k++) sum += data[(y * image.width + begin + k) * count + c] * row[k];
        made[(y * width + x) * count + c] = clip(sum);
      }
    }
  }
  return { data: made, width, height, channels: count };
}

function alongColumns(image, height, columns) {
  const { channels: count, width, data } = image;
  const made = new Uint8Array(width * height * count);
  const line = width * count;
  for (let y = 0; y < height; y++) {
    const [begin, column] = columns[y];
    for (let x = 0; x < line; x++) {
      let sum = 2 ** (BITS - 1);
      for (let k = 0; k < column.length; k++) sum += data[(begin + k) * line + x] * column[k];
      made[y * line + x] = clip(sum);
    }
  }
  return { data: made, width, height, channels: count };
}

function clip(sum) {
  return Math.min(255, Math.max(0, Math.floor(sum / 2 ** BITS)));
}

function bicubic(x) {
  const a = -0.5;
  x = Math.abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

function hamming(x) {
  x = Math.abs(x);
  if (x === 0) return 1;
  if (x >= 1) return 0;
  x *= Math.PI;
  return (Math.sin(x) / x) * (0.54 + 0.46 * Math.cos(x));
}

function sinc(x) {
  if (x === 0) return 1;
  x *= Math.PI;
  return Math.sin(x) / x;
}
