// An array as a picture: panes that move together, sliders, and the controls beside them.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { nearest, type ArrayInfo, type DatasetEntry, type Info } from "./api.ts";
import { coast as readCoast, isGeographic, kindOf, type Coast } from "./coast.ts";
import { familyOf, table } from "./colours.ts";
import { Controls } from "./controls.tsx";
import { Auxiliary, Coordinates } from "./coordinates.ts";
import { dataType, numberWords, PLAIN } from "./dtypes.ts";
import type { ChannelLook, Look, View } from "./look.ts";
import { Copy, useAnswer } from "./parts.tsx";
import { decoding, pythonLine, type Index } from "./python.ts";
import { aspectOf, channelName, isUpsideDown, levelsOf, meaningOf, type Resolved } from "./resolve.ts";
import { savePicture } from "./saving.ts";
import { Scene, type BlendStyle, type ColourMap, type Layer, type Pointed, type Scenery } from "./scene.ts";
import { Sliders } from "./sliders.tsx";
import { limitsOf } from "./statistics.ts";
import type { TileCache } from "./tiles.ts";

export interface Shown {
  entry: DatasetEntry;
  info: Info;
}

export type Change = (patch: Partial<Look>) => void;
export type Actions = RefObject<Record<string, () => void>>;

interface Props {
  shown: Shown;
  beside: Shown | null;
  look: Look;
  resolved: Resolved;
  change: Change;
  cache: TileCache;
  actions: Actions;
}

interface Pane {
  key: "first" | "second" | "difference";
  title: string;
  scenery: Scenery;
}

type Samples = Record<string, Float64Array[]>;

