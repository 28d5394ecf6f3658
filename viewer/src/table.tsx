// Values as a table: text, records, scalars, and any array that is wanted in numbers.
import { useMemo, useReducer, useState } from "preact/hooks";
import { values as askValues, type Selection } from "./api.ts";
import { Coordinates } from "./coordinates.ts";
import { dataType } from "./dtypes.ts";
import { START } from "./look.ts";
import { Trouble, useAnswer, Waiting } from "./parts.tsx";
import { PythonLine, type Change, type Shown } from "./picture.tsx";
import { decoding, pythonLine, type Index } from "./python.ts";
import type { Resolved } from "./resolve.ts";
import { Sliders } from "./sliders.tsx";

const ROWS = 60;
const COLUMNS = 16;

export function Values({ shown, resolved, change }: { shown: Shown; resolved: Resolved; change: Change }) {
  const array = shown.info.array!;
  const rank = array.shape.length;
  const dims = rank >= 2 ? resolved.dims : rank === 1 ? [0] : [];
  const [start, setStart] = useState([0, 0]);
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const coordinates = useMemo(() => array.dimensions.map((_, k) => new Coordinates(shown.entry.number, shown.info.path, array, k, () => redraw(0))), [shown.info]);
  const pages = [ROWS, COLUMNS];
  const windows = dims.map((k, i): [number, number] => [start[i]!, Math.min(array.shape[k]!, start[i]! + pages[i]!)]);
  const select: Selection = resolved.at.map((index, k) => windows[dims.indexOf(k)] ?? index);
  const isEmpty = array.shape.includes(0);
  // The server answers in the order of the dimensions.
  const isTurned = dims.length === 2 && dims[0]! > dims[1]!;
  const { answer, error, again } = useAnswer(
    async () => {
      if (isEmpty) return { shape: [0], fields: null, values: [] };
      const found = await askValues(shown.entry.number, shown.info.path, select);
      return isTurned ? { ...found, values: transposed(found.values as unknown[][]) } : found;
    },
    [shown.info, JSON.stringify(select)],
  );
  const line = select.map((one, k): Index => (typeof one === "number" ? one : { start: one[0], stop: Math.min(one[1], array.shape[k]!), step: 1 }));
  const free = { ...resolved, dims: [dims[0] ?? 0, dims[1] ?? dims[0] ?? 0] as [number, number], blend: "one" as const };
  return (
    <div class="values">
      <div class="pagers">
      {dims.map((k, i) => (
        <Pager key={k} name={coordinates[k]!.name} window={windows[i]!} size={array.shape[k]!} page={pages[i]!} onMove={(to) => setStart(start.map((old, j) => (i === j ? to : old)))} />
      ))}
      </div>
      {error && <Trouble message={error} again={again} />}
      {!answer && !error && <Waiting what="values" />}
      {isEmpty && <p class="soft">The array has no elements.</p>}
      {answer && !isEmpty && (
        <div class="scroll" tabIndex={0} aria-label="Values">
          <Cells values={answer.values} fields={answer.fields} dims={dims} windows={windows} coordinates={coordinates} isText={answer.fields === null && dataType(array.dtype).kind === "other"} />
        </div>
      )}
      <Sliders array={array} resolved={free} coordinates={coordinates} onMove={(k, index) => change({ at: resolved.at.map((old, j) => (j === k ? index : old)) })} />
      <PythonLine text={pythonLine(shown.entry.location, shown.info.path, line, array.shape, { unpack: decoding(array, START).unpack ?? null, order: isTurned ? [1, 0] : [] })} />
    </div>
  );
}

const transposed = (rows: unknown[][]) => (rows[0] ?? []).map((_, j) => rows.map((row) => row[j]));

function Pager({ name, window, size, page, onMove }: { name: string; window: [number, number]; size: number; page: number; onMove: (start: number) => void }) {
  if (size <= page) return null;
  const last = Math.floor((size - 1) / page) * page;
  return (
    <div class="pager" role="group" aria-label={`Part along ${name}`}>
      <button onClick={() => onMove(0)} disabled={window[0] === 0} aria-label="First">«</button>
      <button onClick={() => onMove(Math.max(0, window[0] - page))} disabled={window[0] === 0} aria-label="Previous">‹</button>
      <span>
        {name} {window[0]} – {window[1] - 1} of {size}
      </span>
      <button onClick={() => onMove(Math.min(last, window[0] + page))} disabled={window[1] >= size} aria-label="Next">›</button>
      <button onClick={() => onMove(last)} disabled={window[1] >= size} aria-label="Last">»</button>
    </div>
  );
}

interface CellsProps {
  values: unknown;
  fields: string[] | null;
  dims: readonly number[];
  windows: [number, number][];
  coordinates: Coordinates[];
  isText: boolean;
}

function Cells({ values, fields, dims, windows, coordinates, isText }: CellsProps) {
  const rows = dims.length === 0 ? [values] : (values as unknown[]);
  const [y, x] = dims;
  const columns = dims.length === 2 ? (rows[0] as unknown[]).map((_, j) => heading(coordinates[x!]!, windows[1]![0] + j)) : (fields ?? ["value"]);
  const isRecord = fields !== null && dims.length < 2;
  return (
    <table class="grid">
      <thead>
        <tr>
          <th scope="col">{y === undefined ? "" : coordinates[y]!.name}</th>
          {columns.map((name, j) => (
            <th scope="col" key={j} class={isText ? "words" : undefined}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={i}>
            <th scope="row">{y === undefined ? "" : heading(coordinates[y]!, windows[0]![0] + i)}</th>
            {(dims.length === 2 || isRecord ? cellsOf(row, fields) : [row]).map((cell, j) => (
              <td key={j} class={isText ? "words" : undefined}>{text(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function cellsOf(row: unknown, fields: string[] | null): unknown[] {
  if (Array.isArray(row)) return row;
  if (row !== null && typeof row === "object" && fields) return fields.map((field) => (row as Record<string, unknown>)[field]);
  return [row];
}

function heading(coordinates: Coordinates, index: number): string {
  const words = coordinates.words(index);
  return words ? `${index}  ${words}` : String(index);
}

const text = (cell: unknown) => (typeof cell === "string" ? cell : JSON.stringify(cell));
