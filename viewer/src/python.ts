// The line of Python that reads the current view: what is seen, as it is seen.
import type { ArrayInfo } from "./api.ts";
import { dataType, missingNumbers } from "./dtypes.ts";
import type { Look, Part } from "./look.ts";

export type Index = number | { start: number; stop: number; step: number };

/** What is done with the elements before they are drawn. */
export interface Steps {
  /** How stored numbers are unpacked; null: they are not. */
  unpack?: string | null;
  /** Of complex numbers. */
  part?: Part | null;
  /** The axes of what was read in the order of rows, columns and channels. */
  order?: number[];
  /** Those of the channels that are seen, if they are no range. */
  channels?: number[] | null;
  /** Whether the first row is at the bottom. */
  flipped?: boolean;
}

/** A Python string literal: JSON's are ones. */
const quote = (text: string) => JSON.stringify(text);

/** One index as it is written in Python, as short as it can be. */
export function slice(index: Index, size: number): string {
  if (typeof index === "number") return String(index);
  const start = index.start > 0 ? String(index.start) : "";
  const stop = index.stop < size ? String(index.stop) : "";
  return `${start}:${stop}${index.step > 1 ? `:${index.step}` : ""}`;
}

/** `omnizarr.open("place")["path"].lazy.unpack()[3, ::4].T[::-1]`. */
export function pythonLine(location: string, path: string, selection: Index[], shape: number[], { unpack, part, order = [], channels, flipped }: Steps = {}): string {
  const opened = `omnizarr.open(${quote(location)})${path ? `[${quote(path)}]` : ""}${unpack ?? ""}`;
  const texts = selection.map((index, k) => slice(index, shape[k] ?? 0));
  while (texts.length > 1 && texts[texts.length - 1] === ":") texts.pop();
  const read = partOf(`${opened}[${shape.length === 0 ? "()" : texts.join(", ")}]`, part ?? null);
  const isSorted = order.every((axis, k) => axis === k);
  const turned = isSorted ? "" : order.length === 2 ? ".T" : `.transpose(${order.join(", ")})`;
  return `${read}${turned}${channels ? `[..., [${channels.join(", ")}]]` : ""}${flipped ? "[::-1]" : ""}`;
}

function partOf(read: string, part: Part | null): string {
  if (part === "magnitude") return `abs(${read})`;
  if (part === "phase") return `numpy.angle(${read})`;
  return part === "real" ? `${read}.real` : part === "imaginary" ? `${read}.imag` : read;
}

/** How the numbers of an array are decoded: nothing where they are drawn as they are stored. */
export function decoding(array: ArrayInfo, look: Look): Pick<Steps, "unpack" | "part"> {
  const type = dataType(array.dtype);
  if (type.kind === "complex") return { part: look.part };
  if (!["int", "uint", "float"].includes(type.kind)) return {};
  const missing = missingNumbers(array.missing);
  const fill = look.fillIsMissing ? missingNumbers([array.fill]) : [];
  const isLimited = array.kind !== "" || array.low !== null || array.high !== null;
  // The settings of `unpack` replace all attributes: they cannot tell of signs and limits.
  if (fill.length && !isLimited) return { unpack: `.lazy.unpack(${array.scale}, ${array.offset}, [${[...missing, ...fill].join(", ")}])` };
  const isPlain = array.scale === 1 && array.offset === 0 && missing.length === 0 && !isLimited;
  return { unpack: isPlain ? null : ".lazy.unpack()" };
}
