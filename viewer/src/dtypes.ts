// Data types: what the server sends, what zarrita reads it as, what is drawn and what is said of it.
import type { Flag } from "./api.ts";
import type { Part } from "./look.ts";

export type Kind = "int" | "uint" | "float" | "bool" | "complex" | "datetime" | "timedelta" | "other";

export interface DataType {
  name: string;
  kind: Kind;
  /** Bits of one number: of each part, for a complex one. */
  bits: number;
  /** For datetime64 and timedelta64: the length of one step in seconds, or null for months and years. */
  step: number | null;
  unit: string;
}

export type Raw =
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

const SECONDS: Record<string, number> = {
  W: 604800, D: 86400, h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, "μs": 1e-6, ns: 1e-9, ps: 1e-12, fs: 1e-15, as: 1e-18,
};
const NOT_A_TIME = -(2n ** 63n);

/** What a name of NumPy's means: `float32`, `>i2`, `datetime64[ns]`, `datetime64[10s]`. */
export function dataType(name: string): DataType {
  const plain = name.replace(/^[<>|=]/, "");
  const none = { name, step: null, unit: "" };
  if (plain === "bool" || plain === "b1") return { ...none, kind: "bool", bits: 8 };
  if (plain === "bfloat16") return { ...none, kind: "float", bits: 16 };
  const number = /^(int|uint|float|complex)(\d+)$/.exec(plain);
  if (number) {
    const bits = Number(number[2]) / (number[1] === "complex" ? 2 : 1);
    if (bits <= 64) return { ...none, kind: number[1] as Kind, bits };
  }
  const short = /^([iufc])(\d+)$/.exec(plain);
  if (short) {
    const kinds: Record<string, string> = { i: "int", u: "uint", f: "float", c: "complex" };
    return dataType(`${kinds[short[1]!]}${8 * Number(short[2])}`);
  }
  const time = /^(datetime|timedelta)64(?:\[(\d*)(\w+|μs)\])?$/.exec(plain);
  if (time) {
    const unit = time[3] ?? "s";
    const seconds = SECONDS[unit];
    const step = seconds === undefined ? null : seconds * Number(time[2] || 1);
    return { name, kind: time[1] as Kind, bits: 64, step, unit };
  }
  return { ...none, kind: "other", bits: 0 };
}

type Document = Record<string, unknown> & { data_type?: unknown; fill_value?: unknown };

/**
 * The metadata of a tile array with a data type that zarrita reads in any browser.
 *
 * A complex number is a pair of floats along one more dimension; halves and times are their bits.
 */
export function readable(document: Document, type: DataType): Document {
  const changed = { ...document, storage_transformers: [] };
  const fill = (data_type: string, fill_value: unknown = 0) => ({ ...changed, data_type, fill_value });
  switch (type.kind) {
    case "bool":
      return fill("uint8", Number(document.fill_value === true));
    case "datetime":
    case "timedelta":
      return fill("int64");
    case "float":
      return type.bits === 16 ? fill("uint16", 0x7e00) : changed;
    case "complex":
      return withPairs(fill(type.bits === 16 ? "uint16" : `float${type.bits}`));
    default:
      return changed;
  }
}

function withPairs(document: Document): Document {
  const grid = document["chunk_grid"] as { name: string; configuration: { chunk_shape: number[] } };
  const chunk_shape = [...grid.configuration.chunk_shape, 2];
  return {
    ...document,
    shape: [...(document["shape"] as number[]), 2],
    chunk_grid: { ...grid, configuration: { chunk_shape } },
    dimension_names: null,
  };
}

/** A half-precision number from its bits. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
}

const WORD = new DataView(new ArrayBuffer(4));

function fromBrain(bits: number): number {
  WORD.setUint32(0, bits << 16);
  return WORD.getFloat32(0);
}

/** The numbers of a chunk as the data type means them; those of 64 bits stay what they are. */
export function decode(raw: Raw, type: DataType): Raw {
  if (type.bits !== 16 || (type.kind !== "float" && type.kind !== "complex")) return raw;
  const convert = type.name.includes("bfloat") ? fromBrain : fromHalf;
  return Float32Array.from(raw as Uint16Array, convert);
}

export interface Meaning {
  type: DataType;
  part: Part;
  /** The kind of integers that the bits mean, if it is another one than that of the type. */
  kind: "" | "u" | "i";
  scale: number;
  offset: number;
  /** Stored values that mean "missing", and the smallest and largest valid one: of that kind. */
  missing: number[];
  low: number | null;
  high: number | null;
  flags: readonly Flag[];
}

/** The numbers that attributes say nothing about. */
export const PLAIN = { part: "magnitude", kind: "", scale: 1, offset: 0, missing: [], low: null, high: null, flags: [] } as const;

type Integers = Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;
const UNSIGNED: Record<number, (buffer: ArrayBufferLike, at: number, length: number) => Integers> = {
  8: (buffer, at, length) => new Uint8Array(buffer, at, length),
  16: (buffer, at, length) => new Uint16Array(buffer, at, length),
  32: (buffer, at, length) => new Uint32Array(buffer, at, length),
  64: (buffer, at, length) => new BigUint64Array(buffer, at, length),
};
const SIGNED: typeof UNSIGNED = {
  8: (buffer, at, length) => new Int8Array(buffer, at, length),
  16: (buffer, at, length) => new Int16Array(buffer, at, length),
  32: (buffer, at, length) => new Int32Array(buffer, at, length),
  64: (buffer, at, length) => new BigInt64Array(buffer, at, length),
};

