// From what the address says and what the array is to what is drawn.
import type { ArrayInfo, Info } from "./api.ts";
import type { Auxiliary, Coordinates } from "./coordinates.ts";
import { dataType, missingNumbers, PLAIN, type Meaning } from "./dtypes.ts";
import type { Level } from "./geometry.ts";
import type { Blend, ChannelLook, Look, Tab } from "./look.ts";

/** Settings of a picture with every default filled in. */
export interface Resolved {
  dims: [number, number];
  at: number[];
  blend: Blend;
  /** The dimension of channels or of red, green and blue. */
  channelDim: number | null;
  /** How many layers a blended picture has. */
  channels: ChannelLook[];
  meaning: Meaning;
  tabs: Tab[];
  tab: Tab;
}

const COLOURS = ["ff00ff", "00ff00", "3f7fff", "ff3030", "00ffff", "ffff00", "ff8000", "ffffff"];
/** Channels that are seen at first, as far as the image does not say which. */
const MOST_LIT = 4;
const PRIMARIES = ["ff0000", "00ff00", "0000ff"];

export function tabsOf(info: Info): Tab[] {
  const array = info.array;
  if (!array) return info.kind === "group" ? ["contents", "about"] : ["about"];
  const rank = array.shape.length;
  if (rank === 0) return ["table", "about"];
  if (array.show === "table" || array.shape.includes(0)) return ["table", "chunks", "about"];
  return rank === 1 ? ["line", "table", "chunks", "about"] : ["picture", "line", "table", "chunks", "about"];
}

export function resolve(info: Info, look: Look): Resolved {
  const array = info.array;
  const tabs = tabsOf(info);
  const tab = look.tab && tabs.includes(look.tab) ? look.tab : tabs[0]!;
  if (!array) return { dims: [0, 0], at: [], blend: "one", channelDim: null, channels: [], meaning: meaningOf(null, look), tabs, tab };
  const dims = dimsOf(array, look);
  const channelDim = channelDimOf(array, dims);
  const blend = blendOf(array, look, channelDim);
  return { dims, at: atOf(array, look), blend, channelDim, channels: channelsOf(array, look, blend, channelDim), meaning: meaningOf(array, look), tabs, tab };
}

function dimsOf({ shape, view }: ArrayInfo, look: Look): [number, number] {
  const last = shape.length - 1;
  const [y, x] = look.dims ?? [];
  if (y !== undefined && x !== undefined && y !== x && y <= last && x <= last) return [y, x];
  return view.length >= 2 ? [view[0]!, view[1]!] : [Math.max(0, last - 1), Math.max(0, last)];
}

/** The first index of a dimension to begin with; the middle of a stack of slices. */
function atOf({ shape, dimensions }: ArrayInfo, look: Look): number[] {
  return shape.map((size, k) => {
    const start = dimensions[k]?.role === "z" ? Math.floor(size / 2) : 0;
    return Math.max(0, Math.min(size - 1, look.at[k] ?? start));
  });
}

function channelDimOf({ shape, dimensions, colours }: ArrayInfo, dims: number[]): number | null {
  if (colours !== null && !dims.includes(colours)) return colours;
  const named = dimensions.findIndex((dimension, k) => dimension.role === "c" && !dims.includes(k) && shape[k]! <= 32);
  if (named >= 0) return named;
  const few = shape.findLastIndex((size, k) => (size === 3 || size === 4) && !dims.includes(k) && dimensions[k]!.role === null);
  return few >= 0 ? few : null;
}

function blendOf(array: ArrayInfo, look: Look, channelDim: number | null): Blend {
  if (channelDim === null) return "one";
  const size = array.shape[channelDim]!;
  const canBeRgb = size === 3 || size === 4;
  if (look.blend === "rgb" && !canBeRgb) return "one";
  if (look.blend) return look.blend;
  if (array.channels.length > 0) return "channels";
  if (channelDim === array.colours) return "rgb";
  return isChannels(array, channelDim) ? "channels" : "one";
}

/** Whether a dimension is one of channels that nothing describes: of an image, or by its name. Bands are often many. */
function isChannels({ shape, dimensions, levels, show }: ArrayInfo, k: number): boolean {
  const { role, name } = dimensions[k]!;
  const isNamed = levels.length > 0 || /^(c|ch|channels?)$/i.test(name ?? "");
  return role === "c" && isNamed && shape[k]! > 1 && show === "numbers";
}