export function Picture({ shown, beside, look, resolved, change, cache, actions }: Props) {
  const array = shown.info.array!;
  const other = beside?.info.array ?? null;
  const canCompare = other !== null && other.shape.length === array.shape.length && other.show !== "table";
  const canSubtract = canCompare && String(other.shape) === String(array.shape);
  const scenes = useRef(new Map<string, Scene>());
  const samples = useRef<Samples>({});
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const [difference, setDifference] = useState<[number, number] | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [flat, setFlat] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<Record<string, string | null>>({});
  const [playing, setPlaying] = useState<number | null>(null);
  const coordinates = useCoordinates(shown, redraw);
  const auxiliaries = useAuxiliaries(shown, redraw);
  const flipped = look.flip ?? isUpsideDown(array, resolved, coordinates, auxiliaries);
  const coast = useCoast(look.coast && isGeographic(array, resolved.dims));
  const panes = usePanes();

  function usePanes(): Pane[] {
    const labels = coordinates.map((one) => one.hasLabels);
    return useMemo(() => {
      const base = sceneryOf(array, look, resolved, coordinates, flipped, coast, shown.entry.number);
      const layers = layersOf(shown, look, resolved, canCompare);
      const style = styleOf(look, resolved);
      const ahead = playing === null ? null : stepped(resolved.at, playing, array.shape, 1);
      const first: Pane = { key: "first", title: titleOf(shown), scenery: { ...base, layers, style, difference: false, ahead } };
      if (!canCompare) return [first];
      const theirs = layersOf(beside!, look, resolved, true);
      const second: Pane = { key: "second", title: titleOf(beside!), scenery: { ...base, ...sizeOf(other, resolved.dims), layers: theirs, style, difference: false, ahead } };
      if (!canSubtract) return [first, second];
      const map: ColourMap = { kind: "map", table: table("RdBu", true), range: difference, log: false };
      const both = { ...base, layers: [layers[0]!, theirs[0]!], style: map, difference: true, ahead };
      return [first, second, { key: "difference", title: "first − second", scenery: both }];
    }, [shown.info, beside?.info, look, resolved, flipped, coast, difference, playing, String(labels)]);
  }

  const forget = () => {
    samples.current = {};
    setDifference(null);
  };
  const mainKeys = panes.filter(({ key }) => key !== "difference").map(({ key }) => key);

  const rescale = (settings: Look = look) => {
    const seen = mainKeys.map((key) => samples.current[key]);
    if (seen.some((parts) => parts === undefined)) return;
    const parts = seen as Float64Array[][];
    if (resolved.blend !== "one") change({ channels: scaledChannels(resolved.channels, parts[0]!, settings, resolved.blend === "rgb") });
    else change({ range: autoRange(parts.map((part) => part[0]!), settings, resolved) });
    if (samples.current["difference"]) setDifference(limitsOf(samples.current["difference"][0]!, [1, 99], true));
  };

  const plane = JSON.stringify([resolved.at.map((index, k) => (resolved.dims.includes(k) ? null : index)), resolved.dims, resolved.blend]);
  const complete = (key: string, parts: Float64Array[]) => {
    samples.current[key] = parts;
    if (key === "first") setFlat(parts.every((part) => part.length === 0 || part[0] === part[part.length - 1]) ? plane : null);
    if (key === "difference") {
      if (difference === null) setDifference(limitsOf(parts[0]!, [1, 99], true) ?? [-1, 1]);
      return;
    }
    const isOpen = resolved.blend === "one" ? look.range === null : resolved.channels.some(({ on, lo }) => on && lo === null);
    if (isOpen) rescale();
    else redraw(0);
  };

  /** A change after which other numbers are seen: their limits are looked for again. */
  const changeMeaning: Change = (patch) => {
    forget();
    change({ range: null, limits: look.limits === "manual" ? "percentiles" : look.limits, ...patch });
  };

  const moveTo = (k: number, index: number) => change({ at: resolved.at.map((old, i) => (i === k ? index : old)) });
  const step = (by: number) => {
    const k = playing ?? movable(resolved, array)[0];
    if (k !== undefined) change({ at: stepped(resolved.at, k, array.shape, by) });
  };

  useEffect(() => {
    if (playing === null) return;
    const timer = setInterval(() => {
      if ([...scenes.current.values()].every(({ canvas }) => canvas.dataset["state"] === "complete")) step(1);
    }, 160);
    return () => clearInterval(timer);
  });

  const pointAt = (key: string, point: Pointed | null) => {
    for (const [name, other] of scenes.current) other.echo(name === key ? null : point);
    setPointed((point && scenes.current.get("difference")?.sampleOf(point)) ?? point);
  };

  const scene = () => scenes.current.get("first");
  const save = () => {
    const drawn = panes.map(({ key, title, scenery }) => ({ canvas: scenes.current.get(key)!.canvas, title, style: scenery.style }));
    void savePicture(drawn, shown.info.array!, look, fileName(shown));
  };
  actions.current = {
    zoomIn: () => scene()?.move(1.5, 0, 0),
    zoomOut: () => scene()?.move(1 / 1.5, 0, 0),
    fit: () => {
      change({ view: null });
      for (const one of scenes.current.values()) one.follow(null);
    },
    left: () => scene()?.move(1, -0.15, 0),
    right: () => scene()?.move(1, 0.15, 0),
    up: () => scene()?.move(1, 0, -0.15),
    down: () => scene()?.move(1, 0, 0.15),
    previous: () => step(-1),
    next: () => step(1),
    play: () => setPlaying(playing === null ? (movable(resolved, array)[0] ?? null) : null),
    rescale: () => rescale(),
    log: () => change({ log: !look.log }),
    grid: () => change({ grid: !look.grid }),
    coast: () => change({ coast: !look.coast }),
    flip: () => change({ flip: !flipped }),
    swap: () => change({ dims: [resolved.dims[1], resolved.dims[0]], view: null, flip: null }),
    save,
  };

  const line = lineOf(shown, array, look, resolved, flipped, scene()?.selection() ?? null);
  const isWide = panes[0]!.scenery.columns > 1.3 * panes[0]!.scenery.rows * (panes[0]!.scenery.aspect ?? 1);
  const failures = Object.values(trouble).filter((message) => message !== null);
  return (
    <div class="picture">
      <div class="stage">
        <div class={`panes panes-${panes.length} ${isWide ? "wide" : ""}`}>
          {panes.map((pane) => (
            <PaneView
              key={pane.key}
              pane={pane}
              alone={panes.length === 1}
              look={look}
              cache={cache}
              scenes={scenes.current}
              onMoved={(view) => change({ view })}
              onPointed={(point) => pointAt(pane.key, point)}
              onPicked={(x, y) => change({ at: resolved.at.map((old, k) => (k === resolved.dims[0] ? y : k === resolved.dims[1] ? x : old)) })}
              onComplete={(parts) => complete(pane.key, parts)}
              onFailed={(message) => trouble[pane.key] !== message && setTrouble((old) => ({ ...old, [pane.key]: message }))}
              range={pane.key === "difference" ? difference : null}
            />
          ))}
        </div>
        {failures.length > 0 && (
          <div class="trouble small" role="alert">
            {failures[0]} <button onClick={() => cache.retry()}>Try again</button>
          </div>
        )}
        {flat === plane && <Sparse key={plane} {...{ shown, resolved, change }} seen={scene()?.seen() ?? null} />}
        {beside && !canCompare && <p class="trouble small">{titleOf(beside)} has another number of dimensions: it cannot be shown beside this one.</p>}
        <Readout pointed={pointed} resolved={resolved} coordinates={coordinates} auxiliaries={auxiliaries} array={array} names={panes.map(({ title }) => title)} />
        <Place array={array} />
        <Sliders array={array} resolved={resolved} coordinates={coordinates} playing={playing} onPlay={setPlaying} onMove={moveTo} />
        <PythonLine text={line} />
      </div>
      <Controls
        array={array}
        look={look}
        resolved={resolved}
        flipped={flipped}
        samples={samples.current["first"] ?? null}
        coordinates={coordinates}
        change={change}
        changeMeaning={changeMeaning}
        rescale={rescale}
        actions={actions.current}
        comparing={canCompare}
      />
    </div>
  );
}

