// One picture on a canvas: tiles drawn where they belong, with axes, moved by pointer and keys.
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior } from "d3-zoom";
import { outline, type Coast, type Outline } from "./coast.ts";
import type { Coordinates } from "./coordinates.ts";
import { drawable, wordsOf, type Meaning } from "./dtypes.ts";
import * as geometry from "./geometry.ts";
import type { Box, Frame, Level } from "./geometry.ts";
import type { View } from "./look.ts";
import { paintBlend, paintLabels, paintMap, type BlendChannel, type Painted } from "./painting.ts";
import { originKey, type Origin, type Tile, type TileArray, type TileCache, type Wanted } from "./tiles.ts";

/** One array, or one channel of it. */
export interface Layer {
  dataset: number;
  levels: Level[];
  dtype: string;
  /** An index for each dimension; those that are drawn are not looked at. */
  at: number[];
  meaning: Meaning;
  /** The dimensions drawn downwards and to the right, if they are others than those of the scenery. */
  dims?: [number, number];
}

export interface ColourMap {
  kind: "map";
  table: Uint32Array;
  range: [number, number] | null;
  log: boolean;
}

export interface BlendStyle {
  kind: "blend";
  /** Null while limits are still to be found. */
  channels: BlendChannel[] | null;
}

export interface Scenery {
  /** Two layers of "difference" are subtracted; those of "blend" are added up. */
  layers: Layer[];
  style: ColourMap | BlendStyle;
  difference: boolean;
  rank: number;
  /** The dimensions drawn downwards and to the right. */
  dims: [number, number];
  rows: number;
  columns: number;
  /** Height of an element over its width; null fills the plot. */
  aspect: number | null;
  flipped: boolean;
  missing: string;
  /** Chunk boundaries to draw, along y and x. */
  grid: { chunks: [number, number]; shards: [number, number] | null } | null;
  axes: { x: Coordinates; y: Coordinates };
  /** Coastlines to draw; turned: latitudes are along x. */
  coast: { lines: Coast; isTurned: boolean } | null;
  mark: { x: number; y: number } | null;
  /** Labels that are drawn over all, and their own colours. */
  labels: { layer: Layer; colours: Record<string, string> } | null;
  /** The indices that will be asked for next. */
  ahead: number[] | null;
}

/** What the pointer is at. */
export interface Pointed {
  x: number;
  y: number;
  /** The value of each layer, in words; null while it is not there. */
  words: (string | null)[];
  numbers: (number | null)[];
  /** The label, where labels are drawn. */
  label: string | null;
}

export interface Events {
  moved(view: View): void;
  pointed(pointed: Pointed | null): void;
  /** The samples that are seen, per layer (or of the difference), once all of them are there. */
  complete(samples: Float64Array[]): void;
  picked(x: number, y: number): void;
  failed(message: string | null): void;
}

/** Elements along a dimension. */
interface Read {
  start: number;
  stop: number;
  step: number;
}

interface Plan {
  layer: Layer;
  /** Of the level that is read. */
  path: string;
  array: TileArray;
  strides: [number, number];
  /** Elements of the finest level per sample, along y and x. */
  factors: [number, number];
  prefix: string;
  size: [number, number];
  chunk: [number, number];
}

/** Samples of a plan. */
interface Hole {
  y: [number, number];
  x: [number, number];
}

const MARGINS = { left: 84, right: 14, top: 10, bottom: 40 };
const CLOSEST = 96;

export class Scene {
  readonly canvas: HTMLCanvasElement;
  #cache: TileCache;
  #events: Events;
  #scenery: Scenery | null = null;
  #view: View | null = null;
  #zoom: ZoomBehavior<HTMLCanvasElement, unknown>;
  #frame = 0;
  #told = "";
  #pointer: [number, number] | null = null;
  #echo: { x: number; y: number } | null = null;
  #painted = new Map<string, Painted>();
  #values = new WeakMap<Tile, { key: string; values: Float32Array | Float64Array }>();
  /** Plans of the picture now and of those before it, which stand in for tiles that are not there yet. */
  #backdrops: Plan[][] = [];
  /** Of the labels that are drawn over the picture. */
  #labels: Plan | null = null;
  /** The coast along the axes that it was made for. */
  #outline: { x: Coordinates; y: Coordinates; lines: Outline | null } | null = null;
  #observer: ResizeObserver;
  #stopListening: () => void;

