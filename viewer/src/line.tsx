// An array along one dimension, as a line.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { labels as askLabels, line as askLine, type Course as AskedCourse, type Labels } from "./api.ts";
import { Coordinates, timeTexts } from "./coordinates.ts";
import { dataType, numberWords, timeWords, type DataType } from "./dtypes.ts";
import type { Look } from "./look.ts";
import { Trouble, useAnswer, Waiting } from "./parts.tsx";
import { PythonLine, type Change, type Shown } from "./picture.tsx";
import { decoding, pythonLine } from "./python.ts";
import type { Resolved } from "./resolve.ts";
import { Sliders } from "./sliders.tsx";

const MOST = 4096;

interface Props {
  shown: Shown;
  beside: Shown | null;
  look: Look;
  resolved: Resolved;
  change: Change;
}

interface Course extends AskedCourse {
  name: string;
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
      const lines = await Promise.all(
        both.map(async ({ entry, info }): Promise<Course> => {
          const asked = await askLine(entry.number, info.path, others, k, range, stride, look.part, look.fillIsMissing);
          return { ...asked, name: info.path.split("/").pop() || entry.name };
        }),
      );
      return { axis, lines };
    },
    [shown.info, beside?.info, k, String(others), String(range), look.part, look.fillIsMissing],
  );
  const selection = resolved.at.map((index, i) => (i === k ? { start: range[0], stop: range[1], step: 1 } : index));
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

/** Two places for each bin of more than one element, the second in the middle of it. */
function doubled(places: number[], end: number): number[] {
  return places.flatMap((place, i) => [place, (place + (places[i + 1] ?? end)) / 2]);
}

/** The smallest and largest of each bin, the one after the other and in turns, so that the line goes through both. */
const inTurns = ({ low, high }: AskedCourse) => low.flatMap((value, i) => (i % 2 ? [high[i]!, value] : [value, high[i]!]));

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
    const words = (value: number) => (isTime ? timeWords(value, type) : numberWords(value, type.kind === "float" ? type.bits : 64) + (units ? ` ${units}` : ""));
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
    const isBinned = lines[0]!.step > 1;
    const last = axis.values.length - 1;
    const end = last > 0 ? 2 * axis.values[last]! - axis.values[last - 1]! : (axis.values[0] ?? 0) + 1;
    const along = order(isBinned ? doubled(axis.values, end) : [...axis.values]);
    const courses = lines.map((line) => order(isBinned ? inTurns(line) : [...line.low]));
    const binAt = (at: number) => Math.floor((isFalling ? along.length - 1 - at : at) / (isBinned ? 2 : 1));
    // What the cursor points to: a value, or the smallest and largest of a bin.
    const ends = (line: Course, at: number) => {
      const i = binAt(at);
      const [low, high] = [line.low[i] ?? null, line.high[i] ?? null];
      return low === null || high === null ? "–" : low === high ? words(low) : `${words(low)} to ${words(high)}`;
    };
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
          { label: name, ...(axis.isTime ? { value: (_: uPlot, place: number | null) => (place === null ? "–" : iso(place)) } : labels ? { value: (_: uPlot, __: number | null, ___: number, at: number | null) => (at === null ? "–" : (labels[binAt(at)] ?? "")) } : {}) },
          ...lines.map((line, i) => ({
            label: line.name,
            stroke: colour(i ? "--second" : "--accent"),
            width: 1.5,
            points: { show: line.low.length < 60 && !isBinned },
            value: (_: uPlot, value: number | null, __: number, at: number | null) => (at === null || value === null ? "–" : ends(line, at)),
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
      [along, ...courses],
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
  const { step, share, error } = lines[0]!;
  const part = share < 1 ? `, of 1/${Math.round(1 / share)} of them` : "";
  const note = error ?? (step > 1 ? `Smallest and largest of each ${step.toLocaleString()} elements${part}.` : "");
  return (
    <div class="plotframe">
      <div class="plot" ref={ref} role="img" aria-label={`Line of ${lines.map((line) => line.name).join(" and ")} along ${name}`} />
      {isWhole ? <p class="soft hint">Drag over a part to zoom in.</p> : <button class="hint" onClick={() => onRange(null)}>Show all of it</button>}
      {note && <p class="soft binned">{note}</p>}
    </div>
  );
}
