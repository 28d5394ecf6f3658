// An array along one dimension, as a line.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { labels as askLabels, type Labels } from "./api.ts";
import { Coordinates, timeTexts } from "./coordinates.ts";
import { dataType, drawable, numberWords, timeWords, type DataType, type Meaning } from "./dtypes.ts";
import type { Look } from "./look.ts";
import { Trouble, useAnswer, Waiting } from "./parts.tsx";
import { PythonLine, type Change, type Shown } from "./picture.tsx";
import { decoding, pythonLine } from "./python.ts";
import { meaningOf, type Resolved } from "./resolve.ts";
import { Sliders } from "./sliders.tsx";
import { TileArray } from "./tiles.ts";

const MOST = 4096;

interface Props {
  shown: Shown;
  beside: Shown | null;
  look: Look;
  resolved: Resolved;
  change: Change;
}

interface Course {
  name: string;
  values: Float32Array | Float64Array;
}

export function Line({ shown, beside, look, resolved, change }: Props) {
  const array = shown.info.array!;
  const k = look.line !== null && look.line < array.shape.length ? look.line : defaultLine(resolved, array.shape);
  const [range, setRange] = useState<[number, number]>([0, array.shape[k]!]);
  const [turn, setTurn] = useState(0);
  useEffect(() => setRange([0, array.shape[k]!]), [k, shown.info]);
  const coordinates = useMemo(() => array.dimensions.map((_, i) => new Coordinates(shown.entry.number, shown.info.path, array, i, () => setTurn((old) => old + 1))), [shown.info]);
  const stride = 2 ** Math.max(0, Math.ceil(Math.log2((range[1] - range[0]) / MOST)));
  const others = resolved.at.map((index, i) => (i === k ? 0 : index));
  const both = beside?.info.array && beside.info.array.shape.length === array.shape.length ? [shown, beside] : [shown];
  const { answer, error, again } = useAnswer(
    async () => {
      const axis = await abscissa(shown, k, range, stride);
      const lines = await Promise.all(both.map((one) => course(one, k, others, range, stride, meaningOf(one.info.array, look))));
      return { axis, lines };
    },
    [shown.info, beside?.info, k, String(others), String(range), look.part, look.fillIsMissing],
  );
  const selection = resolved.at.map((index, i) => (i === k ? { start: range[0], stop: range[1], step: stride } : index));
  const free = { ...resolved, dims: [k, k] as [number, number], blend: "one" as const };
  return (
    <div class="lineview">
      {array.shape.length > 1 && (
        <label class="select">
          <span>along</span>
          <select value={String(k)} onChange={(event) => change({ line: Number(event.currentTarget.value) })}>
            {coordinates.map((one, i) => (
              <option key={i} value={String(i)}>
                {one.name} ({array.shape[i]})
              </option>
            ))}
          </select>
        </label>
      )}
      {error && <Trouble message={error} again={again} />}
      {!answer && !error && <Waiting what="the line" />}
      {answer && <Plot {...answer} name={coordinates[k]!.name + coordinates[k]!.unitText} units={array.units} type={dataType(array.dtype)} turn={turn} onRange={(part) => setRange(part ? zoomed(range, part) : [0, array.shape[k]!])} isWhole={range[1] - range[0] === array.shape[k]} />}
      <Sliders array={array} resolved={free} coordinates={coordinates} onMove={(i, index) => change({ at: resolved.at.map((old, j) => (i === j ? index : old)) })} />
      <PythonLine text={pythonLine(shown.entry.location, shown.info.path, selection, array.shape, decoding(array, look))} />
    </div>
  );
}

/** The part, 0 to 1, of a range of indices. */
function zoomed([start, stop]: [number, number], [from, to]: [number, number]): [number, number] {
  const first = Math.floor(start + from * (stop - start));
  return [first, Math.max(first + 2, Math.ceil(start + to * (stop - start)))];
}

function defaultLine({ dims }: Resolved, shape: number[]): number {
  if (shape.length === 1) return 0;
  const free = shape.map((_, k) => k).filter((k) => !dims.includes(k) && shape[k]! > 1);
  return free[0] ?? dims[1];
}

interface Axis {
  values: number[];
  /** What is written at each place, if its number says nothing. */
  labels: string[] | null;
  /** Seconds since 1970. */
  isTime: boolean;
}