/** Stored integers as those of the kind that their bits mean. */
function meant(raw: Raw, { kind, type }: Meaning): Raw {
  if (!kind) return raw;
  return (kind === "u" ? UNSIGNED : SIGNED)[type.bits]?.(raw.buffer, raw.byteOffset, raw.length) ?? raw;
}

/** Whether a number, of the kind that is meant, is missing or not valid. */
const isGone = (value: number, { missing, low, high }: Meaning) => missing.includes(value) || (low !== null && value < low) || (high !== null && value > high);

/** Numbers to draw: parts of complex ones taken, scaled, NaN where a value is missing. */
export function drawable(raw: Raw, meaning: Meaning): Float32Array | Float64Array {
  const { type, scale, offset } = meaning;
  if (type.kind === "complex") return partOf(raw as Float32Array | Float64Array, meaning.part);
  const out = type.bits > 32 || (type.bits === 32 && type.kind !== "float") ? new Float64Array(raw.length) : new Float32Array(raw.length);
  const isTime = type.kind === "datetime" || type.kind === "timedelta";
  const numbers = meant(raw, meaning);
  for (let i = 0; i < numbers.length; i++) {
    const stored = numbers[i]!;
    const value = Number(stored);
    out[i] = isGone(value, meaning) || (isTime && stored === NOT_A_TIME) ? NaN : value * scale + offset;
  }
  return out;
}

function partOf(raw: Float32Array | Float64Array, part: Part): Float32Array | Float64Array {
  const out = raw instanceof Float32Array ? new Float32Array(raw.length / 2) : new Float64Array(raw.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = complexPart(raw[2 * i]!, raw[2 * i + 1]!, part);
  return out;
}

function complexPart(real: number, imaginary: number, part: Part): number {
  if (part === "real") return real;
  if (part === "imaginary") return imaginary;
  return part === "phase" ? Math.atan2(imaginary, real) : Math.hypot(real, imaginary);
}

/** The element of a chunk, in words: every digit of a 64-bit integer, a time as a date. */
export function wordsOf(raw: Raw, i: number, meaning: Meaning): string {
  const { type, scale, offset } = meaning;
  if (type.kind === "complex") return complexWords(raw as Float32Array, i);
  const stored = meant(raw, meaning)[i]!;
  if (type.kind === "bool") return stored ? "True" : "False";
  if (type.kind === "datetime" || type.kind === "timedelta") return timeWords(stored as bigint, type);
  if (meaning.missing.includes(Number(stored))) return Number.isNaN(Number(stored)) ? "missing" : `missing (${stored})`;
  if (isGone(Number(stored), meaning)) return `not valid (${stored})`;
  const isScaled = scale !== 1 || offset !== 0;
  // Integers that are scaled are products: exact to more digits than they have bits.
  const bits = isScaled && type.kind !== "float" ? 64 : type.bits;
  const words = typeof stored === "bigint" && !isScaled ? String(stored) : numberWords(Number(stored) * scale + offset, bits);
  const flags = flagWords(raw[i]!, meaning.flags);
  return flags ? `${words} ${flags}` : words;
}

/** What a stored integer means by its flags, in words. */
export function flagWords(stored: number | bigint, flags: readonly Flag[]): string {
  if (flags.length === 0 || !Number.isInteger(Number(stored))) return "";
  const value = BigInt(stored);
  const applies = (flag: Flag) => {
    const part = flag.mask === null ? value : value & BigInt(flag.mask);
    return flag.value === null ? part !== 0n : part === BigInt(flag.value);
  };
  return flags.filter(applies).map(({ meaning }) => meaning.replaceAll("_", " ")).join(", ");
}

function complexWords(raw: Float32Array, i: number): string {
  const [real, imaginary] = [raw[2 * i]!, raw[2 * i + 1]!];
  const magnitude = Math.hypot(real, imaginary);
  const sign = imaginary < 0 ? "−" : "+";
  return `${numberWords(real)} ${sign} ${numberWords(Math.abs(imaginary))}j  |z| ${numberWords(magnitude)}, ∠ ${numberWords(Math.atan2(imaginary, real), 16)}`;
}

/** A number with the digits that its type holds. */
export function numberWords(value: number, bits = 32): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  return String(Number(value.toPrecision(bits > 32 ? 15 : bits > 16 ? 7 : 4)));
}

/** A step count since 1970 as ISO text. */
export function timeWords(stored: bigint | number, type: DataType): string {
  const count = typeof stored === "bigint" ? stored : BigInt(Math.round(stored));
  if (count === NOT_A_TIME) return "NaT";
  if (type.kind === "timedelta") return `${count} ${type.unit}`;
  if (type.step === null) return calendarWords(count, type.unit);
  const milliseconds = Number(count) * type.step * 1000;
  if (Math.abs(milliseconds) > 8.64e15) return `${count} ${type.unit}`;
  const text = new Date(milliseconds).toISOString();
  if (type.step >= 86400) return text.slice(0, text.indexOf("T"));
  return type.step >= 1 ? text.slice(0, -5) : text.slice(0, -1);
}

function calendarWords(count: bigint, unit: string): string {
  if (unit === "Y") return String(1970n + count);
  const months = Number(count);
  return unit === "M" ? `${1970 + Math.floor(months / 12)}-${String((((months % 12) + 12) % 12) + 1).padStart(2, "0")}` : `${count} ${unit}`;
}

/** The missing values and the fill value as numbers, as far as they are numbers. */
export function missingNumbers(values: unknown[]): number[] {
  return values.map((value) => (typeof value === "number" ? value : typeof value === "string" && value !== "" ? Number(value) : NaN)).filter((value) => !Number.isNaN(value));
}
