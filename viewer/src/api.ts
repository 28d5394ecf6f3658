// What the server of `omnizarr view` answers. All addresses are relative to the page's own.

export interface DatasetEntry {
  number: number;
  name: string;
  location: string;
  format: string;
  kind: "group" | "array";
}

export interface TreeNode {
  path: string;
  name: string;
  kind: "array" | "group" | "unreadable";
  shape?: number[];
  dtype?: string;
  error?: string;
}

export interface Tree {
  path: string;
  kind: "array" | "group";
  total: number;
  nodes: TreeNode[];
  /** Where the next page begins; null: this is the last. */
  next?: number | null;
  note?: string | null;
}

/** A node in a table of members. */
export interface Member extends Omit<TreeNode, "kind"> {
  /** "nothing": a listed name that is no node. */
  kind: TreeNode["kind"] | "nothing";
  title?: string | null;
  dimensions?: (string | null)[] | null;
  units?: string | null;
  size?: number | null;
  is_picture?: boolean;
}

export interface Dimension {
  name: string | null;
  size: number;
  role: "x" | "y" | "z" | "t" | "c" | null;
  units: string | null;
  coordinate: string | null;
  step: number | null;
  origin: number;
  /** Where its coordinates rise to in a picture. */
  direction: "up" | "down" | null;
}

export interface Channel {
  label: string;
  color: string;
  window: [number, number] | null;
  /** Whether it is seen at first. */
  active: boolean;
}

/** What stored numbers mean: those that are `value`, of the bits of `mask` if it is given; without a value, any of its bits. */
export interface Flag {
  meaning: string;
  value: number | null;
  mask: number | null;
}

export interface ArrayInfo {
  shape: number[];
  /** Of what is drawn. */
  dtype: string;
  /** Of the array. */
  type: string;
  chunks: number[];
  shards: number[] | null;
  fill: unknown;
  show: "numbers" | "complex" | "table";
  units: string | null;
  title: string | null;
  /** The kind of integers that the bits of stored ones mean, where `_Unsigned` says so. */
  kind: "" | "u" | "i";
  /** Values that mean "missing", and the smallest and largest valid one: stored ones, of that kind. */
  missing: unknown[];
  low: unknown;
  high: unknown;
  scale: number;
  offset: number;
  flags: Flag[];
  dimensions: Dimension[];
  /** Coordinates along several dimensions: for each of their own, that of the array. */
  auxiliaries: { name: string; path: string; dimensions: number[]; role: Dimension["role"]; units: string | null }[];
  levels: { path: string; shape: number[] }[];
  channels: Channel[];
  view: number[];
  /** The dimension of red, green and blue, if it looks like that. */
  colours: number | null;
  /** Label images that can be drawn over it: for each of their dimensions, that of the array; colours by label. */
  labels: { name: string; path: string; dtype: string; shape: number[]; dimensions: number[]; levels: { path: string; shape: number[] }[]; colours: Record<string, string> }[];
  /** Where it lies on the earth: its coordinate reference system in words, and the smallest and largest x and y. */
  place: { crs: string | null; bounds: [number, number, number, number] | null } | null;
}

export interface Info {
  path: string;
  kind: "array" | "group" | "unreadable";
  format: string;
  facts: [string, string][];
  attributes: Record<string, unknown>;
  codecs: unknown[];
  documents: Record<string, string>;
  storage: { stored: number | null; size: number | null; chunks: number | null; chunks_stored: number | null } | null;
  notes?: string[];
  /** Why the node or its values cannot be read. */
  error?: string | null;
  /** The array to draw for a group: the finest level of an image. */
  draw?: string | null;
  array: ArrayInfo | null;
  /** Of a plate of wells: names of rows and columns, and the groups of wells by the numbers of theirs. */
  plate?: { rows: string[]; columns: string[]; wells: { path: string; row: number; column: number }[] } | null;
}

export interface Labels {
  labels: (string | number | null)[];
  /** Of times in a calendar other than ours: what they are made of. */
  numbers?: (number | null)[];
  units: string | null;
}