/** What a channel is called: by the image, by red, green and blue, by its coordinate, or by its number. */
export function channelName(array: ArrayInfo, { blend, channelDim }: Resolved, k: number, coordinate = ""): string {
  const named = array.channels[k]?.label ?? (blend === "rgb" ? ["red", "green", "blue"][k] : undefined);
  if (named !== undefined) return named;
  return channelDim !== null && array.dimensions[channelDim]!.coordinate !== null && coordinate ? coordinate : `channel ${k}`;
}

function channelsOf(array: ArrayInfo, look: Look, blend: Blend, channelDim: number | null): ChannelLook[] {
  if (blend === "one" || channelDim === null) return [];
  if (look.channels) return look.channels;
  if (blend === "rgb") {
    const isByte = array.dtype === "uint8";
    return PRIMARIES.map((color) => ({ on: true, color, lo: isByte ? 0 : null, hi: isByte ? 255 : null }));
  }
  return Array.from({ length: array.shape[channelDim]! }, (_, k) => {
    const channel = array.channels[k];
    const color = channel?.color.replace(/^#/, "").slice(0, 6) || COLOURS[k % COLOURS.length]!;
    return { on: (channel?.active ?? true) && k < MOST_LIT, color, lo: channel?.window?.[0] ?? null, hi: channel?.window?.[1] ?? null };
  });
}

/** An integer with its bits read as one of another kind. */
function ofKind(value: number, kind: "" | "u" | "i", bits: number): number {
  if (kind === "u" && value < 0) return value + 2 ** bits;
  return kind === "i" && value >= 2 ** (bits - 1) ? value - 2 ** bits : value;
}

/** What the stored numbers of an array mean. */
export function meaningOf(array: ArrayInfo | null, look: Look): Meaning {
  if (!array) return { ...PLAIN, type: dataType("other"), missing: [] };
  const type = dataType(array.dtype);
  const [low, high] = [array.low, array.high].map((value) => missingNumbers([value])[0] ?? null) as [number | null, number | null];
  const missing = missingNumbers(array.missing);
  if (array.type !== array.dtype && array.missing.includes("NaN")) missing.push(NaN); // of optional integers
  if (look.fillIsMissing) missing.push(...missingNumbers([array.fill]).map((fill) => ofKind(fill, array.kind, type.bits)));
  return { type, part: look.part, kind: array.kind, scale: array.scale, offset: array.offset, missing, low, high, flags: array.flags };
}

/** The pyramid of an array, finest first, as far as it is coarser than the array itself; the array alone if there is none. */
export function levelsOf(path: string, array: ArrayInfo, dims: [number, number]): Level[] {
  const own: Level = { path, factors: [1, 1] };
  if (array.levels.length === 0 || array.levels[0]!.path !== path) return [own];
  return array.levels
    .filter(({ shape }) => shape.every((size, k) => dims.includes(k) || size === array.shape[k]))
    .map((level) => ({ path: level.path, factors: dims.map((k) => array.shape[k]! / level.shape[k]!) as [number, number] }));
}

/** Height of an element over its width: physical sizes if the axes say them, equal ones else, stretched where that is a thread. */
export function aspectOf(array: ArrayInfo, [y, x]: [number, number], stretch: boolean | null): number | null {
  const [height, width] = [array.dimensions[y]?.step ?? null, array.dimensions[x]?.step ?? null];
  const sameUnits = array.dimensions[y]?.units === array.dimensions[x]?.units;
  const aspect = height && width && sameUnits ? Math.abs(height / width) : 1;
  const shape = (array.shape[y]! * aspect) / array.shape[x]!;
  const isThread = shape > 6 || shape < 1 / 6;
  return (stretch ?? isThread) ? null : aspect;
}

/** Whether the first row belongs at the bottom: coordinates that rise upwards, or fall where they rise downwards; else latitudes of elements. */
export function isUpsideDown(array: ArrayInfo, { dims, at }: Resolved, coordinates: Coordinates[], auxiliaries: Auxiliary[]): boolean {
  const [direction, isAscending] = [array.dimensions[dims[0]]!.direction, coordinates[dims[0]]!.isAscending];
  if (isAscending !== null && direction !== null) return isAscending === (direction === "up");
  if (direction !== null && !coordinates[dims[0]]!.hasLabels) return false; // they are on the way
  const latitudes = auxiliaries.find((each) => each.role === "y" && each.isAlong(dims));
  return latitudes?.risesAlong(dims, at) ?? false;
}
