// Labels along dimensions: coordinates of xarray and NetCDF, axes of OME-Zarr, or plain indices.
import { labels, values, type ArrayInfo, type Dimension, type Selection, type Table } from "./api.ts";
import { numberWords } from "./dtypes.ts";
import { indexOf, tickIndices, type Tick } from "./geometry.ts";
import { scaleLinear } from "d3-scale";

const MOST = 4096;
const BLOCK = 1024;

/** The labels of one dimension; those of long ones are read in blocks as they are asked for. */
export class Coordinates {
  readonly name: string;
  units: string | null;
  #dimension: Dimension;
  #coarse: (string | number | null)[] | null = null;
  #step = 1;
  #blocks = new Map<number, (string | number | null)[] | null>();
  #place: { d: number; path: string; k: number };
  #listener: () => void;

  constructor(d: number, path: string, info: ArrayInfo, k: number, listener: () => void) {
    this.#dimension = info.dimensions[k]!;
    this.#place = { d, path, k };
    this.#listener = listener;
    this.name = this.#dimension.name ?? `dimension ${k}`;
    this.units = this.#dimension.units;
    if (this.#dimension.coordinate !== null) void this.#load();
  }

  async #load(): Promise<void> {
    const { d, path, k } = this.#place;
    this.#step = Math.max(1, Math.ceil(this.#dimension.size / MOST));
    try {
      const answer = await labels(d, path, k, 0, this.#dimension.size, this.#step);
      this.#coarse = answer.labels;
      this.units = answer.units ?? this.units;
    } catch {
      this.#coarse = null; // a coordinate that cannot be read leaves the indices
    }
    this.#listener();
  }

  /** Whether all that is there says something else than the index. */
  get hasLabels(): boolean {
    return this.#coarse !== null || this.#dimension.step !== null;
  }

  /** Numbers along the whole dimension, every `step`th: null for text and times. */
  get numbers(): number[] | null {
    return this.#coarse?.every((label) => typeof label === "number") ? (this.#coarse as number[]) : null;
  }

  /** Whether they rise; null if that is not known, or they only count rows, which says nothing of up and down. */
  get isAscending(): boolean | null {
    const numbers = this.numbers;
    if (this.#coarse === null && this.#dimension.step !== null) return this.#dimension.step > 0;
    if (!this.units && numbers?.every((value, i) => value === i * this.#step)) return null;
    return numbers && numbers.length > 1 ? numbers[numbers.length - 1]! > numbers[0]! : null;
  }

  /** The smallest and the largest number, with half an element on either side; null if they are no rising or falling numbers. */
  get range(): [number, number] | null {
    const ends = this.#ends;
    return ends && ([Math.min(...ends), Math.max(...ends)] as [number, number]);
  }

  /** Numbers at the outer sides of the first and the last element. */
  get #ends(): [number, number] | null {
    const { step, origin, size } = this.#dimension;
    if (this.#coarse === null && step !== null) return [origin - step / 2, origin + (size - 0.5) * step];
    const numbers = this.numbers;
    if (!numbers || numbers.length < 2) return null;
    const sign = Math.sign(numbers[1]! - numbers[0]!);
    if (!numbers.every((value, i) => i === 0 || (value - numbers[i - 1]!) * sign > 0)) return null;
    const last = numbers.length - 1;
    const [first, end] = [numbers[1]! - numbers[0]!, numbers[last]! - numbers[last - 1]!];
    // What follows the last of the coarse labels is as far apart as they are.
    const rest = size - 1 - last * this.#step;
    return [numbers[0]! - first / this.#step / 2, numbers[last]! + (end / this.#step) * (rest + 0.5)];
  }

  /** The fractional index at a number within the range: i + 0.5 for the number of element i. */
  indexAt(value: number): number {
    const { step, origin } = this.#dimension;
    if (this.#coarse === null && step !== null) return (value - origin) / step + 0.5;
    const numbers = this.numbers!;
    const place = indexOf(numbers, value);
    if (place !== null) return place * this.#step + 0.5;
    const last = numbers.length - 1;
    const isBefore = Math.abs(value - numbers[0]!) < Math.abs(value - numbers[last]!);
    const [near, next] = isBefore ? [0, 1] : [last - 1, last];
    return (near + (value - numbers[near]!) / (numbers[next]! - numbers[near]!)) * this.#step + 0.5;
  }

  /** The label at an index; null where there is none, or none yet. */
  at(index: number): string | number | null {
    if (this.#coarse === null) {
      const { step, origin } = this.#dimension;
      return step === null ? null : Number((origin + index * step).toPrecision(9));
    }
    return this.#step === 1 ? (this.#coarse[index] ?? null) : this.#exact(index);
  }

  #exact(index: number): string | number | null {
    const block = Math.floor(index / BLOCK);
    if (!this.#blocks.has(block)) void this.#loadBlock(block);
    return this.#blocks.get(block)?.[index % BLOCK] ?? null;
  }

  async #loadBlock(block: number): Promise<void> {
    this.#blocks.set(block, null);
    const { d, path, k } = this.#place;
    const stop = Math.min(this.#dimension.size, (block + 1) * BLOCK);
    const answer = await labels(d, path, k, block * BLOCK, stop, 1).catch(() => null);
    if (answer) this.#blocks.set(block, answer.labels);
    this.#listener();
  }

  /** The label at an index with its unit, in words. */
  words(index: number): string {
    const label = this.at(index);
    if (label === null) return "";
    return typeof label === "string" ? readableTime(label) : `${numberWords(label, 32)}${this.unitText}`;
  }

  get unitText(): string {
    return this.units && !this.units.includes(" since ") ? ` ${prettyUnits(this.units)}` : "";
  }

  /** Ticks between two fractional indices. A tick of element i stands at its middle, i + 0.5. */
  ticks(start: number, stop: number, wanted: number): Tick[] {
    const numbers = this.numbers;
    const { step, origin } = this.#dimension;
    if (numbers) return this.#valueTicks(numbers, start, stop, wanted);
    if (this.#coarse === null && step !== null) {
      const values = scaleLinear().domain([origin + start * step, origin + stop * step]).nice(0);
      const format = values.tickFormat(wanted);
      return values.ticks(wanted).map((value) => ({ index: (value - origin) / step, text: format(value) }));
    }
    const indices = tickIndices(start, stop, wanted);
    const labels = indices.map((index) => (this.#coarse === null ? index : (this.#coarse[Math.floor(index / this.#step)] ?? index)));
    return timeTexts(labels).map((text, i) => ({ index: indices[i]! + 0.5, text }));
  }

  #valueTicks(numbers: number[], start: number, stop: number, wanted: number): Tick[] {
    const last = numbers.length - 1;
    const valueAt = (index: number) => {
      const place = Math.min(last, Math.max(0, (index - 0.5) / this.#step));
      const low = Math.floor(place);
      return numbers[low]! + ((numbers[Math.min(last, low + 1)] ?? 0) - numbers[low]!) * (place - low);
    };
    const values = scaleLinear().domain([valueAt(start), valueAt(stop)]);
    const format = values.tickFormat(wanted);
    return values.ticks(wanted).flatMap((value) => {
      const place = indexOf(numbers, value);
      return place === null ? [] : [{ index: place * this.#step + 0.5, text: format(value) }];
    });
  }
}

/** Coordinates along several dimensions, such as latitudes of a curved grid. They are read in blocks, as they are asked for. */
export class Auxiliary {
  readonly name: string;
  readonly role: Dimension["role"];
  #d: number;
  #array: ArrayInfo;
  #info: ArrayInfo["auxiliaries"][number];
  #blocks = new Map<string, Table>();
  #isBusy = false;
  /** By the dimension of rows and that of columns. */
  #rises = new Map<string, boolean>();
  #listener: () => void;

  constructor(d: number, array: ArrayInfo, info: ArrayInfo["auxiliaries"][number], listener: () => void) {
    [this.#d, this.#array, this.#info, this.#listener] = [d, array, info, listener];
    [this.name, this.role] = [info.name, info.role];
  }

  /** Whether it has a coordinate of its own for each element along these dimensions. */
  isAlong(dims: readonly number[]): boolean {
    return dims.every((k) => this.#info.dimensions.includes(k));
  }

  /** The coordinate of an element, in words; of all that are read, those along the drawn dimensions come together. */
  words(index: number[], dims: readonly number[]): string {
    const own = this.#info.dimensions;
    const side = own.filter((k) => dims.includes(k)).length > 1 ? 64 : 1024;
    const block = own.map((k) => (dims.includes(k) ? Math.floor(index[k]! / side) : index[k]!));
    const key = block.join();
    const known = this.#blocks.get(key);
    if (!known) {
      void this.#load(key, own.map((k, i) => (dims.includes(k) ? [block[i]! * side, Math.min((block[i]! + 1) * side, this.#array.shape[k]!)] : [index[k]!, index[k]! + 1])));
      return "…";
    }
    const text = own.reduce<unknown>((values, k, i) => (values as unknown[] | undefined)?.[dims.includes(k) ? index[k]! - block[i]! * side : 0], known.values);
    const value = Number(text);
    return typeof text !== "string" || text === "missing" || !Number.isFinite(value) ? "missing" : `${numberWords(Number(value.toPrecision(9)), 64)}${spaced(this.#info.units)}`;
  }

  async #load(key: string, select: Selection): Promise<void> {
    if (this.#isBusy) return; // what is asked for then is read, not what was on the way
    this.#isBusy = true;
    const nothing: Table = { shape: [], fields: null, values: null };
    const answer = await values(this.#d, this.#info.path, select).catch(() => nothing);
    this.#isBusy = false;
    if (this.#blocks.size > 256) this.#blocks.clear();
    this.#blocks.set(key, answer);
    this.#listener();
  }

  /** Whether coordinates rise from the first row to the last, by those at the corners; null while that is not known. */
  risesAlong(dims: readonly [number, number], at: number[]): boolean | null {
    const known = this.#rises.get(dims.join());
    if (known === undefined && !this.#isBusy) void this.#look(dims, at);
    return known ?? null;
  }

  async #look([y, x]: readonly [number, number], at: number[]): Promise<void> {
    this.#isBusy = true;
    const own = this.#info.dimensions;
    const select = own.map((k): [number, number, number] => {
      const last = this.#array.shape[k]! - 1;
      return k === y || k === x ? [0, last + 1, Math.max(1, last)] : [at[k]!, at[k]! + 1, 1];
    });
    const answer = await values(this.#d, this.#info.path, select).catch(() => null);
    this.#isBusy = false;
    const rows: number[][] = [[], []];
    const place = own.indexOf(y);
    const walk = (each: unknown, depth: number, row: number) => {
      if (Array.isArray(each)) each.forEach((inner, i) => walk(inner, depth + 1, depth === place ? i : row));
      else if (Number.isFinite(Number(each))) rows[row]?.push(Number(each));
    };
    walk(answer?.values ?? [], 0, 0);
    const mean = (numbers: number[]) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
    this.#rises.set(`${y},${x}`, mean(rows[1]!) > mean(rows[0]!));
    this.#listener();
  }
}

const spaced = (units: string | null) => (units ? ` ${prettyUnits(units)}` : "");

const DEGREES: Record<string, string> = { degrees_north: "°N", degrees_east: "°E", degree: "°", degrees: "°", micrometer: "µm", nanometer: "nm", millimeter: "mm", second: "s", meter: "m" };

export const prettyUnits = (units: string) => DEGREES[units] ?? units;

/** Midnight is a date. */
const readableTime = (label: string) => label.replace(/[T ]00:00(:00)?(\.0+)?$/, "");

const CLOCK = /^([-+]?\d{4,}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d(?:\.\d+)?))?$/;

/** Labels as texts; times in ISO 8601, all of them as exact as one of them needs. */
export function timeTexts(labels: readonly (string | number)[]): string[] {
  const clocks = labels.map((label) => (typeof label === "string" ? CLOCK.exec(label) : null));
  const seconds = clocks.map((clock) => (clock?.[3] ?? "").replace(/\.?0+$/, ""));
  const hasSeconds = seconds.some((text) => text !== "");
  const hasClock = hasSeconds || clocks.some((clock) => clock !== null && clock[2] !== "00:00");
  return labels.map((label, i) => {
    const clock = clocks[i];
    if (!clock) return hasClock && /^[-+]?\d{4,}-\d\d-\d\d$/.test(String(label)) ? `${label}T00:00${hasSeconds ? ":00" : ""}` : String(label);
    if (!hasClock) return clock[1]!;
    return `${clock[1]}T${clock[2]}${hasSeconds ? `:${(clock[3] ?? "00").replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}` : ""}`;
  });
}