// --- from settings to sceneries --------------------------------------------------------------------------------------

function useCoordinates(shown: Shown, redraw: (turn: number) => void): Coordinates[] {
  const array = shown.info.array!;
  return useMemo(
    () => array.dimensions.map((_, k) => new Coordinates(shown.entry.number, shown.info.path, array, k, () => redraw(0))),
    [shown.info],
  );
}

function useAuxiliaries(shown: Shown, redraw: (turn: number) => void): Auxiliary[] {
  const array = shown.info.array!;
  return useMemo(
    // Times are numbers here: those of a dimension are told by it.
    () => array.auxiliaries.filter(({ role }) => role !== "t").map((each) => new Auxiliary(shown.entry.number, array, each, () => redraw(0))),
    [shown.info],
  );
}

/** The coast, once it was read; null if it is not wanted. */
function useCoast(isWanted: boolean): Coast | null {
  const [lines, setLines] = useState<Coast | null>(null);
  useEffect(() => {
    if (isWanted) readCoast().then(setLines, () => undefined); // a picture without it is still one
  }, [isWanted]);
  return isWanted ? lines : null;
}

function sizeOf(array: ArrayInfo, [y, x]: [number, number]) {
  return { rows: array.shape[y]!, columns: array.shape[x]! };
}

function sceneryOf(array: ArrayInfo, look: Look, { dims, at }: Resolved, coordinates: Coordinates[], flipped: boolean, coast: Coast | null, dataset: number) {
  const [y, x] = dims;
  const isPicked = look.at[y] != null && look.at[x] != null;
  const cut = (shape: number[]): [number, number] => [shape[y]!, shape[x]!];
  return {
    rank: array.shape.length,
    dims,
    ...sizeOf(array, dims),
    aspect: aspectOf(array, dims, look.stretch),
    flipped,
    missing: look.missing,
    grid: look.grid ? { chunks: cut(array.chunks), shards: array.shards && cut(array.shards) } : null,
    axes: { y: coordinates[y]!, x: coordinates[x]! },
    coast: coast && { lines: coast, isTurned: kindOf(array, x) === "latitude" },
    mark: isPicked ? { y: at[y]!, x: at[x]! } : null,
    labels: labelsOf(array, dataset, look, { dims, at }),
  };
}