/** The elements along a dimension, unpacked: the smallest and largest of each bin; null: no number. */
export interface Course {
  /** Elements of a bin. */
  step: number;
  low: (number | null)[];
  high: (number | null)[];
  /** Which part of each bin was read. */
  share: number;
  /** Why some of it could not be read. */
  error: string | null;
}

export interface Table {
  shape: number[];
  fields: string[] | null;
  values: unknown;
}

export interface Chunks {
  grid: number[];
  /** Null: chunks differ in shape. */
  chunk_shape: number[] | null;
  shards: boolean;
  /** Bytes of each chunk that is stored; null: not known. */
  sizes: Record<string, number | null>;
  size_full: number | null;
  truncated: boolean;
  note?: string | null;
}

export interface Finding {
  code: string;
  severity: string;
  path: string;
  key: string | null;
  message: string;
  coords: number[] | null;
}

export type Selection = (number | [number, number] | [number, number, number])[];

type Query = Record<string, string | number>;

/** A failed request, with the server's own words. */
export class RequestError extends Error {}

async function request(path: string, query: Query, signal?: AbortSignal): Promise<Response> {
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  const address = `${path}${search.size ? `?${search}` : ""}`;
  const response = await fetch(address, signal ? { signal } : {});
  if (response.ok) return response;
  const words = await response.json().then(
    ({ error }: { error?: string }) => error,
    () => undefined,
  );
  throw new RequestError(words ?? `${address}: ${response.status} ${response.statusText}`);
}

const ask = async <T>(path: string, query: Query = {}, signal?: AbortSignal) => (await (await request(`api/${path}`, query, signal)).json()) as T;

export const datasets = () => ask<{ version: string; datasets: DatasetEntry[] }>("datasets");

export const tree = (d: number, path: string, offset = 0, limit = 500) =>
  ask<Tree>(`${d}/tree`, { path, offset, limit });

export const members = (d: number, path: string, offset: number, limit: number) =>
  ask<Omit<Tree, "nodes"> & { nodes: Member[] }>(`${d}/members`, { path, offset, limit });

/** A small picture of a node, and what it shows of a long line, if that is not all; null if it has none. */
export async function smallPicture(d: number, path: string, signal: AbortSignal): Promise<{ picture: Blob; note: string } | null> {
  const response = await request(`small/${d}`, { path }, signal);
  return response.status === 204 ? null : { picture: await response.blob(), note: response.headers.get("Omnizarr-Note") ?? "" };
}

export const search = (d: number, q: string, signal?: AbortSignal) =>
  ask<{ nodes: TreeNode[]; more: boolean }>(`${d}/search`, { q, limit: 200 }, signal);

export const info = (d: number, path: string) => ask<Info>(`${d}/info`, { path });

export const labels = (d: number, path: string, dimension: number, start: number, stop: number, step: number) =>
  ask<Labels>(`${d}/labels`, { path, dimension, start, stop, step });

export const line = (d: number, path: string, at: number[], dimension: number, [start, stop]: [number, number], step: number, part: string, fillIsMissing: boolean) =>
  ask<Course>(`${d}/line`, { path, at: JSON.stringify(at), dimension, start, stop, step, part, fill: Number(fillIsMissing) });

export const values = (d: number, path: string, select: Selection, signal?: AbortSignal) =>
  ask<Table>(`${d}/values`, { path, select: JSON.stringify(select) }, signal);

export const chunks = (d: number, path: string) => ask<Chunks>(`${d}/chunks`, { path });

/** The stored chunk next to an element, first in its plane along two dimensions; `known`: how many chunks are known to be stored. */
export interface Nearest {
  known: number | null;
  in_plane: boolean;
  start: number[];
  stop: number[];
}

export const nearest = (d: number, path: string, at: number[], dims: readonly number[]) =>
  ask<Nearest>(`${d}/nearest`, { path, at: JSON.stringify(at), dims: JSON.stringify(dims) });

export const check = (d: number, path: string) => ask<{ findings: Finding[]; complete: boolean }>(`${d}/check`, { path, data: 1 });

/** A path as part of an address: each name escaped, the slashes kept. */
export const escapePath = (path: string) => path.split("/").map(encodeURIComponent).join("/");
