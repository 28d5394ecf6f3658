// The state of the view, and its form in the page's address.
import { NAMES } from "./colours.ts";

export type Tab = "contents" | "picture" | "line" | "table" | "chunks" | "about";
export type Part = "magnitude" | "phase" | "real" | "imaginary";
export type Blend = "one" | "rgb" | "channels";
export type Limits = "percentiles" | "range" | "manual";

export interface View {
  /** The index in the middle of the picture, along x and along y. */
  x: number;
  y: number;
  /** Screen pixels per element along x. */
  z: number;
}

export interface ChannelLook {
  on: boolean;
  color: string;
  lo: number | null;
  hi: number | null;
}

export interface Look {
  dataset: number;
  path: string;
  /** The second node, side by side with the first. */
  beside: { dataset: number; path: string } | null;
  tab: Tab | null;
  /** The dimensions drawn downwards and to the right; null: the default of the array. */
  dims: [number, number] | null;
  at: (number | null)[];
  line: number | null;
  part: Part;
  colours: string;
  reversed: boolean;
  limits: Limits;
  percentiles: [number, number];
  /** The limits in use; null until the first picture is there. */
  range: [number, number] | null;
  log: boolean;
  blend: Blend | null;
  channels: ChannelLook[] | null;
  /** How missing values are shown: "hatch" or a colour such as #ff00ff. */
  missing: string;
  fillIsMissing: boolean;
  stretch: boolean | null;
  flip: boolean | null;
  grid: boolean;
  /** The label image that is drawn over the picture. */
  labels: string | null;
  /** Whether coastlines are drawn where axes are longitudes and latitudes. */
  coast: boolean;
  view: View | null;
}

export const START: Look = {
  dataset: 0,
  path: "",
  beside: null,
  tab: null,
  dims: null,
  at: [],
  line: null,
  part: "magnitude",
  colours: "viridis",
  reversed: false,
  limits: "percentiles",
  percentiles: [2, 98],
  range: null,
  log: false,
  blend: null,
  channels: null,
  missing: "hatch",
  fillIsMissing: false,
  stretch: null,
  flip: null,
  grid: false,
  labels: null,
  coast: true,
  view: null,
};

/** What belongs to one node and starts again at the next one. */
export const FRESH: Partial<Look> = {
  tab: null,
  dims: null,
  at: [],
  line: null,
  limits: "percentiles",
  percentiles: START.percentiles,
  range: null,
  log: false,
  blend: null,
  channels: null,
  fillIsMissing: false,
  stretch: null,
  flip: null,
  view: null,
};

const TABS: readonly string[] = ["contents", "picture", "line", "table", "chunks", "about"];
const PARTS: readonly string[] = ["magnitude", "phase", "real", "imaginary"];
const BLENDS: readonly string[] = ["one", "rgb", "channels"];
const LIMITS: readonly string[] = ["percentiles", "range", "manual"];

/** A number in few digits that is read back as (nearly) the same one. */
export const short = (value: number, digits = 9): string => String(Number(value.toPrecision(digits)));

/** The look as the part of an address behind `#`, without what is the default. */
export function toHash(look: Look): string {
  const parts: [string, string][] = [["d", String(look.dataset)]];
  const add = (name: string, value: string | null, start: string | null = null) => {
    if (value !== null && value !== start) parts.push([name, value]);
  };
  add("p", look.path, "");
  if (look.beside) parts.push(["d2", String(look.beside.dataset)], ["p2", look.beside.path]);
  add("tab", look.tab);
  add("dims", look.dims && look.dims.join(","));
  if (look.at.some((index) => index !== null)) add("at", look.at.map((index) => index ?? "").join(","));
  add("line", look.line === null ? null : String(look.line));
  add("part", look.part, START.part);
  add("cmap", look.colours, START.colours);
  add("rev", flag(look.reversed), "0");
  add("limits", look.limits, START.limits);
  add("lo", short(look.percentiles[0]), short(START.percentiles[0]));
  add("hi", short(look.percentiles[1]), short(START.percentiles[1]));
  if (look.range) parts.push(["min", short(look.range[0])], ["max", short(look.range[1])]);
  add("log", flag(look.log), "0");
  add("blend", look.blend);
  add("ch", look.channels && look.channels.map(channelText).join(";"));
  add("nan", look.missing, START.missing);
  add("fill", flag(look.fillIsMissing), "0");
  add("stretch", look.stretch === null ? null : flag(look.stretch));
  add("flip", look.flip === null ? null : flag(look.flip));
  add("grid", flag(look.grid), "0");
  add("labels", look.labels);
  add("coast", flag(look.coast), "1");
  if (look.view) parts.push(["x", short(look.view.x)], ["y", short(look.view.y)], ["z", short(look.view.z, 6)]);
  return parts.map(([name, value]) => `${name}=${escapeValue(value)}`).join("&");
}