/** The labels to draw over the picture: at the same indices, at the first one along dimensions that they have for themselves. */
function labelsOf(array: ArrayInfo, dataset: number, look: Look, { dims, at }: Pick<Resolved, "dims" | "at">): Scenery["labels"] {
  const found = array.labels.find(({ name }) => name === look.labels);
  if (!found) return null;
  const own = dims.map((k) => found.dimensions.indexOf(k)) as [number, number];
  if (own.some((k) => k < 0)) return null;
  const layer: Layer = {
    dataset,
    levels: found.levels.map(({ path, shape }) => ({ path, factors: own.map((k, i) => array.shape[dims[i]!]! / shape[k]!) as [number, number] })),
    dtype: found.dtype,
    at: found.dimensions.map((k, i) => Math.min(found.shape[i]! - 1, Math.floor((at[k]! * found.shape[i]!) / array.shape[k]!))),
    meaning: { ...PLAIN, type: dataType(found.dtype), missing: [], flags: [] },
    dims: own,
  };
  return { layer, colours: found.colours };
}

/** What is read: one layer, or one for each channel that is on. Arrays that are compared are read by strides alone. */
function layersOf({ entry, info }: Shown, look: Look, resolved: Resolved, comparing: boolean): Layer[] {
  const array = info.array!;
  const { dims, at, blend, channelDim } = resolved;
  const levels = comparing ? [{ path: info.path, factors: [1, 1] as [number, number] }] : levelsOf(info.path, array, dims);
  const limited = at.map((index, k) => Math.min(index, array.shape[k]! - 1));
  const layer: Layer = { dataset: entry.number, levels, dtype: array.dtype, at: limited, meaning: meaningOf(array, look) };
  if (blend === "one" || channelDim === null) return [layer];
  const shownChannels = resolved.channels.flatMap((channel, k) => (channel.on ? [k] : []));
  return shownChannels.map((index) => ({ ...layer, at: limited.map((old, k) => (k === channelDim ? index : old)) }));
}

function styleOf(look: Look, { blend, channels }: Resolved): ColourMap | BlendStyle {
  if (blend === "one") return { kind: "map", table: table(look.colours, look.reversed), range: look.range, log: look.log };
  const on = channels.filter((channel) => channel.on);
  const isOpen = on.some(({ lo, hi }) => lo === null || hi === null);
  return { kind: "blend", channels: isOpen ? null : on.map(({ color, lo, hi }) => ({ color, lo: lo!, hi: hi! })) };
}

function autoRange(parts: Float64Array[], look: Look, { meaning }: Resolved): [number, number] {
  if (meaning.type.kind === "bool") return [0, 1];
  if (meaning.type.kind === "complex" && look.part === "phase") return [-Math.PI, Math.PI];
  const ranges = parts.flatMap((part) => {
    const limits = limitsOf(part, look.limits === "percentiles" ? look.percentiles : null, familyOf(look.colours) === "diverging");
    return limits ? [limits] : [];
  });
  if (ranges.length === 0) return [0, 1];
  return [Math.min(...ranges.map(([lo]) => lo)), Math.max(...ranges.map(([, hi]) => hi))];
}

function scaledChannels(channels: ChannelLook[], parts: Float64Array[], look: Look, together: boolean): ChannelLook[] {
  let next = 0;
  const scaled = channels.map((channel) => {
    if (!channel.on) return channel;
    const limits = limitsOf(parts[next++] ?? [], look.limits === "range" ? null : look.percentiles);
    return limits ? { ...channel, lo: limits[0], hi: limits[1] } : channel;
  });
  if (!together) return scaled;
  // Red, green and blue share limits: each for itself would change the colours.
  const [lo, hi] = [scaled.map((channel) => channel.lo ?? 0), scaled.map((channel) => channel.hi ?? 1)];
  return scaled.map((channel) => ({ ...channel, lo: Math.min(...lo), hi: Math.max(...hi) }));
}

const titleOf = ({ entry, info }: Shown) => [entry.name, info.path].filter(Boolean).join("/");
const fileName = ({ entry, info }: Shown) => `${(info.path || entry.name).split("/").pop()!.replace(/\.zarr$/, "")}.png`;

/** The dimensions that have a slider. */
export function movable({ dims, blend, channelDim }: Resolved, array: ArrayInfo): number[] {
  return array.shape.flatMap((size, k) => (size > 1 && !dims.includes(k) && !(blend !== "one" && k === channelDim) ? [k] : []));
}

