// A map of chunks or shards: which are stored, how large they are, which are broken.
import { useCallback, useMemo, useState } from "preact/hooks";
import { check, chunks as askChunks, type Chunks, type Finding } from "./api.ts";
import { css, gradient, table } from "./colours.ts";
import type { Look } from "./look.ts";
import { bytes, Canvas, Section, Trouble, useAnswer, Waiting } from "./parts.tsx";
import type { Change, Shown } from "./picture.tsx";
import type { Resolved } from "./resolve.ts";
import { hatch } from "./scene.ts";

/** Cells up to which a map is painted one by one; in larger maps, only stored chunks are. */
const MOST_CELLS = 250_000;

interface Props {
  shown: Shown;
  look: Look;
  resolved: Resolved;
  change: Change;
}

/** Chunks of one shape: what a map can show. */
type Regular = Chunks & { chunk_shape: number[] };

const hasShape = (map: Chunks): map is Regular => map.chunk_shape !== null;

type Findings = { findings: Finding[]; complete: boolean };

export function ChunkMap({ shown, look, resolved, change }: Props) {
  const { entry, info } = shown;
  const { answer, error, again } = useAnswer(() => askChunks(entry.number, info.path), [info]);
  const [checked, setChecked] = useState<Findings | "checking" | string | null>(null);
  const runCheck = () => {
    setChecked("checking");
    check(entry.number, info.path).then(setChecked, (failure: Error) => setChecked(failure.message));
  };
  if (error) return <Trouble message={error} again={again} />;
  if (!answer) return <Waiting what="the list of chunks" />;
  if (!hasShape(answer)) return <Trouble message="The chunks of this array differ in shape: there is no map of them." />;
  const findings = checked !== null && typeof checked === "object" ? checked : null;
  return (
    <div class="chunkmap">
      <Grid map={answer} shown={shown} look={look} resolved={resolved} change={change} findings={findings?.findings ?? []} />
      <aside class="controls" aria-label="Chunks in numbers">
        <Summary map={answer} />
        <Section title="Check">
          <p class="soft">Reads every {answer.shards ? "shard" : "chunk"} and marks those that are damaged.</p>
          <button id="check" onClick={runCheck} disabled={checked === "checking"}>
            {checked === "checking" ? "Checking …" : "Check all of them"}
          </button>
          {typeof checked === "string" && checked !== "checking" && <p class="trouble small">{checked}</p>}
          {findings && <Found findings={findings} />}
        </Section>
      </aside>
    </div>
  );
}

