// Colour maps, as tables of 256 colours.
import * as d3 from "d3-scale-chromatic";

export type Family = "sequential" | "diverging" | "cyclic";

const grey = (t: number) => `rgb(${[t, t, t].map((value) => Math.round(255 * value)).join(",")})`;

const MAPS: Record<Family, Record<string, (t: number) => string>> = {
  sequential: {
    viridis: d3.interpolateViridis,
    magma: d3.interpolateMagma,
    inferno: d3.interpolateInferno,
    plasma: d3.interpolatePlasma,
    cividis: d3.interpolateCividis,
    turbo: d3.interpolateTurbo,
    grey,
    blues: d3.interpolateBlues,
    greens: d3.interpolateGreens,
    YlGnBu: d3.interpolateYlGnBu,
    YlOrRd: d3.interpolateYlOrRd,
    cubehelix: d3.interpolateCubehelixDefault,
  },
  diverging: {
    RdBu: d3.interpolateRdBu,
    BrBG: d3.interpolateBrBG,
    PuOr: d3.interpolatePuOr,
    PiYG: d3.interpolatePiYG,
    RdYlBu: d3.interpolateRdYlBu,
    Spectral: d3.interpolateSpectral,
  },
  cyclic: {
    rainbow: d3.interpolateRainbow,
    sinebow: d3.interpolateSinebow,
  },
};

export const FAMILIES = Object.entries(MAPS).map(([family, maps]) => ({ family: family as Family, names: Object.keys(maps) }));
export const NAMES = FAMILIES.flatMap(({ names }) => names);

export function familyOf(name: string): Family {
  return FAMILIES.find(({ names }) => names.includes(name))?.family ?? "sequential";
}

/** Red, green and blue of any colour that d3 writes: #rrggbb or rgb(r, g, b). */
export function rgb(text: string): [number, number, number] {
  const hex = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(text);
  if (hex) return [1, 2, 3].map((k) => parseInt(hex[k]!, 16)) as [number, number, number];
  const numbers = text.match(/[\d.]+/g) ?? [];
  return [0, 1, 2].map((k) => Math.round(Number(numbers[k] ?? 0))) as [number, number, number];
}

const tables = new Map<string, Uint32Array>();

/** 256 opaque pixels, in the byte order of ImageData. */
export function table(name: string, reversed: boolean): Uint32Array {
  const key = `${name} ${reversed}`;
  let pixels = tables.get(key);
  if (!pixels) {
    const colour = MAPS[familyOf(name)][name] ?? d3.interpolateViridis;
    pixels = Uint32Array.from({ length: 256 }, (_, i) => pixel(...rgb(colour((reversed ? 255 - i : i) / 255))));
    tables.set(key, pixels);
  }
  return pixels;
}

/** One opaque pixel of ImageData seen as 32 bits. All machines with browsers are little-endian. */
export const pixel = (r: number, g: number, b: number) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

export function gradient(name: string, reversed: boolean, towards = "to right"): string {
  const pixels = table(name, reversed);
  const stops = Array.from({ length: 17 }, (_, i) => css(pixels[Math.min(255, i * 16)]!));
  return `linear-gradient(${towards}, ${stops.join(", ")})`;
}

export const css = (value: number) => `rgb(${value & 255}, ${(value >> 8) & 255}, ${(value >> 16) & 255})`;
