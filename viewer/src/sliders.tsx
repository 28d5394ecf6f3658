// A slider with play for each dimension that is not drawn.
import type { ArrayInfo } from "./api.ts";
import type { Coordinates } from "./coordinates.ts";
import { movable } from "./picture.tsx";
import type { Resolved } from "./resolve.ts";

interface Props {
  array: ArrayInfo;
  resolved: Resolved;
  coordinates: Coordinates[];
  playing?: number | null;
  /** Left out where nothing plays. */
  onPlay?: (k: number | null) => void;
  onMove: (k: number, index: number) => void;
}

export function Sliders({ array, resolved, coordinates, playing, onPlay, onMove }: Props) {
  const dims = movable(resolved, array);
  if (dims.length === 0) return null;
  return (
    <div class="sliders">
      {dims.map((k) => {
        const [name, index, last] = [coordinates[k]!.name, resolved.at[k]!, array.shape[k]! - 1];
        const words = (k === resolved.channelDim && array.channels[index]?.label) || coordinates[k]!.words(index);
        return (
          <div class="slider" key={k}>
            <label for={`slider-${k}`}>{name}</label>
            {onPlay && <button
              class="play"
              aria-label={playing === k ? `Stop ${name}` : `Play ${name}`}
              aria-pressed={playing === k}
              onClick={() => onPlay(playing === k ? null : k)}
            >
              {playing === k ? "❚❚" : "▶"}
            </button>}
            <input
              id={`slider-${k}`}
              type="range"
              min={0}
              max={last}
              value={index}
              aria-valuetext={words || String(index)}
              onInput={(event) => onMove(k, Number(event.currentTarget.value))}
            />
            <input
              type="number"
              min={0}
              max={last}
              value={index}
              aria-label={`Index along ${name}`}
              onChange={(event) => onMove(k, Math.max(0, Math.min(last, Math.round(Number(event.currentTarget.value) || 0))))}
            />
            <span class="of">
              / {last}
              {words && <b>{words}</b>}
            </span>
          </div>
        );
      })}
    </div>
  );
}
