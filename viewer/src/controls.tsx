// The controls beside a picture: dimensions, colours, limits, histogram, missing values.
import { useCallback } from "preact/hooks";
import type { ArrayInfo } from "./api.ts";
import { isCurved, isGeographic } from "./coast.ts";
import { css, FAMILIES, familyOf, gradient, table } from "./colours.ts";
import type { Coordinates } from "./coordinates.ts";
import { numberWords, timeWords } from "./dtypes.ts";
import { logLimits } from "./painting.ts";
import type { Blend, Limits, Look, Part } from "./look.ts";
import { Canvas, Check, Choice, NumberField, Section } from "./parts.tsx";
import type { Change } from "./picture.tsx";
import { channelName, type Resolved } from "./resolve.ts";
import { histogram, percentile } from "./statistics.ts";

interface Props {
  array: ArrayInfo;
  look: Look;
  resolved: Resolved;
  flipped: boolean;
  /** What is seen, sorted, per layer. */
  samples: Float64Array[] | null;
  coordinates: Coordinates[];
  change: Change;
  changeMeaning: Change;
  rescale: (look?: Look) => void;
  actions: Record<string, () => void>;
  comparing: boolean;
}

export function Controls(props: Props) {
  const { resolved, look, change, array } = props;
  return (
    <aside class="controls" aria-label="Settings of the picture">
      <Axes {...props} />
      {resolved.meaning.type.kind === "complex" && <Parts {...props} />}
      {resolved.channelDim !== null && <Blending {...props} />}
      {resolved.blend === "one" ? <Colours {...props} /> : <Channels {...props} />}
      <Section title="Missing values">
        <div class="line">
          <Choice
            label="How missing values are shown"
            value={look.missing === "hatch" ? "hatch" : "colour"}
            choices={[["hatch", "hatched"], ["colour", "coloured"]]}
            onChange={(choice) => change({ missing: choice === "hatch" ? "hatch" : "#ff00c8" })}
          />
          {look.missing === "hatch" ? (
            <span class="swatch hatched" aria-hidden="true" />
          ) : (
            <input type="color" aria-label="Colour of missing values" value={look.missing} onInput={(event) => change({ missing: event.currentTarget.value })} />
          )}
        </div>
        {typeof array.fill === "number" && (
          <Check label={`the fill value ${array.fill} counts as missing`} checked={look.fillIsMissing} onChange={(fillIsMissing) => props.changeMeaning({ fillIsMissing })} />
        )}
      </Section>
      <div class="buttons">
        <button onClick={props.actions["save"]} title="Save as PNG (s)">Save picture</button>
        <button onClick={props.actions["fit"]} title="Show all of it (0)">Fit</button>
      </div>
    </aside>
  );
}