/** The look in an address, with defaults for what is missing. */
export function fromHash(hash: string): Look {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const look: Look = { ...START, dataset: count(query.get("d")) ?? 0, path: query.get("p") ?? "" };
  const beside = count(query.get("d2"));
  if (beside !== null) look.beside = { dataset: beside, path: query.get("p2") ?? "" };
  look.tab = oneOf(query.get("tab"), TABS) as Tab | null;
  const dims = (query.get("dims") ?? "").split(",").map(count);
  if (dims.length === 2 && dims[0] != null && dims[1] != null) look.dims = [dims[0], dims[1]];
  if (query.has("at")) look.at = query.get("at")!.split(",").map(count);
  look.line = count(query.get("line"));
  look.part = (oneOf(query.get("part"), PARTS) as Part | null) ?? START.part;
  look.colours = oneOf(query.get("cmap"), NAMES) ?? START.colours;
  look.reversed = query.get("rev") === "1";
  look.limits = (oneOf(query.get("limits"), LIMITS) as Limits | null) ?? START.limits;
  look.percentiles = [number(query.get("lo")) ?? START.percentiles[0], number(query.get("hi")) ?? START.percentiles[1]];
  const [min, max] = [number(query.get("min")), number(query.get("max"))];
  if (min !== null && max !== null) look.range = [min, max];
  look.log = query.get("log") === "1";
  look.blend = oneOf(query.get("blend"), BLENDS) as Blend | null;
  if (query.has("ch")) look.channels = query.get("ch")!.split(";").map(channelLook);
  look.missing = query.get("nan") ?? START.missing;
  look.fillIsMissing = query.get("fill") === "1";
  look.stretch = query.has("stretch") ? query.get("stretch") === "1" : null;
  look.flip = query.has("flip") ? query.get("flip") === "1" : null;
  look.grid = query.get("grid") === "1";
  look.labels = query.get("labels");
  look.coast = query.get("coast") !== "0";
  const [x, y, z] = [number(query.get("x")), number(query.get("y")), number(query.get("z"))];
  if (x !== null && y !== null && z !== null && z > 0) look.view = { x, y, z };
  return look;
}

const flag = (value: boolean) => (value ? "1" : "0");

/** Escaped as little as an address allows, so that people can read it. */
const escapeValue = (value: string) => encodeURIComponent(value).replace(/%(2C|2F|3B|3A)/g, decodeURIComponent);

function channelText({ on, color, lo, hi }: ChannelLook): string {
  return `${on ? "" : "-"}${color}${lo === null || hi === null ? "" : `:${short(lo)}:${short(hi)}`}`;
}

function channelLook(text: string): ChannelLook {
  const [color = "", lo = "", hi = ""] = text.split(":");
  return { on: !color.startsWith("-"), color: color.replace("-", ""), lo: number(lo), hi: number(hi) };
}

function number(text: string | null): number | null {
  const value = text ? Number(text) : NaN;
  return Number.isFinite(value) ? value : null;
}

function count(text: string | null): number | null {
  return text && /^\d+$/.test(text) ? Number(text) : null;
}

const oneOf = (text: string | null, choices: readonly string[]) => (text !== null && choices.includes(text) ? text : null);
