// Where things are: indices of an array on the screen, and which tiles a picture needs.
import type { View } from "./look.ts";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** How indices along x and y become places in the plot. */
export interface Frame {
  view: View;
  /** Height of an element over its width, on the screen. */
  aspect: number;
  /** Elements along x and y. */
  columns: number;
  rows: number;
  /** Whether row 0 is at the bottom. */
  flipped: boolean;
  plot: Box;
}

export const across = ({ view, plot }: Frame, x: number) => plot.x + plot.width / 2 + (x - view.x) * view.z;

export function down({ view, plot, aspect, flipped }: Frame, y: number): number {
  return plot.y + plot.height / 2 + (flipped ? view.y - y : y - view.y) * view.z * aspect;
}

export const columnAt = ({ view, plot }: Frame, px: number) => view.x + (px - plot.x - plot.width / 2) / view.z;

export function rowAt({ view, plot, aspect, flipped }: Frame, py: number): number {
  const offset = (py - plot.y - plot.height / 2) / (view.z * aspect);
  return view.y + (flipped ? -offset : offset);
}

/** The view that shows all of an array. */
export function fit(columns: number, rows: number, aspect: number, plot: Box): View {
  const z = Math.min(plot.width / columns, plot.height / (rows * aspect));
  return { x: columns / 2, y: rows / 2, z: Math.max(z, 1e-9) };
}

/** The indices that are seen, as half-open ranges inside the array. */
export function seen(frame: Frame): { x: [number, number]; y: [number, number] } {
  const { plot, columns, rows } = frame;
  const ys = [rowAt(frame, plot.y), rowAt(frame, plot.y + plot.height)].sort((a, b) => a - b) as [number, number];
  return { x: inside(columnAt(frame, plot.x), columnAt(frame, plot.x + plot.width), columns), y: inside(ys[0], ys[1], rows) };
}

function inside(start: number, stop: number, size: number): [number, number] {
  return [Math.max(0, Math.min(size, Math.floor(start))), Math.max(0, Math.min(size, Math.ceil(stop)))];
}

/** The power of two that leaves about one sample per device pixel. */
export function strideFor(pixelsPerElement: number, size: number): number {
  if (pixelsPerElement >= 1) return 1;
  const stride = 2 ** Math.round(Math.log2(1 / pixelsPerElement));
  return Math.max(1, Math.min(stride, 2 ** Math.floor(Math.log2(Math.max(1, size)))));
}

export interface Level {
  path: string;
  /** Elements of the finest level per element of this one, along y and x. */
  factors: [number, number];
}

/** Level and strides to read for the wanted strides along y and x: the coarsest level that is fine enough. */
export function choose(levels: Level[], wanted: [number, number]): { level: Level; strides: [number, number] } {
  let level = levels[0]!;
  for (const candidate of levels) {
    const finer = candidate.factors.every((factor, k) => factor <= wanted[k]! * 1.25);
    if (finer && candidate.factors[0] * candidate.factors[1] >= level.factors[0] * level.factors[1]) level = candidate;
  }
  const strides = level.factors.map((factor, k) => 2 ** Math.max(0, Math.floor(Math.log2((wanted[k]! * 1.25) / factor))));
  return { level, strides: strides as [number, number] };
}

export interface TileBox {
  /** Place of the tile in the grid of tiles. */
  row: number;
  column: number;
}

/** The tiles that a range of samples touches, the middle ones first. */
export function tilesIn(x: [number, number], y: [number, number], chunk: [number, number]): TileBox[] {
  const tiles: TileBox[] = [];
  for (let row = Math.floor(y[0] / chunk[0]); row * chunk[0] < y[1]; row++)
    for (let column = Math.floor(x[0] / chunk[1]); column * chunk[1] < x[1]; column++) tiles.push({ row, column });
  const [my, mx] = [(y[0] + y[1]) / 2 / chunk[0] - 0.5, (x[0] + x[1]) / 2 / chunk[1] - 0.5];
  const distance = (tile: TileBox) => (tile.row - my) ** 2 + (tile.column - mx) ** 2;
  return tiles.sort((a, b) => distance(a) - distance(b));
}

export interface Tick {
  /** Where it is, in elements. */
  index: number;
  text: string;
}

/** Positions of ticks between two indices: whole numbers, evenly spaced, about `wanted` of them. */
export function tickIndices(start: number, stop: number, wanted: number): number[] {
  const rough = Math.max(1, (stop - start) / Math.max(1, wanted));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= rough)! * power);
  const ticks: number[] = [];
  for (let index = Math.ceil(start / step) * step; index < stop; index += step) ticks.push(index);
  return ticks;
}

/** Where a value lies among ascending or descending coordinates, as a fractional index; null outside. */
export function indexOf(coordinates: ArrayLike<number>, value: number): number | null {
  const last = coordinates.length - 1;
  if (last < 0) return null;
  if (last === 0) return coordinates[0] === value ? 0 : null;
  const sign = coordinates[last]! > coordinates[0]! ? 1 : -1;
  let [low, high] = [0, last];
  if (sign * (value - coordinates[0]!) < 0 || sign * (value - coordinates[last]!) > 0) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sign * (coordinates[middle]! - value) <= 0) low = middle;
    else high = middle;
  }
  const span = coordinates[high]! - coordinates[low]!;
  return span === 0 ? low : low + (value - coordinates[low]!) / span;
}