function stepped(at: number[], k: number, shape: number[], by: number): number[] {
  return at.map((index, i) => (i === k ? (index + by + shape[k]!) % shape[k]! : index));
}

function lineOf({ entry, info }: Shown, array: ArrayInfo, look: Look, resolved: Resolved, flipped: boolean, seen: ReturnType<Scene["selection"]>): string {
  const { dims, at, blend, channelDim } = resolved;
  const on = blend === "one" || channelDim === null ? null : resolved.channels.flatMap((channel, k) => (channel.on ? [k] : []));
  const isRange = on !== null && on.length > 0 && on[on.length - 1]! - on[0]! === on.length - 1;
  // Of a coarser level, the line reads that level.
  const sizes = array.shape.map((size, k) => (seen ? (seen.sizes[dims.indexOf(k)] ?? size) : size));
  const selection = at.map((index, k): Index => {
    if (on && k === channelDim) return isRange ? { start: on[0]!, stop: on[on.length - 1]! + 1, step: 1 } : { start: 0, stop: sizes[k]!, step: 1 };
    const drawn = dims.indexOf(k);
    if (drawn < 0) return index;
    return seen ? seen.ranges[drawn]! : { start: 0, stop: sizes[k]!, step: 1 };
  });
  const kept = [...dims, ...(on ? [channelDim!] : [])];
  const order = kept.map((k) => [...kept].sort((a, b) => a - b).indexOf(k));
  return pythonLine(entry.location, seen?.path ?? info.path, selection, sizes, { ...decoding(array, look), order, channels: on && !isRange ? on : null, flipped });
}

/** An offer to go where chunks are stored, if a picture of one value shows none of them. */
function Sparse({ shown, resolved, change, seen }: { shown: Shown; resolved: Resolved; change: Change; seen: ReturnType<Scene["seen"]> }) {
  const { entry, info } = shown;
  const { dims, at } = resolved;
  const middle = at.map((index, k) => {
    const drawn = seen && (k === dims[0] ? seen.y : k === dims[1] ? seen.x : null);
    return drawn ? Math.min(info.array!.shape[k]! - 1, Math.floor((drawn[0] + drawn[1]) / 2)) : index;
  });
  const { answer } = useAnswer(() => nearest(entry.number, info.path, middle, dims), [info, JSON.stringify(middle)]);
  if (!answer || answer.known === 0 || !seen) return answer?.known === 0 ? <p class="offer">No chunk of this array is stored: every element is the fill value.</p> : null;
  const { start, stop } = answer;
  const [y, x] = dims;
  const isSeen = answer.in_plane && start[y]! < seen.y[1] && stop[y]! > seen.y[0] && start[x]! < seen.x[1] && stop[x]! > seen.x[0];
  if (isSeen) return null;
  const go = () => {
    const sides = dims.map((k) => stop[k]! - start[k]!) as [number, number];
    const isSmall = sides.some((side, i) => side * 8 < info.array!.shape[dims[i]!]!);
    const view = { x: start[x]! + sides[1] / 2, y: start[y]! + sides[0] / 2, z: 160 / Math.max(...sides) };
    change({
      at: at.map((old, k) => (dims.includes(k) ? null : Math.max(start[k]!, Math.min(stop[k]! - 1, old)))),
      view: isSmall ? view : null,
      range: null,
      channels: null,
    });
  };
  return (
    <p class="offer" role="status">
      No chunk of this {answer.in_plane ? "part" : "plane"} is stored: it shows the fill value. <button onClick={go}>Go to stored data</button>
    </p>
  );
}

// --- pieces ------------------------------------------------------------------------------------------------------------

interface PaneProps {
  pane: Pane;
  alone: boolean;
  look: Look;
  cache: TileCache;
  scenes: Map<string, Scene>;
  range: [number, number] | null;
  onMoved: (view: View) => void;
  onPointed: (pointed: Pointed | null) => void;
  onPicked: (x: number, y: number) => void;
  onComplete: (samples: Float64Array[]) => void;
  onFailed: (message: string | null) => void;
}

