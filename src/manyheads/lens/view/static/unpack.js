// From the bytes in the page to numbers: see lens/view/compressed_weights.py for how they were written.

/** Turn base64 of deflated bytes into one Float32Array: all maps, each the mean and the heads. */
export async function unpack(text, { form, levels, count, rows }) {
  const packed = Uint8Array.from(atob(text.trim()), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const weights = new Float32Array(count);
  if (form === "decimals") {
    for (let i = 0; i < count; i++) weights[i] = (bytes[i] + 256 * bytes[count + i]) / levels;
    return weights;
  }
  const peaks = new DataView(bytes.buffer);
  let place = 0;
  let at = 4 * rows.reduce((sum, [many]) => sum + many, 0);
  let row = 0;
  for (const [many, width] of rows) {
    for (let i = 0; i < many; i++, row++) {
      const unit = peaks.getFloat32(4 * row, true) / levels;
      for (let j = 0; j < width; j++) weights[place++] = bytes[at++] * unit;
    }
  }
  return weights;
}

/** Cut the numbers into maps; in each, number 0 is the mean and the heads follow. */
export function spread(maps, weights) {
  let from = 0;
  return maps.map((map) => {
    const size = map.rows.length * map.columns.length;
    const matrices = Array.from({ length: map.heads + 1 }, () => {
      from += size;
      return weights.subarray(from - size, from);
    });
    return matrices;
  });
}