async function abscissa({ entry, info }: Shown, k: number, [start, stop]: [number, number], stride: number): Promise<Axis> {
  const indices = Array.from({ length: Math.ceil((stop - start) / stride) }, (_, i) => start + i * stride);
  const { coordinate, step, origin } = info.array!.dimensions[k]!;
  if (coordinate === null) return { values: step === null ? indices : indices.map((index) => origin + index * step), labels: null, isTime: false };
  const { labels, numbers }: Labels = await askLabels(entry.number, info.path, k, start, stop, stride).catch(() => ({ labels: indices, units: null }));
  if (labels.every((label) => typeof label === "number")) return { values: labels as number[], labels: null, isTime: false };
  const texts = labels.map((label) => String(label ?? ""));
  // Days that our calendar does not have, such as 30 February, are told apart by what is stored.
  if (numbers?.every((number) => number !== null)) return { values: numbers as number[], labels: texts, isTime: false };
  const times = labels.map((label) => Date.parse(/[zZ]$|[+-]\d\d:?\d\d$/.test(String(label)) ? String(label) : `${label}${String(label).includes("T") ? "Z" : "T00:00:00Z"}`) / 1000);
  if (times.every(Number.isFinite)) return { values: times, labels: null, isTime: true };
  return { values: indices, labels: texts, isTime: false };
}

async function course({ entry, info }: Shown, k: number, at: number[], [start, stop]: [number, number], stride: number, meaning: Meaning): Promise<Course> {
  const strides = at.map((_, i) => (i === k ? stride : 1));
  const tiles = await TileArray.open({ d: entry.number, path: info.path, dtype: info.array!.dtype, strides, dims: [k] });
  const chunk = tiles.chunks[k]!;
  const [first, last] = [Math.floor(start / stride), Math.min(tiles.shape[k]!, Math.ceil(stop / stride))];
  const numbers = Array.from({ length: Math.ceil(last / chunk) - Math.floor(first / chunk) }, (_, i) => i + Math.floor(first / chunk));
  const read = await Promise.all(numbers.map((number) => tiles.read(at.map((index, i) => (i === k ? number : Math.floor(index / tiles.chunks[i]!))), new AbortController().signal)));
  const values = new Float64Array(last - first);
  const pairs = meaning.type.kind === "complex" ? 2 : 1;
  read.forEach((tile, i) => {
    const drawn = drawable(tile.raw, meaning);
    const base = at.reduce((sum, index, j) => (j === k ? sum : sum + ((index % tiles.chunks[j]!) * tile.stride[j]!) / pairs), 0);
    const from = numbers[i]! * chunk;
    for (let index = Math.max(first, from); index < Math.min(last, from + chunk); index++) values[index - first] = drawn[base + ((index - from) * tile.stride[k]!) / pairs]!;
  });
  return { name: info.path.split("/").pop() || entry.name, values };
}

/** The range of values with some room above and below, also if all are the same. */
function padded(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const margin = (high - low) * 0.06 || Math.abs(low) * 0.01 || 1;
  return [low - margin, high + margin];
}

interface PlotProps {
  axis: Axis;
  lines: Course[];
  name: string;
  units: string | null;
  type: DataType;
  turn: number;
  isWhole: boolean;
  onRange: (part: [number, number] | null) => void;
}

/** Steps between ticks of times, which are whole numbers. */
const WHOLE = Array.from({ length: 19 }, (_, k) => [1, 2, 5].map((digit) => digit * 10 ** k)).flat();
const GLYPH = 7;

/** The length in pixels of the longest of some labels. */
const lengthOf = (labels: readonly string[] | null) => GLYPH * Math.max(0, ...(labels ?? []).map((label) => label.length));

/** Seconds since 1970 as ISO 8601; midnight is a date. */
const iso = (seconds: number) => (Math.abs(seconds) > 8.64e12 ? String(seconds) : new Date(seconds * 1000).toISOString().replace(/(T00:00:00)?\.000Z$|Z$/, "").replace(/(T\d\d:\d\d):00$/, "$1"));