function Found({ findings: { findings, complete } }: { findings: Findings }) {
  return (
    <div role="status">
      <p>
        {findings.length === 0 ? "No damage found." : `${findings.length} found.`}
        {!complete && " Some of them could not be checked."}
      </p>
      <ul class="findings">
        {findings.map((finding, k) => (
          <li key={k} class={finding.severity}>
            <b>{finding.coords ? `[${finding.coords.join(", ")}] ` : ""}{finding.code}</b> {finding.message}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Summary({ map }: { map: Regular }) {
  const sizes = Object.values(map.sizes).map((size) => size ?? 0);
  const total = map.grid.reduce((product, count) => product * count, 1);
  const stored = sizes.reduce((sum, size) => sum + size, 0);
  const largest = sizes.reduce((most, size) => Math.max(most, size), 0);
  const noun = map.shards ? "shards" : "chunks";
  const ratio = stored > 0 && map.size_full !== null ? (sizes.length * map.size_full) / stored : null;
  const rows: [string, string][] = [
    [noun, `${total} (${map.grid.join(" × ")})`],
    ["shape", map.chunk_shape.join(" × ")],
    ["stored", `${sizes.length}`],
    ["missing", `${total - sizes.length}`],
    ["bytes stored", bytes(stored)],
    ["mean, largest", sizes.length ? `${bytes(stored / sizes.length)}, ${bytes(largest)}` : "–"],
    ["decoded", map.size_full === null ? "–" : `${bytes(map.size_full)} each`],
    ["ratio", ratio === null ? "–" : `${ratio.toPrecision(3)} : 1`],
  ];
  return (
    <Section title={map.shards ? "Shards" : "Chunks"}>
      <table class="facts">
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {map.note && <p class="soft">{map.note}</p>}
      {map.truncated && <p class="trouble small">The list is incomplete: there are more.</p>}
      <div class="legend">
        <span class="ramp" style={{ background: gradient("viridis", false) }} /> 0 – {bytes(largest)}
        <span class="swatch hatched" /> missing
        <span class="swatch broken" /> damaged
      </div>
    </Section>
  );
}

interface Cell {
  coords: number[];
  /** Undefined: not stored; null: stored, its size unknown. */
  size: number | null | undefined;
  broken: Finding | undefined;
}

function Grid({ map, shown, look, resolved, change, findings }: Props & { map: Regular; findings: Finding[] }) {
  const [pointed, setPointed] = useState<Cell | null>(null);
  const rank = map.grid.length;
  const dims = rank >= 2 ? resolved.dims : [0, 0];
  const slice = useMemo(() => resolved.at.map((index, k) => Math.floor(index / map.chunk_shape[k]!)), [look, map]);
  const broken = useMemo(() => new Map(findings.flatMap((finding) => (finding.coords ? [[finding.coords.join(","), finding]] : []))), [findings]);
  const layout = useMemo(() => layoutOf(map.grid, dims, rank), [map, String(dims)]);
  const largest = useMemo(() => Object.values(map.sizes).reduce<number>((most, size) => Math.max(most, size ?? 0), 1), [map]);

  const cellAt = (row: number, column: number): Cell | null => {
    const coords = layout.coords(row, column, slice);
    if (!coords) return null;
    const key = coords.join(",");
    return { coords, size: map.sizes[key], broken: broken.get(key) };
  };
  const draw = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      const style = getComputedStyle(context.canvas);
      const colour = (name: string) => style.getPropertyValue(name).trim();
      const pattern = hatch(context, colour("--hatch"), colour("--hatch-paper"));
      const colours = table("viridis", false);
      const { x0, y0, side } = layout.place(width, height);
      const gap = side > 6 ? 1 : 0;
      context.clearRect(0, 0, width, height);
      const paint = (row: number, column: number, cell: Cell) => {
        context.fillStyle = cell.size === undefined ? pattern : css(colours[Math.min(255, Math.floor(((cell.size ?? 0) / largest) * 255))]!);
        const [x, y] = [x0 + column * side, y0 + row * side];
        context.fillRect(x, y, Math.max(least, side - gap), Math.max(least, side - gap));
        if (cell.broken) paintBroken(context, x, y, Math.max(3, side - gap), colour("--bad"));
      };
      const isSmall = layout.rows * layout.columns <= MOST_CELLS;
      const least = isSmall ? 0.5 : 1;
      if (isSmall) {
        for (let row = 0; row < layout.rows; row++)
          for (let column = 0; column < layout.columns; column++) {
            const cell = cellAt(row, column);
            if (cell) paint(row, column, cell);
          }
        return;
      }
      context.fillStyle = pattern;
      context.fillRect(x0, y0, Math.max(1, side * layout.columns), Math.max(1, side * layout.rows));
      for (const key of new Set([...Object.keys(map.sizes), ...broken.keys()])) {
        const place = layout.find(key.split(",").map(Number), slice);
        const cell = place && cellAt(...place);
        if (cell) paint(...place, cell);
      }
    },
    [map, layout, slice, broken],
  );
  const at = (event: MouseEvent): Cell | null => {
    const canvas = event.currentTarget as HTMLCanvasElement;
    const { x0, y0, side } = layout.place(canvas.clientWidth, canvas.clientHeight);
    const [row, column] = [Math.floor((event.offsetY - y0) / side), Math.floor((event.offsetX - x0) / side)];
    return row < 0 || column < 0 || row >= layout.rows || column >= layout.columns ? null : cellAt(row, column);
  };
  const show = ({ coords }: Cell) => {
    const middle = coords.map((index, k) => Math.min(shown.info.array!.shape[k]! - 1, Math.floor((index + 0.5) * map.chunk_shape[k]!)));
    if (rank >= 2) change({ tab: "picture", grid: true, at: middle.map((index, k) => (dims.includes(k) ? (look.at[k] ?? null) : index)), view: viewOf(map, dims, coords) });
  };
  const free = map.grid.flatMap((count, k) => (rank >= 2 && !dims.includes(k) && count > 1 ? [k] : []));
  return (
    <div class="stage">
      <Canvas
        class="canvas"
        label={`Map of ${map.shards ? "shards" : "chunks"}: ${Object.keys(map.sizes).length} stored, ${broken.size} damaged`}
        draw={draw}
        data-broken={broken.size}
        onPointerMove={(event: PointerEvent) => setPointed(at(event))}
        onPointerLeave={() => setPointed(null)}
        onClick={(event: MouseEvent) => {
          const cell = at(event);
          if (cell) show(cell);
        }}
      />
      <p class="readout">{pointed ? <CellWords cell={pointed} map={map} /> : <span class="soft">Point at a cell; click to see it in the picture.</span>}</p>
      {free.length > 0 && (
        <div class="sliders">
          {free.map((k) => (
            <div class="slider" key={k}>
              <label for={`chunk-${k}`}>{shown.info.array!.dimensions[k]?.name ?? `dimension ${k}`}</label>
              <input
                id={`chunk-${k}`}
                type="range"
                min={0}
                max={map.grid[k]! - 1}
                value={slice[k]}
                onInput={(event) => {
                  const index = Number(event.currentTarget.value) * map.chunk_shape[k]!;
                  change({ at: resolved.at.map((old, i) => (i === k ? index : old)) });
                }}
              />
              <span class="of">
                {slice[k]} / {map.grid[k]! - 1}
              </span>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function CellWords({ cell, map }: { cell: Cell; map: Regular }) {
  const ratio = cell.size && map.size_full ? `, ${(map.size_full / cell.size).toPrecision(3)} : 1` : "";
  return (
    <>
      <b class="value">[{cell.coords.join(", ")}]</b>
      <span>{cell.size === undefined ? "missing: reads as the fill value" : `${bytes(cell.size)}${ratio}`}</span>
      {cell.broken && <b class="bad">{cell.broken.message}</b>}
    </>
  );
}

/** Where cells are: a grid for two dimensions or more; for one, lines of text. */
export function layoutOf(grid: number[], dims: readonly number[], rank: number) {
  const total = grid[0] ?? 1;
  const wide = Math.ceil(Math.sqrt(total * 2));
  const [rows, columns] = rank >= 2 ? [grid[dims[0]!]!, grid[dims[1]!]!] : [Math.ceil(total / wide), wide];
  return {
    rows,
    columns,
    coords(row: number, column: number, slice: number[]): number[] | null {
      if (rank >= 2) return slice.map((index, k) => (k === dims[0] ? row : k === dims[1] ? column : index));
      const index = row * columns + column;
      return index < total ? (rank === 1 ? [index] : []) : null;
    },
    /** The row and the column of a chunk; null for a chunk outside the slice. */
    find(coords: number[], slice: number[]): [number, number] | null {
      if (rank < 2) return [Math.floor((coords[0] ?? 0) / columns), (coords[0] ?? 0) % columns];
      return coords.every((index, k) => dims.includes(k) || index === slice[k]) ? [coords[dims[0]!]!, coords[dims[1]!]!] : null;
    },
    place(width: number, height: number) {
      const side = Math.min((width - 16) / columns, (height - 16) / rows, 64);
      return { side, x0: Math.max(8, (width - side * columns) / 2), y0: Math.max(8, (height - side * rows) / 2) };
    },
  };
}

function viewOf(map: Regular, dims: readonly number[], coords: number[]) {
  const [y, x] = dims.map((k) => (coords[k]! + 0.5) * map.chunk_shape[k]!) as [number, number];
  return { x, y, z: 240 / Math.max(...dims.map((k) => map.chunk_shape[k]!)) };
}

function paintBroken(context: CanvasRenderingContext2D, x: number, y: number, side: number, colour: string): void {
  context.fillStyle = colour;
  context.fillRect(x, y, side, side);
  context.strokeStyle = "#fff";
  context.lineWidth = Math.max(1, side / 12);
  context.beginPath();
  context.moveTo(x + side * 0.25, y + side * 0.25);
  context.lineTo(x + side * 0.75, y + side * 0.75);
  context.moveTo(x + side * 0.75, y + side * 0.25);
  context.lineTo(x + side * 0.25, y + side * 0.75);
  context.stroke();
}