function Axes({ array, resolved, coordinates, look, flipped, change, changeMeaning, actions }: Props) {
  const choose = (place: 0 | 1, k: number) => {
    const dims: [number, number] = [...resolved.dims];
    if (dims[1 - place] === k) dims[1 - place] = dims[place]!;
    dims[place] = k;
    changeMeaning({ dims, view: null, flip: null, stretch: null });
  };
  const pick = (place: 0 | 1, label: string) => (
    <label class="select">
      <span>{label}</span>
      <select value={String(resolved.dims[place])} onChange={(event) => choose(place, Number(event.currentTarget.value))}>
        {array.shape.map((size, k) => (
          <option key={k} value={String(k)}>
            {coordinates[k]!.name} ({size})
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Section title="Axes">
      {pick(0, "down")}
      {pick(1, "across")}
      <div class="line wrap">
        <button onClick={actions["swap"]} title="Swap the axes (x)">Swap</button>
        <Check label="flip" title="Row 0 at the bottom (f)" checked={flipped} onChange={(flip) => change({ flip })} />
        <Check label="stretch" title="Fill the window, regardless of the proportions" checked={look.stretch ?? false} onChange={(stretch) => change({ stretch, view: null })} />
        <Check label="chunks" title="Show where chunks and shards end (g)" checked={look.grid} onChange={(grid) => change({ grid })} />
        {array.labels.map(({ name }) => (
          <Check key={name} label={name} title={`Draw the labels ${name} over the picture`} checked={look.labels === name} onChange={(isOn) => change({ labels: isOn ? name : null })} />
        ))}
        {isGeographic(array, resolved.dims) && <Check label="coast" title="Coastlines, of Natural Earth at 1:110 million (o)" checked={look.coast} onChange={(coast) => change({ coast })} />}
        {!isGeographic(array, resolved.dims) && isCurved(array, resolved.dims) && <span class="soft small">no coast: the grid is curved</span>}
      </div>
    </Section>
  );
}

const PARTS: [Part, string][] = [["magnitude", "|z|"], ["phase", "∠"], ["real", "Re"], ["imaginary", "Im"]];

function Parts({ look, changeMeaning }: Props) {
  const choose = (part: Part) => {
    const isCyclic = familyOf(look.colours) === "cyclic";
    const colours = part === "phase" ? (isCyclic ? look.colours : "rainbow") : isCyclic ? "viridis" : look.colours;
    changeMeaning({ part, colours, log: false });
  };
  return (
    <Section title="Complex numbers">
      <Choice label="Part of complex numbers" value={look.part} choices={PARTS} onChange={choose} />
    </Section>
  );
}

function Blending({ array, resolved, changeMeaning, coordinates }: Props) {
  const size = array.shape[resolved.channelDim!]!;
  const choices: [Blend, string][] = [["one", "one at a time"], ["channels", "blended"]];
  if (size === 3 || size === 4) choices.push(["rgb", "RGB"]);
  return (
    <Section title={`Along ${coordinates[resolved.channelDim!]!.name}`}>
      <Choice label="Channels" value={resolved.blend} choices={choices} onChange={(blend) => changeMeaning({ blend, channels: null })} />
    </Section>
  );
}

function Channels({ array, resolved, look, change, samples, rescale, coordinates }: Props) {
  const set = (k: number, patch: object) => change({ channels: resolved.channels.map((channel, i) => (i === k ? { ...channel, ...patch } : channel)) });
  let layer = 0;
  return (
    <Section title="Channels">
      {resolved.channels.map((channel, k) => {
        const sorted = channel.on ? samples?.[layer++] : undefined;
        const label = channelName(array, resolved, k, coordinates[resolved.channelDim!]?.words(k));
        return (
          <div class={`channel ${channel.on ? "" : "off"}`} key={k}>
            <div class="line">
              <Check label={label} checked={channel.on} onChange={(on) => set(k, { on })} />
              <input type="color" aria-label={`Colour of ${label}`} value={`#${channel.color}`} onInput={(event) => set(k, { color: event.currentTarget.value.slice(1) })} />
            </div>
            {channel.on && channel.lo !== null && channel.hi !== null && sorted && sorted.length > 0 && (
              <Histogram
                sorted={sorted}
                range={[channel.lo, channel.hi]}
                log={false}
                words={(value) => numberWords(Number(value.toPrecision(4)))}
                colourAt={() => `#${channel.color}`}
                label={label}
                onRange={([lo, hi]) => set(k, { lo, hi })}
                slim
              />
            )}
          </div>
        );
      })}
      <div class="line">
        <button onClick={() => rescale({ ...look, limits: "percentiles" })} title="Limits from the current view (r)">Limits from the current view</button>
      </div>
    </Section>
  );
}

const LIMITS: [Limits, string][] = [["percentiles", "percentiles"], ["range", "min–max"], ["manual", "by hand"]];

function Colours(props: Props) {
  const { array, look, resolved, samples, change, rescale } = props;
  const { type } = resolved.meaning;
  const sorted = samples?.[0] ?? null;
  const words = (value: number) => (type.kind === "datetime" || type.kind === "timedelta" ? timeWords(value, type) : numberWords(Number(value.toPrecision(5)), 64));
  const choose = (limits: Limits) => {
    change({ limits });
    if (limits !== "manual") rescale({ ...look, limits });
  };
  const setPercentile = (place: 0 | 1, value: number) => {
    const percentiles: [number, number] = [...look.percentiles];
    percentiles[place] = Math.max(0, Math.min(100, value));
    change({ percentiles });
    rescale({ ...look, percentiles });
  };
  const colours = table(look.colours, look.reversed);
  return (
    <Section title={array.units ? `Colours [${array.units}]` : "Colours"}>
      <ColourMaps {...props} />
      {look.range && sorted && sorted.length > 0 && (
        <Histogram
          sorted={sorted}
          range={look.range}
          log={look.log}
          words={words}
          colourAt={(part) => css(colours[Math.max(0, Math.min(255, Math.floor(part * 256)))]!)}
          label="colours"
          discrete={resolved.meaning.scale === 1 && ["bool", "int", "uint"].includes(type.kind)}
          onRange={(range) => change({ range, limits: "manual" })}
        />
      )}
      {sorted?.length === 0 && <p class="soft">All values in view are missing.</p>}
      <Choice label="Limits of the colours" value={look.limits} choices={LIMITS} onChange={choose} />
      <div class="line">
        {look.limits === "percentiles" ? (
          <>
            <NumberField label="%" value={look.percentiles[0]} onChange={(value) => setPercentile(0, value)} />
            <NumberField label="%" value={look.percentiles[1]} onChange={(value) => setPercentile(1, value)} />
          </>
        ) : (
          <>
            <NumberField label="from" value={look.range?.[0] ?? null} onChange={(lo) => look.range && change({ range: [lo, look.range[1]], limits: "manual" })} />
            <NumberField label="to" value={look.range?.[1] ?? null} onChange={(hi) => look.range && change({ range: [look.range[0], hi], limits: "manual" })} />
          </>
        )}
        <button onClick={() => rescale()} disabled={look.limits === "manual"} title="Limits from the current view (r)" aria-label="Limits from the current view">
          ⟳
        </button>
      </div>
      <div class="line">
        <Check label="log" title="Logarithmic colours (l)" checked={look.log} onChange={(log) => change({ log })} />
        <Check label="reversed" checked={look.reversed} onChange={(reversed) => change({ reversed })} />
      </div>
    </Section>
  );
}

function ColourMaps({ look, change }: Props) {
  return (
    <details class="maps">
      <summary aria-label={`Colour map: ${look.colours}`}>
        <span class="ramp" style={{ background: gradient(look.colours, look.reversed) }} />
        {look.colours}
      </summary>
      <div class="list">
        {FAMILIES.map(({ family, names }) => (
          <fieldset key={family}>
            <legend>{family}</legend>
            {names.map((name) => (
              <label key={name}>
                <input type="radio" name="colours" checked={name === look.colours} onChange={() => change({ colours: name })} />
                <span class="ramp" style={{ background: gradient(name, look.reversed) }} />
                {name}
              </label>
            ))}
          </fieldset>
        ))}
      </div>
    </details>
  );
}

interface HistogramProps {
  sorted: Float64Array;
  range: [number, number];
  log: boolean;
  words: (value: number) => string;
  /** The colour of a place between the limits, 0 to 1. */
  colourAt: (part: number) => string;
  label: string;
  onRange: (range: [number, number]) => void;
  slim?: boolean;
  /** Whole numbers: one bar for each, if they are few. */
  discrete?: boolean;
}

const BINS = 96;

/** How often values are seen, in their colours, with a handle for each limit. */
function Histogram({ sorted, range, log, words, colourAt, label, onRange, slim, discrete }: HistogramProps) {
  const to = (value: number) => (log ? Math.log10(Math.max(value, Number.MIN_VALUE)) : value);
  const from = (value: number) => (log ? 10 ** value : value);
  const limits = log ? logLimits(range) : range;
  const positive = log ? sorted.subarray(sorted.findIndex((value) => value > 0)) : sorted;
  const [low, high] = [percentile(positive, 0.2), percentile(positive, 99.8)].map(to) as [number, number];
  const [start, stop] = [Math.min(low, limits[0]), Math.max(high, limits[1])];
  const margin = (stop - start) * 0.04 || 1;
  const isCounted = discrete && !log && stop - start < 48;
  const domain: [number, number] = isCounted ? [start - 0.5, stop + 0.5] : [start - margin, stop + margin];
  const bins = isCounted ? Math.max(1, Math.round(domain[1] - domain[0])) : BINS;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const counts = histogram(log ? positive.map(to) : sorted, domain, bins);
      const most = Math.sqrt(Math.max(1, ...counts));
      counts.forEach((count, i) => {
        const middle = domain[0] + ((i + 0.5) / bins) * (domain[1] - domain[0]);
        context.fillStyle = colourAt((middle - limits[0]) / (limits[1] - limits[0]));
        const bar = (Math.sqrt(count) / most) * (height - 1);
        context.fillRect((i * width) / bins, height - bar, width / bins + 0.3, bar);
      });
    },
    [sorted, String(domain), String(limits), log, colourAt(0), colourAt(0.5), colourAt(1)],
  );
  const place = (value: number) => `${(100 * (value - domain[0])) / (domain[1] - domain[0])}%`;
  const move = (k: 0 | 1, value: number) => {
    const next: [number, number] = [from(limits[0]), from(limits[1])];
    next[k] = from(value);
    if (next[0] < next[1]) onRange(next);
  };
  const drag = (k: 0 | 1) => (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = handle.parentElement!.getBoundingClientRect();
    move(k, domain[0] + ((event.clientX - box.left) / box.width) * (domain[1] - domain[0]));
  };
  const key = (k: 0 | 1) => (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move(k, limits[k] + step * (domain[1] - domain[0]));
  };
  return (
    <div class={`histogram ${slim ? "slim" : ""}`}>
      <Canvas class="bars" label={`Histogram of the values in view, ${label}`} draw={draw} />
      {([0, 1] as const).map((k) => (
        <span
          key={k}
          class="handle"
          role="slider"
          tabIndex={0}
          aria-label={`${k ? "Upper" : "Lower"} limit of ${label}`}
          aria-valuenow={range[k]}
          aria-valuetext={words(range[k])}
          style={{ left: place(limits[k]) }}
          onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
          onPointerMove={drag(k)}
          onKeyDown={key(k)}
        />
      ))}
      <div class="ends">
        <span>{words(range[0])}</span>
        <span>{words(range[1])}</span>
      </div>
    </div>
  );
}