/** Ticks of times: dates; or times, below the date where it is another one. */
function isoTicks(splits: readonly number[]): string[] {
  const texts = timeTexts(splits.map(iso));
  return texts.map((text, i) => {
    const [date, time] = text.split("T");
    if (time === undefined) return text;
    return date === texts[i - 1]?.split("T")[0] ? time : `${time}\n${date}`;
  });
}

function Plot({ axis, lines, name, units: named, type, turn, isWhole, onRange }: PlotProps) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = ref.current!;
    const style = getComputedStyle(box);
    const colour = (property: string) => style.getPropertyValue(property).trim();
    // uPlot wants rising places; those of falling coordinates are drawn backwards.
    const isFalling = axis.values.length > 1 && axis.values[0]! > axis.values[axis.values.length - 1]!;
    const order = <T,>(values: T[]) => (isFalling ? values.reverse() : values);
    const strokes = { stroke: colour("--line"), width: 1 };
    const axisStyle = { stroke: colour("--ink"), grid: strokes, ticks: strokes, labelFont: "12px system-ui, sans-serif" };
    const isTime = type.kind === "datetime" || type.kind === "timedelta";
    const units = isTime ? null : named;
    const words = (value: number) => (isTime ? timeWords(value, type) : numberWords(value, 64) + (units ? ` ${units}` : ""));
    const values: uPlot.Axis = isTime ? { incrs: WHOLE, values: (_, splits) => splits.map((value) => timeWords(value, type)) } : {};
    const { labels } = axis;
    // Ticks at samples alone, whose labels are known.
    const labelled: uPlot.Axis = {
      splits: (_, __, low, high) => {
        const there = axis.values.filter((place) => place >= low && place <= high);
        const step = Math.max(1, Math.ceil((there.length * (lengthOf(labels) + 20)) / Math.max(1, box.clientWidth)));
        return there.filter((_, i) => i % step === 0).sort((a, b) => a - b);
      },
      values: (_, splits) => timeTexts(splits.map((place) => labels?.[axis.values.indexOf(place)] ?? "")),
    };
    const places: uPlot.Axis = labels ? labelled : axis.isTime ? { space: 10 * GLYPH + 20, values: (_, splits) => isoTicks(splits) } : { space: (_: uPlot, __: number, low: number, high: number) => Math.max(50, lengthOf([low, high].map((place) => Math.round(place).toLocaleString())) + 20) };
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight - 40,
        scales: { x: { time: axis.isTime }, y: { range: (_, low, high) => padded(low, high) } },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
        axes: [
          { ...axisStyle, ...places, label: name },
          { ...axisStyle, ...values, size: (_, labels) => Math.max(70, lengthOf(labels) + 22), ...(units ? { label: units } : {}) },
        ],
        series: [
          { label: name, ...(axis.isTime ? { value: (_: uPlot, place: number | null) => (place === null ? "–" : iso(place)) } : labels ? { value: (_: uPlot, place: number | null) => (place === null ? "–" : (labels[axis.values.indexOf(place)] ?? "")) } : {}) },
          ...lines.map((line, i) => ({
            label: line.name,
            stroke: colour(i ? "--second" : "--accent"),
            width: 1.5,
            points: { show: line.values.length < 60 },
            value: (_: uPlot, value: number | null) => (value === null ? "–" : words(value)),
          })),
        ],
        cursor: { drag: { setScale: false } },
        hooks: {
          setSelect: [
            ({ select, bbox }) => {
              const part = [select.left, select.left + select.width].map((px) => (px * window.devicePixelRatio) / bbox.width) as [number, number];
              if (select.width > 4) onRange(isFalling ? [1 - part[1], 1 - part[0]] : part);
            },
          ],
        },
      },
      [order([...axis.values]), ...lines.map((line) => order(Array.from(line.values, (value) => (Number.isFinite(value) ? value : null))))],
      box,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: box.clientHeight - 40 }));
    observer.observe(box);
    performance.mark("picture");
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [axis, lines, turn, type.name, named]);
  return (
    <div class="plotframe">
      <div class="plot" ref={ref} role="img" aria-label={`Line of ${lines.map((line) => line.name).join(" and ")} along ${name}`} />
      {isWhole ? <p class="soft hint">Drag over a part to zoom in.</p> : <button class="hint" onClick={() => onRange(null)}>Show all of it</button>}
    </div>
  );
}
