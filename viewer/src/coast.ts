// Coastlines over pictures whose axes are longitudes and latitudes, from a file of the page.
import type { ArrayInfo } from "./api.ts";
import type { Coordinates } from "./coordinates.ts";

/** Longitudes and latitudes of points along each line. */
export type Coast = [number, number][][];

/** Lines in fractional indices along x and y. */
export type Outline = [number, number][][];

/** The coast in the text of `coastline.txt`; `coastline.mjs` says what it is. */
export function parse(text: string): Coast {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      let [x, y] = [0, 0];
      return line.split(" ").map((pair) => {
        const [east, north] = pair.split(",").map(Number) as [number, number];
        [x, y] = [x + east, y + north];
        return [x / 10, y / 10];
      });
    });
}

let known: Promise<Coast> | null = null;

/** The coast, read once. */
export function coast(): Promise<Coast> {
  known ??= fetch("coastline.txt").then(async (response) => {
    if (!response.ok) throw new Error(response.statusText);
    return parse(await response.text());
  });
  return known;
}

type Kind = "longitude" | "latitude" | null;

/** What a dimension is on the globe, by its units or its name; those of rotated grids are nothing. */
export function kindOf({ dimensions }: ArrayInfo, k: number): Kind {
  const { coordinate, units, name, step } = dimensions[k]!;
  if (coordinate === null && step === null) return null;
  if (/^degrees?_?e(ast)?$/i.test(units ?? "")) return "longitude";
  if (/^degrees?_?n(orth)?$/i.test(units ?? "")) return "latitude";
  if (units !== null && !/^degrees?$/i.test(units)) return null;
  return /^(lon|longitude)$/i.test(name ?? "") ? "longitude" : /^(lat|latitude)$/i.test(name ?? "") ? "latitude" : null;
}

export function isGeographic(array: ArrayInfo, [y, x]: readonly [number, number]): boolean {
  const kinds = [kindOf(array, y), kindOf(array, x)];
  return kinds.includes("longitude") && kinds.includes("latitude");
}

/** Whether elements have longitudes and latitudes of their own: no axis says where a coast would be. */
export function isCurved({ auxiliaries }: ArrayInfo, dims: readonly number[]): boolean {
  const roles = auxiliaries.filter(({ dimensions }) => dims.every((k) => dimensions.includes(k))).map(({ role }) => role);
  return roles.includes("x") && roles.includes("y");
}

/** The coast where an array is, in indices along its axes; null while its coordinates are not there, or are no numbers. */
export function outline(lines: Coast, x: Coordinates, y: Coordinates, isTurned: boolean): Outline | null {
  const [east, north] = isTurned ? [y, x] : [x, y];
  const [longitudes, latitudes] = [east.range, north.range];
  if (!longitudes || !latitudes) return null;
  const found: Outline = [];
  // Longitudes may be from -180 or from 0 on, or over the date line.
  for (const turn of [-360, 0, 360, 720]) {
    if (turn + 180 < longitudes[0] || turn - 180 > longitudes[1]) continue;
    for (const line of lines) {
      let part: [number, number][] = [];
      for (let i = 1; i < line.length; i++) {
        const [from, to] = [line[i - 1]!, line[i]!];
        const inside = clip([from[0] + turn, from[1]], [to[0] + turn, to[1]], longitudes, latitudes);
        if (!inside) continue;
        const [start, stop] = inside.map(([lon, lat]): [number, number] => {
          const place = [east.indexAt(lon), north.indexAt(lat)] as [number, number];
          return isTurned ? [place[1], place[0]] : place;
        }) as [[number, number], [number, number]];
        const last = part[part.length - 1];
        if (!last || last[0] !== start[0] || last[1] !== start[1]) {
          if (part.length) found.push(part);
          part = [start];
        }
        part.push(stop);
      }
      if (part.length) found.push(part);
    }
  }
  return found;
}

/** The part of a line within ranges of x and y, by Liang and Barsky; null if there is none. */
export function clip(from: [number, number], to: [number, number], x: [number, number], y: [number, number]): [[number, number], [number, number]] | null {
  let [start, stop] = [0, 1];
  for (const [k, [low, high]] of [x, y].entries()) {
    const [origin, way] = [from[k]!, to[k]! - from[k]!];
    if (way === 0) {
      if (origin < low || origin > high) return null;
      continue;
    }
    const ends = [(low - origin) / way, (high - origin) / way].sort((a, b) => a - b) as [number, number];
    [start, stop] = [Math.max(start, ends[0]), Math.min(stop, ends[1])];
  }
  if (start >= stop) return null;
  const at = (part: number): [number, number] => [from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1])];
  return [start === 0 ? from : at(start), stop === 1 ? to : at(stop)];
}