  constructor(canvas: HTMLCanvasElement, cache: TileCache, events: Events) {
    this.canvas = canvas;
    this.#cache = cache;
    this.#events = events;
    this.#zoom = zoom<HTMLCanvasElement, unknown>()
      .on("zoom", ({ transform, sourceEvent }) => sourceEvent && this.#zoomed(transform))
      .on("end", ({ sourceEvent }) => sourceEvent && this.#view && events.moved(this.#view));
    select(canvas).call(this.#zoom).on("dblclick.zoom", null);
    canvas.addEventListener("pointermove", this.#onMove);
    canvas.addEventListener("pointerleave", this.#onLeave);
    canvas.addEventListener("click", this.#onClick);
    this.#observer = new ResizeObserver(() => this.resize());
    this.#observer.observe(canvas);
    window.addEventListener("themechange", this.#onTheme);
    this.#stopListening = cache.listen(() => this.schedule());
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    window.removeEventListener("themechange", this.#onTheme);
    this.#stopListening();
    this.#cache.release(this);
    this.canvas.removeEventListener("pointermove", this.#onMove);
    this.canvas.removeEventListener("pointerleave", this.#onLeave);
    this.canvas.removeEventListener("click", this.#onClick);
  }

  set(scenery: Scenery, view: View | null): void {
    const changedArray = this.#scenery?.layers[0]?.levels !== scenery.layers[0]?.levels || String(this.#scenery?.dims) !== String(scenery.dims);
    if (changedArray) this.#backdrops = [];
    this.#scenery = scenery;
    this.#view = view;
    // Limits that are open wait for samples, also for those that were told before.
    if (isOpen(scenery)) this.#told = "";
    this.resize();
  }

  get view(): View | null {
    return this.frame()?.view ?? null;
  }

  /** Move without telling: another picture that is linked with this one was moved. */
  follow(view: View | null): void {
    this.#view = view;
    this.#syncZoom();
    this.schedule();
  }

  /** Show where the pointer is in a picture that is linked with this one. */
  echo(element: { x: number; y: number } | null): void {
    if (this.#echo === element) return;
    this.#echo = element;
    this.schedule();
  }

  /** Zoom by a factor around the middle, or move by a part of the view. */
  move(factor: number, right: number, downwards: number): void {
    const frame = this.frame();
    if (!frame) return;
    const { view, plot, aspect, flipped } = frame;
    const z = Math.min(CLOSEST, view.z * factor);
    const dy = (downwards * plot.height) / (view.z * aspect);
    this.follow({ x: view.x + (right * plot.width) / view.z, y: view.y + (flipped ? -dy : dy), z });
    this.#events.moved(this.#view!);
  }

  resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    this.#syncZoom();
    this.schedule();
  }

  schedule(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  get #plot(): Box {
    const { clientWidth, clientHeight } = this.canvas;
    const width = Math.max(10, clientWidth - MARGINS.left - MARGINS.right);
    return { x: MARGINS.left, y: MARGINS.top, width, height: Math.max(10, clientHeight - MARGINS.top - MARGINS.bottom) };
  }

  frame(): Frame | null {
    const scenery = this.#scenery;
    if (!scenery) return null;
    const { rows, columns, flipped } = scenery;
    const plot = this.#plot;
    const aspect = scenery.aspect ?? plot.height / rows / (plot.width / columns);
    return { view: this.#view ?? geometry.fit(columns, rows, aspect, plot), aspect, columns, rows, flipped, plot };
  }

  #syncZoom(): void {
    const frame = this.frame();
    if (!frame) return;
    const { view, plot, aspect, columns, rows, flipped } = frame;
    const whole = geometry.fit(columns, rows, aspect, plot).z;
    this.#zoom.extent([[plot.x, plot.y], [plot.x + plot.width, plot.y + plot.height]]);
    this.#zoom.scaleExtent([whole / 4, Math.max(CLOSEST, whole)]);
    const fromTop = flipped ? rows - view.y : view.y;
    const x = plot.x + plot.width / 2 - view.x * view.z;
    const y = plot.y + plot.height / 2 - fromTop * view.z * aspect;
    select(this.canvas).property("__zoom", zoomIdentity.translate(x, y).scale(view.z));
  }

  #zoomed({ k, x, y }: { k: number; x: number; y: number }): void {
    const frame = this.frame();
    if (!frame) return;
    const { plot, aspect, rows, flipped } = frame;
    const fromTop = (plot.y + plot.height / 2 - y) / (k * aspect);
    this.#view = { x: (plot.x + plot.width / 2 - x) / k, y: flipped ? rows - fromTop : fromTop, z: k };
    this.schedule();
    this.onMove?.(this.#view);
  }

  /** Called at each move by the pointer, for pictures that are linked with this one. */
  onMove: ((view: View) => void) | null = null;

  // --- reading -------------------------------------------------------------------------------------------------------

  #plan(layer: Layer, frame: Frame, isQuiet = false): Plan | null {
    const { rows, columns } = this.#scenery!;
    const dims = this.#dims(layer);
    const ratio = window.devicePixelRatio || 1;
    const wanted: [number, number] = [
      geometry.strideFor(frame.view.z * frame.aspect * ratio, rows),
      geometry.strideFor(frame.view.z * ratio, columns),
    ];
    const { level, strides } = geometry.choose(layer.levels, wanted);
    const all = Array.from({ length: layer.at.length }, (_, k) => strides[dims.indexOf(k)] ?? 1);
    const origin: Origin = { d: layer.dataset, path: level.path, dtype: layer.dtype, strides: all, dims };
    const array = this.#cache.array(origin);
    if (!array) {
      if (!isQuiet) this.#failure(this.#cache.failure(originKey(origin)));
      return null;
    }
    return {
      layer,
      path: level.path,
      array,
      strides,
      factors: [level.factors[0] * strides[0], level.factors[1] * strides[1]],
      prefix: prefixOf(originKey(origin), layer.at, dims),
      size: [array.shape[dims[0]]!, array.shape[dims[1]]!],
      chunk: [array.chunks[dims[0]]!, array.chunks[dims[1]]!],
    };
  }

  #dims(layer: Layer): [number, number] {
    return layer.dims ?? this.#scenery!.dims;
  }

  #failure(message: string | undefined): void {
    if (message !== undefined) this.#events.failed(message);
  }

  /** The tiles of a plan that are seen. */
  #tiles(plan: Plan, frame: Frame): geometry.TileBox[] {
    const { x, y } = geometry.seen(frame);
    const samples = (range: [number, number], k: 0 | 1): [number, number] => [
      Math.floor(range[0] / plan.factors[k]),
      Math.min(plan.size[k], Math.ceil(range[1] / plan.factors[k])),
    ];
    return geometry.tilesIn(samples(x, 1), samples(y, 0), plan.chunk);
  }

  #wanted(plan: Plan, { row, column }: geometry.TileBox): Wanted {
    const dims = this.#dims(plan.layer);
    const coords = plan.layer.at.map((index, k) => {
      if (k === dims[0]) return row;
      return k === dims[1] ? column : Math.floor(index / plan.array.chunks[k]!);
    });
    return { array: plan.array, coords, key: `${plan.prefix}${row},${column}` };
  }

  /** Numbers of a tile, and where the drawn slice starts in it. */
  #numbers(plan: Plan, tile: Tile): { values: Float32Array | Float64Array; start: number; step: [number, number] } {
    const { meaning, at } = plan.layer;
    const dims = this.#dims(plan.layer);
    const key = JSON.stringify(meaning);
    let known = this.#values.get(tile);
    if (known?.key !== key) this.#values.set(tile, (known = { key, values: drawable(tile.raw, meaning) }));
    const { values } = known;
    const pairs = meaning.type.kind === "complex" ? 2 : 1;
    const stride = (k: number) => tile.stride[k]! / pairs;
    const start = at.reduce((sum, index, k) => (dims.includes(k) ? sum : sum + (index % plan.array.chunks[k]!) * stride(k)), 0);
    return { values, start, step: [stride(dims[0]), stride(dims[1])] };
  }

  /** A rectangle of samples from as many tiles as hold it; null while one of them is not there. What failed is missing. */
  #gather(plan: Plan, y: [number, number], x: [number, number]): Float64Array | null {
    const [height, width] = [y[1] - y[0], x[1] - x[0]];
    const out = new Float64Array(height * width).fill(NaN);
    for (const box of geometry.tilesIn(x, y, plan.chunk)) {
      const { key } = this.#wanted(plan, box);
      const tile = this.#cache.get(key);
      if (!tile && this.#cache.failure(key) !== undefined) continue;
      if (!tile) return null;
      const { values, start, step } = this.#numbers(plan, tile);
      const [y0, x0] = [box.row * plan.chunk[0], box.column * plan.chunk[1]];
      const [top, left] = [Math.max(y[0], y0), Math.max(x[0], x0)];
      const [bottom, right] = [Math.min(y[1], y0 + plan.chunk[0]), Math.min(x[1], x0 + plan.chunk[1])];
      for (let row = top; row < bottom; row++) {
        let from = start + (row - y0) * step[0] + (left - x0) * step[1];
        let to = (row - y[0]) * width + left - x[0];
        for (let column = left; column < right; column++, from += step[1]) out[to++] = values[from]!;
      }
      for (const hole of this.#holes(plan, tile, box)) {
        const [from, until] = [Math.max(left, hole.x[0]), Math.min(right, hole.x[1])];
        if (from >= until) continue;
        for (let row = Math.max(top, hole.y[0]); row < Math.min(bottom, hole.y[1]); row++) {
          const to = (row - y[0]) * width - x[0];
          out.fill(NaN, to + from, to + until);
        }
      }
    }
    return out;
  }

  /** The samples of a tile whose chunks are broken. */
  #holes(plan: Plan, tile: Tile, box: geometry.TileBox): Hole[] {
    const [first, second] = this.#dims(plan.layer);
    const [y0, x0] = [box.row * plan.chunk[0], box.column * plan.chunk[1]];
    return (tile.broken?.boxes ?? []).map((ends) => {
      const [y, x] = (first < second ? ends : [...ends].reverse()) as [[number, number], [number, number]];
      return { y: [y0 + y[0], y0 + y[1]], x: [x0 + x[0], x0 + x[1]] };
    });
  }

  #subtract(parts: Float64Array[]): Float64Array {
    return parts[0]!.map((value, i) => value - parts[1]![i]!);
  }

  // --- drawing -------------------------------------------------------------------------------------------------------

  #draw(): void {
    this.#frame = 0;
    const frame = this.frame();
    const scenery = this.#scenery;
    if (!frame || !scenery) return;
    const found = scenery.layers.map((layer) => this.#plan(layer, frame));
    const plans = found.every((plan) => plan !== null) ? (found as Plan[]) : null;
    this.#labels = scenery.labels && this.#plan(scenery.labels.layer, frame, true);
    if (plans) this.#request(plans, frame);
    const context = this.canvas.getContext("2d")!;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const isComplete = this.paint(context, frame, plans);
    this.canvas.dataset["state"] = isComplete ? "complete" : "loading";
    if (isComplete && plans) this.#tell(plans, frame);
    this.#point();
  }

  #request(plans: Plan[], frame: Frame): void {
    const { ahead, dims } = this.#scenery!;
    const tilesOf = (plan: Plan) => this.#tiles(plan, frame).map((box) => this.#wanted(plan, box));
    const wanted = plans.flatMap(tilesOf);
    const next = ahead ? plans.map((plan) => moved(plan, ahead, dims)).flatMap(tilesOf) : [];
    this.#cache.want(this, [...wanted, ...(this.#labels ? tilesOf(this.#labels) : []), ...next]);
    const broken = wanted.map(({ key }) => this.#cache.failure(key) ?? this.#cache.get(key)?.broken?.message).find((message) => message !== undefined);
    this.#events.failed(broken ?? null);
    const name = plans.map(({ prefix }) => prefix).join();
    this.#backdrops = this.#backdrops.filter((old) => old.map(({ prefix }) => prefix).join() !== name);
    this.#backdrops.push(plans);
    if (this.#backdrops.length > 6) this.#backdrops.shift();
  }

  #tell(plans: Plan[], frame: Frame): void {
    const name = JSON.stringify([plans.map(({ prefix, layer }) => [prefix, layer.meaning]), this.#scenery!.difference, frame.view, frame.plot]);
    if (this.#told === name) return;
    this.#told = name;
    const { x, y } = geometry.seen(frame);
    const range = ([start, stop]: [number, number], plan: Plan, k: 0 | 1): [number, number] => [
      Math.floor(start / plan.factors[k]),
      Math.min(plan.size[k], Math.ceil(stop / plan.factors[k])),
    ];
    const parts = plans.map((plan) => this.#gather(plan, range(y, plan, 0), range(x, plan, 1)) ?? new Float64Array());
    const sorted = (this.#scenery!.difference ? [this.#subtract(parts)] : parts).map((part) => {
      const step = Math.max(1, Math.floor(part.length / 250_000));
      return part.filter((value, i) => i % step === 0 && Number.isFinite(value)).sort();
    });
    performance.mark("picture");
    this.#events.complete(sorted);
  }

  /** Draw all of it; whether every tile was there. */
  paint(context: CanvasRenderingContext2D, frame: Frame, plans: Plan[] | null): boolean {
    const scenery = this.#scenery!;
    const style = getComputedStyle(this.canvas);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const { plot } = frame;
    context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    context.save();
    context.beginPath();
    context.rect(plot.x, plot.y, plot.width, plot.height);
    context.clip();
    context.imageSmoothingEnabled = false;
    fillBox(context, boxOf(frame, [0, scenery.rows], [0, scenery.columns]), colour("--waiting"));
    const background = scenery.missing === "hatch" ? hatch(context, colour("--hatch"), colour("--hatch-paper")) : scenery.missing;
    const isComplete = plans !== null && this.#isLoaded(plans, frame) && (this.#labels === null || this.#isLoaded([this.#labels], frame));
    if (!isComplete) for (const old of this.#backdrops) if (old !== plans) this.#paintTiles(context, frame, old, background);
    if (plans) this.#paintTiles(context, frame, plans, background);
    if (plans) this.#paintFailures(context, frame, plans, colour("--bad"));
    this.#paintLabels(context, frame);
    if (scenery.grid) this.#paintGrid(context, frame, colour("--grid"));
    this.#paintCoast(context, frame);
    if (this.#echo) paintMark(context, frame, this.#echo);
    if (scenery.mark) paintMark(context, frame, scenery.mark);
    context.restore();
    this.#paintAxes(context, frame, colour("--ink"), colour("--soft"));
    return isComplete;
  }

  #isLoaded(plans: Plan[], frame: Frame): boolean {
    return plans.every((plan) =>
      this.#tiles(plan, frame).every((box) => {
        const { key } = this.#wanted(plan, box);
        return this.#cache.get(key) !== undefined || this.#cache.failure(key) !== undefined;
      }),
    );
  }

  #paintTiles(context: CanvasRenderingContext2D, frame: Frame, plans: Plan[], background: string | CanvasPattern): void {
    const plan = plans[0]!;
    for (const box of this.#tiles(plan, frame)) {
      const y: [number, number] = [box.row * plan.chunk[0], Math.min(plan.size[0], (box.row + 1) * plan.chunk[0])];
      const x: [number, number] = [box.column * plan.chunk[1], Math.min(plan.size[1], (box.column + 1) * plan.chunk[1])];
      const painted = this.#raster(plans, box, y, x);
      if (!painted || plans.some((one) => this.#cache.failure(this.#wanted(one, box).key) !== undefined)) continue;
      const { factors } = plan;
      const place = boxOf(frame, scaled(y, factors[0]), scaled(x, factors[1]));
      if (painted.hasMissing) fillBox(context, clipped(place, this.#arrayBox(frame)), background);
      drawRaster(context, painted.canvas, place, frame.flipped);
    }
  }

  #arrayBox(frame: Frame): Box {
    return boxOf(frame, [0, frame.rows], [0, frame.columns]);
  }

  #raster(plans: Plan[], box: geometry.TileBox, y: [number, number], x: [number, number]): Painted | null {
    const { style, difference } = this.#scenery!;
    const look = style.kind === "map" ? [style.table[0], style.table[128], style.table[255], style.range, style.log] : style.channels;
    const holes = plans.map((plan) => this.#cache.get(this.#wanted(plan, box).key)?.broken?.boxes);
    const key = JSON.stringify([plans.map(({ prefix, layer }) => [prefix, layer.meaning]), box, look, difference, holes]);
    const known = this.#painted.get(key);
    if (known) return known;
    if (isOpen(this.#scenery!)) return null;
    const parts = plans.map((plan) => this.#gather(plan, y, x));
    if (parts.some((part) => part === null)) return null;
    const values = difference ? [this.#subtract(parts as Float64Array[])] : (parts as Float64Array[]);
    const size: [number, number] = [y[1] - y[0], x[1] - x[0]];
    const painted = style.kind === "map" ? paintMap(values[0]!, size, style.table, style.range!, style.log) : paintBlend(values, size, style.channels!);
    this.#painted.set(key, painted);
    if (this.#painted.size > 400) this.#painted.delete(this.#painted.keys().next().value!);
    return painted;
  }

  #paintFailures(context: CanvasRenderingContext2D, frame: Frame, plans: Plan[], colour: string): void {
    for (const plan of plans)
      for (const box of this.#tiles(plan, frame)) {
        const { key } = this.#wanted(plan, box);
        const tile = this.#cache.get(key);
        const [y0, x0] = [box.row * plan.chunk[0], box.column * plan.chunk[1]];
        const all: Hole = { y: [y0, y0 + plan.chunk[0]], x: [x0, x0 + plan.chunk[1]] };
        const isLost = this.#cache.failure(key) !== undefined;
        for (const { y, x } of isLost ? [all] : tile ? this.#holes(plan, tile, box) : []) {
          const place = boxOf(frame, scaled(y, plan.factors[0]), scaled(x, plan.factors[1]));
          const part = clipped(place, this.#arrayBox(frame));
          fillBox(context, part, hatch(context, colour, "transparent"));
          context.strokeStyle = colour;
          context.strokeRect(part.x + 0.5, part.y + 0.5, part.width - 1, part.height - 1);
        }
      }
  }

  #paintGrid(context: CanvasRenderingContext2D, frame: Frame, colour: string): void {
    const { grid, rows, columns } = this.#scenery!;
    const { chunks, shards } = grid!;
    context.strokeStyle = colour;
    for (const [sizes, width] of [[chunks, 1], [shards, 2]] as const) {
      if (!sizes) continue;
      context.lineWidth = width;
      context.beginPath();
      const { x, y } = geometry.seen(frame);
      if (sizes[1] * frame.view.z > 5)
        for (let i = Math.ceil(x[0] / sizes[1]) * sizes[1]; i <= x[1]; i += sizes[1]) line(context, geometry.across(frame, i), geometry.down(frame, 0), geometry.across(frame, i), geometry.down(frame, rows));
      if (sizes[0] * frame.view.z * frame.aspect > 5)
        for (let i = Math.ceil(y[0] / sizes[0]) * sizes[0]; i <= y[1]; i += sizes[0]) line(context, geometry.across(frame, 0), geometry.down(frame, i), geometry.across(frame, columns), geometry.down(frame, i));
      context.stroke();
    }
  }

  #paintLabels(context: CanvasRenderingContext2D, frame: Frame): void {
    const plan = this.#labels;
    if (!plan) return;
    const { colours } = this.#scenery!.labels!;
    for (const box of this.#tiles(plan, frame)) {
      const { key } = this.#wanted(plan, box);
      const y: [number, number] = [box.row * plan.chunk[0], Math.min(plan.size[0], (box.row + 1) * plan.chunk[0])];
      const x: [number, number] = [box.column * plan.chunk[1], Math.min(plan.size[1], (box.column + 1) * plan.chunk[1])];
      let painted = this.#painted.get(`labels ${key}`);
      if (!painted) {
        const values = this.#cache.get(key) && this.#gather(plan, y, x);
        if (!values) continue;
        painted = paintLabels(values, [y[1] - y[0], x[1] - x[0]], colours);
        this.#painted.set(`labels ${key}`, painted);
      }
      context.globalAlpha = 0.55;
      drawRaster(context, painted.canvas, boxOf(frame, scaled(y, plan.factors[0]), scaled(x, plan.factors[1])), frame.flipped);
      context.globalAlpha = 1;
    }
  }

  #paintCoast(context: CanvasRenderingContext2D, frame: Frame): void {
    const { coast, axes } = this.#scenery!;
    if (!coast) return;
    const { x, y } = axes;
    if (this.#outline?.x !== x || this.#outline.y !== y || !this.#outline.lines) this.#outline = { x, y, lines: outline(coast.lines, x, y, coast.isTurned) };
    context.lineJoin = "round";
    context.beginPath();
    for (const line of this.#outline.lines ?? [])
      line.forEach(([column, row], i) => context[i ? "lineTo" : "moveTo"](geometry.across(frame, column), geometry.down(frame, row)));
    for (const [colour, width] of [["#fff9", 2.6], ["#000c", 1]] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke();
    }
  }

  #paintAxes(context: CanvasRenderingContext2D, frame: Frame, ink: string, soft: string): void {
    const { axes, rows, columns } = this.#scenery!;
    const { plot } = frame;
    const whole = clipped(this.#arrayBox(frame), plot);
    context.strokeStyle = soft;
    context.lineWidth = 1;
    context.strokeRect(Math.round(whole.x) - 0.5, Math.round(whole.y) - 0.5, Math.round(whole.width) + 1, Math.round(whole.height) + 1);
    context.fillStyle = ink;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    const { x, y } = geometry.seen(frame);
    const bottom = Math.round(whole.y + whole.height);
    let taken = -Infinity;
    for (const { index, text } of axes.x.ticks(x[0], x[1], Math.max(2, whole.width / 90))) {
      const px = geometry.across(frame, index);
      const half = context.measureText(text).width / 2;
      if (index < 0 || index > columns || px - half < taken || px < whole.x - 1 || px > whole.x + whole.width + 1) continue;
      context.fillRect(Math.round(px), bottom + 1, 1, 4);
      context.fillText(text, Math.max(half + 2, Math.min(px, this.canvas.clientWidth - half - 2)), bottom + 7);
      taken = px + half + 6;
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const { index, text } of axes.y.ticks(y[0], y[1], Math.max(2, whole.height / 50))) {
      const py = geometry.down(frame, index);
      if (index < 0 || index > rows || py < whole.y - 1 || py > whole.y + whole.height + 1) continue;
      context.fillRect(Math.round(whole.x) - 5, Math.round(py), 4, 1);
      // A time below its date: there is no room beside it.
      const [above, below] = text.length > 11 ? text.split("T") : [text];
      if (below !== undefined) context.fillText(`T${below}`, Math.round(whole.x) - 8, py + 6);
      context.fillText(above!.slice(0, 12), Math.round(whole.x) - 8, below === undefined ? py : py - 6);
    }
    context.fillStyle = soft;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.fillText(axes.x.name + bracketed(axes.x.unitText), whole.x + whole.width / 2, Math.min(bottom + 34, this.canvas.clientHeight - 4));
    context.save();
    context.translate(Math.max(12, Math.round(whole.x) - 76), whole.y + whole.height / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(axes.y.name + bracketed(axes.y.unitText), 0, 0);
    context.restore();
  }

  // --- pointer -------------------------------------------------------------------------------------------------------

  #onMove = (event: PointerEvent) => {
    const box = this.canvas.getBoundingClientRect();
    this.#pointer = [event.clientX - box.left, event.clientY - box.top];
    this.#point();
  };

  #onTheme = () => this.schedule();

  #onLeave = () => {
    this.#pointer = null;
    this.#events.pointed(null);
  };

  #onClick = (event: MouseEvent) => {
    const element = this.#elementAt([event.offsetX, event.offsetY]);
    if (element) this.#events.picked(element.x, element.y);
  };

  #elementAt([px, py]: [number, number]): { x: number; y: number } | null {
    const frame = this.frame();
    if (!frame) return null;
    const [x, y] = [Math.floor(geometry.columnAt(frame, px)), Math.floor(geometry.rowAt(frame, py))];
    const { plot } = frame;
    const isInPlot = px >= plot.x && px <= plot.x + plot.width && py >= plot.y && py <= plot.y + plot.height;
    return isInPlot && x >= 0 && y >= 0 && x < frame.columns && y < frame.rows ? { x, y } : null;
  }

  #point(): void {
    if (!this.#pointer) return;
    this.#events.pointed(this.at(this.#pointer));
  }

  /** The sample drawn at a place of the canvas: its own indices, and its value in each layer. */
  at(place: [number, number]): Pointed | null {
    const element = this.#elementAt(place);
    return element && this.sampleOf(element);
  }

  /** The sample that stands for an element. */
  sampleOf(element: { x: number; y: number }): Pointed {
    const plans = this.#backdrops[this.#backdrops.length - 1];
    const factors = plans?.[0]?.factors ?? [1, 1];
    const [y, x] = [Math.floor(element.y / factors[0]), Math.floor(element.x / factors[1])];
    const samples = (plans ?? []).map((plan) => this.#sample(plan, y, x));
    return {
      y: Math.floor(y * factors[0]),
      x: Math.floor(x * factors[1]),
      words: samples.map((sample) => sample?.words ?? null),
      numbers: samples.map((sample) => sample?.value ?? null),
      label: this.#labels && (this.#sample(this.#labels, Math.floor(element.y / this.#labels.factors[0]), Math.floor(element.x / this.#labels.factors[1]))?.words ?? null),
    };
  }

  #sample(plan: Plan, y: number, x: number): { words: string; value: number } | null {
    const box = { row: Math.floor(y / plan.chunk[0]), column: Math.floor(x / plan.chunk[1]) };
    const tile = this.#cache.get(this.#wanted(plan, box).key);
    if (!tile || y >= plan.size[0] || x >= plan.size[1]) return null;
    const isIn = (hole: Hole) => y >= hole.y[0] && y < hole.y[1] && x >= hole.x[0] && x < hole.x[1];
    if (this.#holes(plan, tile, box).some(isIn)) return { words: "broken", value: NaN };
    const { values, start, step } = this.#numbers(plan, tile);
    const i = start + (y % plan.chunk[0]) * step[0] + (x % plan.chunk[1]) * step[1];
    return { words: wordsOf(tile.raw, i, plan.layer.meaning), value: values[i]! };
  }

  /** The ranges of indices that are seen. */
  seen(): { y: [number, number]; x: [number, number] } | null {
    const frame = this.frame();
    return frame && geometry.seen(frame);
  }

  /** What is read for it, of the level that is drawn: its path, and start, stop and step along y and x. */
  selection(): { path: string; sizes: [number, number]; ranges: [Read, Read] } | null {
    const frame = this.frame();
    const layer = this.#scenery?.layers[0];
    const plan = frame && layer ? this.#plan(layer, frame, true) : null;
    if (!frame || !plan) return null;
    const { x, y } = geometry.seen(frame);
    const ranges = [y, x].map((range, k): Read => {
      const step = plan.strides[k]!;
      const [start, stop] = [Math.floor(range[0] / plan.factors[k]!), Math.min(plan.size[k]!, Math.ceil(range[1] / plan.factors[k]!))];
      return { start: start * step, stop: stop * step, step };
    }) as [Read, Read];
    return { path: plan.path, sizes: [plan.size[0] * plan.strides[0], plan.size[1] * plan.strides[1]], ranges };
  }
}

/** Whether the values at the ends of the colours are still to be found. */
const isOpen = ({ style }: Scenery) => (style.kind === "map" ? style.range : style.channels) === null;

/** What the keys of all tiles of one slice begin with. */
const prefixOf = (origin: string, at: number[], dims: number[]) => `${origin}@${at.map((index, k) => (dims.includes(k) ? "" : index)).join(",")}:`;

/** The same plan at other indices. */
function moved(plan: Plan, at: number[], dims: number[]): Plan {
  return { ...plan, layer: { ...plan.layer, at }, prefix: prefixOf(plan.prefix.slice(0, plan.prefix.lastIndexOf("@")), at, dims) };
}

const bracketed = (units: string) => (units ? ` [${units.trim()}]` : "");

const scaled = ([start, stop]: [number, number], factor: number): [number, number] => [start * factor, stop * factor];

function boxOf(frame: Frame, y: [number, number], x: [number, number]): Box {
  const ratio = window.devicePixelRatio || 1;
  // Whole device pixels: tiles meet without a seam.
  const round = (value: number) => Math.round(value * ratio) / ratio;
  const ys = [round(geometry.down(frame, y[0])), round(geometry.down(frame, y[1]))].sort((a, b) => a - b);
  const [left, right] = [round(geometry.across(frame, x[0])), round(geometry.across(frame, x[1]))];
  return { x: left, y: ys[0]!, width: right - left, height: ys[1]! - ys[0]! };
}

function clipped(box: Box, outer: Box): Box {
  const [x, y] = [Math.max(box.x, outer.x), Math.max(box.y, outer.y)];
  const right = Math.min(box.x + box.width, outer.x + outer.width);
  const bottom = Math.min(box.y + box.height, outer.y + outer.height);
  return { x, y, width: Math.max(0, right - x), height: Math.max(0, bottom - y) };
}

function fillBox(context: CanvasRenderingContext2D, { x, y, width, height }: Box, style: string | CanvasPattern): void {
  context.fillStyle = style;
  context.fillRect(x, y, width, height);
}

function drawRaster(context: CanvasRenderingContext2D, raster: HTMLCanvasElement, { x, y, width, height }: Box, flipped: boolean): void {
  if (!flipped) {
    context.drawImage(raster, x, y, width, height);
    return;
  }
  context.save();
  context.translate(x, y + height);
  context.scale(1, -1);
  context.drawImage(raster, 0, 0, width, height);
  context.restore();
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
}

function paintMark(context: CanvasRenderingContext2D, frame: Frame, { x, y }: { x: number; y: number }): void {
  const [px, py] = [geometry.across(frame, x + 0.5), geometry.down(frame, y + 0.5)];
  for (const [colour, width] of [["#000a", 3], ["#fff", 1.5]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.arc(px, py, 5, 0, 2 * Math.PI);
    context.moveTo(px - 11, py);
    context.lineTo(px - 3, py);
    context.moveTo(px + 3, py);
    context.lineTo(px + 11, py);
    context.stroke();
  }
}

const hatches = new Map<string, HTMLCanvasElement>();

/** Diagonal lines, for what is not there. */
export function hatch(context: CanvasRenderingContext2D, ink: string, paper: string): CanvasPattern {
  const key = `${ink} ${paper}`;
  let image = hatches.get(key);
  if (!image) {
    image = Object.assign(document.createElement("canvas"), { width: 8, height: 8 });
    const pen = image.getContext("2d")!;
    pen.fillStyle = paper;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = ink;
    pen.lineWidth = 1.4;
    for (const shift of [-8, 0, 8]) {
      pen.moveTo(shift - 1, 9);
      pen.lineTo(shift + 9, -1);
    }
    pen.stroke();
    hatches.set(key, image);
  }
  return context.createPattern(image, "repeat")!;
}
