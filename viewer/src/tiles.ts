// Tiles of arrays, read through zarrita, as few as possible and no longer than they are wanted.
import * as zarr from "zarrita";
import { escapePath } from "./api.ts";
import { dataType, decode, readable, type DataType, type Raw } from "./dtypes.ts";

export interface Tile {
  raw: Raw;
  /** Samples in the tile, per dimension of the array. */
  shape: readonly number[];
  stride: readonly number[];
  bytes: number;
  broken: Broken | null;
}

/** Parts of a tile whose chunks are broken: start and end along each drawn dimension, these in rising order. */
export interface Broken {
  message: string;
  boxes: [number, number][][];
}

const utf8 = new TextDecoder();

/** A store that says of a tile array what zarrita can read. */
class TileStore implements zarr.AsyncReadable {
  #base: string;
  #type: DataType;
  /** What the server said of tiles, by their keys, until they are decoded. */
  readonly broken = new Map<string, Broken>();

  constructor(base: string, type: DataType) {
    this.#base = base;
    this.#type = type;
  }

  async get(key: zarr.AbsolutePath, options: RequestInit = {}): Promise<Uint8Array | undefined> {
    // The extra dimension of complex numbers is ours alone.
    const name = this.#type.kind === "complex" && key.startsWith("/c/") ? key.replace(/\/0$/, "") : key;
    const isTile = name !== "/zarr.json";
    const response = await fetch(`${this.#base}${name}${isTile ? "?broken=mark" : ""}`, options);
    if (response.status === 404) return undefined;
    if (!response.ok) throw new Error(await reason(response));
    const bytes = new Uint8Array(await response.arrayBuffer());
    const said = response.headers.get("Omnizarr-Broken");
    if (said !== null) this.broken.set(key, JSON.parse(said) as Broken);
    if (isTile) return bytes;
    const document = readable(JSON.parse(utf8.decode(bytes)), this.#type);
    return new TextEncoder().encode(JSON.stringify(document));
  }
}

async function reason(response: Response): Promise<string> {
  const answer = await response.json().catch(() => ({}));
  return (answer as { error?: string }).error ?? `${response.url}: ${response.status} ${response.statusText}`;
}

/** One array as the server serves it in tiles: with steps along its dimensions. */
export class TileArray {
  readonly type: DataType;
  readonly shape: readonly number[];
  readonly chunks: readonly number[];
  #array: zarr.Array<zarr.DataType, TileStore>;

  private constructor(array: zarr.Array<zarr.DataType, TileStore>, type: DataType) {
    this.#array = array;
    this.type = type;
    const rank = array.shape.length - (type.kind === "complex" ? 1 : 0);
    this.shape = array.shape.slice(0, rank);
    this.chunks = array.chunks.slice(0, rank);
  }

  static async open({ d, path, dtype, strides, dims }: Origin): Promise<TileArray> {
    const sorted = [...dims].sort((a, b) => a - b).join(",");
    const address = `tiles/${d}/${strides.join(".")}-${sorted}${path ? `/${escapePath(path)}` : ""}`;
    const type = dataType(dtype);
    const array = await zarr.open.v3(zarr.root(new TileStore(address, type)), { kind: "array" });
    return new TileArray(array, type);
  }

  async read(coords: number[], signal: AbortSignal): Promise<Tile> {
    const pairs = this.type.kind === "complex" ? [...coords, 0] : coords;
    const chunk = await this.#array.getChunk(pairs, { signal });
    const raw = decode(chunk.data as Raw, this.type);
    const { broken } = this.#array.store;
    const key = `/c/${pairs.join("/")}`;
    const found = broken.get(key) ?? null;
    broken.delete(key);
    return { raw, shape: chunk.shape, stride: chunk.stride, bytes: raw.byteLength, broken: found };
  }
}

export interface Wanted {
  array: TileArray;
  coords: number[];
  key: string;
}

/** Where an array of tiles comes from. */
export interface Origin {
  d: number;
  path: string;
  dtype: string;
  strides: number[];
  dims: number[];
}

export const originKey = ({ d, path, strides, dims }: Origin) => JSON.stringify([d, path, strides, dims]);

/** Tiles that were read, up to a number of bytes; those not used for longest go first. */
export class TileCache {
  #limit: number;
  #bytes = 0;
  #tiles = new Map<string, Tile>();
  #waiting = new Map<string, AbortController>();
  #wanted = new Map<object, Set<string>>();
  #failed = new Map<string, string>();
  #arrays = new Map<string, TileArray | "opening">();
  #listeners = new Set<() => void>();

  constructor(limit = 192 * 2 ** 20) {
    this.#limit = limit;
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The array, once it is open; listeners hear of it then. */
  array(origin: Origin): TileArray | undefined {
    const key = originKey(origin);
    const array = this.#arrays.get(key);
    if (array === undefined && !this.#failed.has(key)) void this.#open(key, origin);
    return array === "opening" ? undefined : array;
  }

  async #open(key: string, origin: Origin): Promise<void> {
    this.#arrays.set(key, "opening");
    try {
      this.#arrays.set(key, await TileArray.open(origin));
    } catch (error) {
      this.#arrays.delete(key);
      this.#failed.set(key, String((error as Error).message));
    }
    this.#tell();
  }

  get(key: string): Tile | undefined {
    const tile = this.#tiles.get(key);
    if (tile) {
      this.#tiles.delete(key);
      this.#tiles.set(key, tile);
    }
    return tile;
  }

  /** Why a tile or an array could not be read. */
  failure(key: string): string | undefined {
    return this.#failed.get(key);
  }

  /** Ask for the tiles that an owner wants now, and give up what no owner wants any more. */
  want(owner: object, tiles: Wanted[]): void {
    this.#wanted.set(owner, new Set(tiles.map(({ key }) => key)));
    this.#cancel();
    for (const tile of tiles) {
      const known = this.#tiles.has(tile.key) || this.#waiting.has(tile.key) || this.#failed.has(tile.key);
      if (!known) void this.#read(tile);
    }
  }

  /** Forget an owner. */
  release(owner: object): void {
    this.#wanted.delete(owner);
    this.#cancel();
  }

  /** Forget what failed, so that it is asked for again. */
  retry(): void {
    this.#failed.clear();
    for (const [key, { bytes, broken }] of this.#tiles) {
      if (!broken) continue;
      this.#tiles.delete(key);
      this.#bytes -= bytes;
    }
    this.#tell();
  }

  async #read({ array, coords, key }: Wanted): Promise<void> {
    const controller = new AbortController();
    this.#waiting.set(key, controller);
    try {
      this.#keep(key, await array.read(coords, controller.signal));
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#failed.set(key, String((error as Error).message));
    }
    this.#waiting.delete(key);
    this.#tell();
  }

  #cancel(): void {
    for (const [key, controller] of this.#waiting) {
      if ([...this.#wanted.values()].some((keys) => keys.has(key))) continue;
      this.#waiting.delete(key);
      controller.abort();
    }
  }

  #keep(key: string, tile: Tile): void {
    this.#tiles.set(key, tile);
    this.#bytes += tile.bytes;
    for (const [old, { bytes }] of this.#tiles) {
      if (this.#bytes <= this.#limit) break;
      this.#tiles.delete(old);
      this.#bytes -= bytes;
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
