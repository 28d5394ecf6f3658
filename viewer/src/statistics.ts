// Limits and histograms of the samples that are seen.

/** About `most` finite numbers of many, evenly taken. */
export function sample(parts: ArrayLike<number>[], most = 200_000): Float64Array {
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  const step = Math.max(1, Math.ceil(total / most));
  const out = new Float64Array(Math.ceil(total / step) + parts.length);
  let count = 0;
  for (const part of parts)
    for (let i = 0; i < part.length; i += step) if (Number.isFinite(part[i]!)) out[count++] = part[i]!;
  return out.subarray(0, count);
}

/** Percentiles of numbers that are sorted, between neighbours as NumPy does it. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  const place = (sorted.length - 1) * (percent / 100);
  const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  return low + (high - low) * (place % 1);
}

/** Limits for a colour map; null where there is nothing to see. */
export function limitsOf(sorted: ArrayLike<number>, percentiles: [number, number] | null, symmetric = false): [number, number] | null {
  if (sorted.length === 0) return null;
  const all: [number, number] = [sorted[0]!, sorted[sorted.length - 1]!];
  let limits = percentiles ? ([percentile(sorted, percentiles[0]), percentile(sorted, percentiles[1])] as [number, number]) : all;
  if (limits[0] === limits[1]) limits = all;
  if (symmetric) {
    const most = Math.max(Math.abs(limits[0]), Math.abs(limits[1]));
    limits = [-most, most];
  }
  if (limits[0] !== limits[1]) return limits;
  const margin = Math.abs(limits[0]) * 1e-3 || 1;
  return [limits[0] - margin, limits[1] + margin];
}

/** How many of the sorted numbers fall into each of `bins` equal parts of a range. */
export function histogram(sorted: ArrayLike<number>, range: [number, number], bins: number): Uint32Array {
  const counts = new Uint32Array(bins);
  const factor = bins / (range[1] - range[0]);
  for (let i = 0; i < sorted.length; i++) {
    const bin = Math.floor((sorted[i]! - range[0]) * factor);
    if (bin >= 0 && bin < bins) counts[bin]!++;
    else if (sorted[i] === range[1]) counts[bins - 1]!++;
  }
  return counts;
}
