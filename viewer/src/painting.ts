// Numbers to pixels.
import { pixel, rgb } from "./colours.ts";

export interface Painted {
  canvas: HTMLCanvasElement;
  hasMissing: boolean;
}

export interface BlendChannel {
  color: string;
  lo: number;
  hi: number;
}

/** Pixels of numbers by a table of 256 colours; NaN is left transparent. Returns whether there was any. */
export function mapPixels(values: ArrayLike<number>, out: Uint32Array, table: Uint32Array, range: [number, number], log: boolean): boolean {
  const [lo, hi] = log ? logLimits(range) : range;
  const factor = 256 / (hi - lo);
  let hasMissing = false;
  for (let i = 0; i < values.length; i++) {
    const stored = values[i]!;
    if (stored !== stored) {
      hasMissing = true;
      continue;
    }
    const value = log ? (stored > 0 ? Math.log10(stored) : -Infinity) : stored;
    const place = (value - lo) * factor;
    out[i] = table[place > 0 ? (place < 255 ? place | 0 : 255) : 0]!;
  }
  return hasMissing;
}

/** Limits on a scale of powers of ten; a lower one that is not positive starts six decades down. */
export function logLimits([lo, hi]: [number, number]): [number, number] {
  const top = Math.log10(hi > 0 ? hi : 1);
  const bottom = lo > 0 ? Math.log10(lo) : top - 6;
  return bottom < top ? [bottom, top] : [top - 1, top];
}

/** Pixels of several channels, each in its colour, added up. */
export function blendPixels(layers: ArrayLike<number>[], out: Uint32Array, channels: BlendChannel[]): boolean {
  const sums = new Float32Array(out.length * 3);
  const seen = new Uint8Array(out.length);
  channels.forEach((channel, k) => {
    const values = layers[k];
    if (!values) return;
    const [r, g, b] = rgb(channel.color);
    const factor = 1 / (channel.hi - channel.lo || 1);
    for (let i = 0; i < out.length; i++) {
      const part = (values[i]! - channel.lo) * factor;
      if (part !== part) continue;
      seen[i] = 1;
      const strength = part < 0 ? 0 : part > 1 ? 1 : part;
      sums[3 * i]! += strength * r;
      sums[3 * i + 1]! += strength * g;
      sums[3 * i + 2]! += strength * b;
    }
  });
  let hasMissing = false;
  for (let i = 0; i < out.length; i++) {
    if (seen[i]) out[i] = pixel(Math.min(255, sums[3 * i]!), Math.min(255, sums[3 * i + 1]!), Math.min(255, sums[3 * i + 2]!));
    else hasMissing = true;
  }
  return hasMissing;
}

/** Pixels of labels, each in a colour of its own, or in that of the image; 0 is left transparent. */
export function labelPixels(values: ArrayLike<number>, out: Uint32Array, colours: Record<string, string>): boolean {
  const known = new Map<number, number>();
  for (let i = 0; i < values.length; i++) {
    const label = values[i]!;
    if (label === 0 || label !== label) continue;
    let found = known.get(label);
    if (found === undefined) {
      const own = colours[String(label)];
      found = own ? pixel(...rgb(own)) : pixel(...ofLabel(label));
      known.set(label, found);
    }
    out[i] = found;
  }
  return true;
}

/** A bright colour for a label: the golden angle keeps those of neighbours apart. */
function ofLabel(label: number): [number, number, number] {
  const hue = (Math.abs(label) * 137.508) % 360;
  const part = (shift: number) => {
    const place = (shift + hue / 30) % 12;
    return Math.round(255 * (0.55 - 0.45 * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return [part(0), part(8), part(4)];
}

function onCanvas([height, width]: [number, number], fill: (pixels: Uint32Array) => boolean): Painted {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const image = new ImageData(width, height);
  const hasMissing = fill(new Uint32Array(image.data.buffer));
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return { canvas, hasMissing };
}

export const paintMap = (values: ArrayLike<number>, size: [number, number], table: Uint32Array, range: [number, number], log: boolean) =>
  onCanvas(size, (pixels) => mapPixels(values, pixels, table, range, log));

export const paintBlend = (layers: ArrayLike<number>[], size: [number, number], channels: BlendChannel[]) =>
  onCanvas(size, (pixels) => blendPixels(layers, pixels, channels));

export const paintLabels = (values: ArrayLike<number>, size: [number, number], colours: Record<string, string>) => onCanvas(size, (pixels) => labelPixels(values, pixels, colours));