function PaneView(props: PaneProps) {
  const { pane, alone, look, cache, scenes, range } = props;
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useLayoutEffect(() => {
    const scene = new Scene(ref.current!, cache, {
      moved: (view) => latest.current.onMoved(view),
      pointed: (pointed) => latest.current.onPointed(pointed),
      picked: (x, y) => latest.current.onPicked(x, y),
      complete: (samples) => latest.current.onComplete(samples),
      failed: (message) => latest.current.onFailed(message),
    });
    scene.onMove = (view) => {
      for (const other of scenes.values()) if (other !== scene) other.follow(view);
    };
    scenes.set(pane.key, scene);
    return () => {
      scene.close();
      scenes.delete(pane.key);
    };
  }, [pane.key]);
  useLayoutEffect(() => scenes.get(pane.key)!.set(pane.scenery, look.view), [pane.scenery, look.view]);
  return (
    <figure class="pane">
      {!alone && (
        <figcaption>
          {pane.title}
          {range && <span class="soft"> from {numberWords(Number(range[0].toPrecision(3)))} (blue) to {numberWords(Number(range[1].toPrecision(3)))} (red)</span>}
        </figcaption>
      )}
      <canvas ref={ref} class="canvas" data-pane={pane.key} tabIndex={0} role="img" aria-label={`Picture of ${pane.title}. Arrows move it, plus and minus zoom.`} />
    </figure>
  );
}

interface ReadoutProps {
  pointed: Pointed | null;
  resolved: Resolved;
  coordinates: Coordinates[];
  auxiliaries: Auxiliary[];
  array: ArrayInfo;
  names: string[];
}

function Readout({ pointed, resolved, coordinates, auxiliaries, array, names }: ReadoutProps) {
  const isBlend = resolved.blend !== "one";
  // Room for two lines where words are long, so that the picture keeps its size.
  const tall = isBlend || resolved.meaning.type.kind === "complex" ? "tall" : "";
  if (!pointed) return <p class={`readout soft ${tall}`}>Point at the picture for a value; click to pick a point for the line.</p>;
  const [y, x] = resolved.dims;
  const index = resolved.at.map((old, k) => (k === y ? pointed.y : k === x ? pointed.x : old));
  const place = [y, x].map((k) => {
    const words = coordinates[k]!.words(index[k]!);
    return `${coordinates[k]!.name} ${words || index[k]}${words ? ` [${index[k]}]` : ""}`;
  });
  place.push(...auxiliaries.map((each) => `${each.name} ${each.words(index, resolved.dims)}`));
  const on = resolved.channels.flatMap((channel, k) => (channel.on ? [channelName(array, resolved, k, coordinates[resolved.channelDim!]?.words(k))] : []));
  const units = array.units && !pointed.words.every((words) => words === "broken") ? ` ${array.units}` : "";
  const values = pointed.words.map((words, k) => (words === null ? "…" : `${isBlend ? `${on[k]} ` : ""}${words}`));
  const [first, second] = pointed.numbers;
  const isDifference = !isBlend && names.length === 3 && first != null && second != null;
  return (
    <p class={`readout ${tall}`} data-index={JSON.stringify(index)}>
      <b class="value">{values.join("  ·  ")}{isBlend ? "" : units}</b>
      {isDifference && pointed.words.length === 2 && <b class="difference">difference {numberWords(Number((first - second).toPrecision(6)), 64)}</b>}
      {pointed.label !== null && <span class="label">label {pointed.label}</span>}
      <span>{place.join(", ")}</span>
    </p>
  );
}

/** The coordinate reference system, and what the picture spans in it. */
function Place({ array: { place } }: { array: ArrayInfo }) {
  if (!place) return null;
  const [left, bottom, right, top] = (place.bounds ?? []).map((value) => numberWords(Number(value.toPrecision(10)), 64));
  return (
    <p class="place soft small">
      {place.crs && <b>{place.crs}</b>}
      {place.bounds && ` x ${left} to ${right}, y ${bottom} to ${top}`}
    </p>
  );
}

export const PythonLine = ({ text }: { text: string }) => (
  <p class="python">
    <span class="soft">Python</span>
    <code>{text}</code>
    <Copy text={text} label="Copy the line of Python" />
  </p>
);
