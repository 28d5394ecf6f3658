// Small pieces that the page is made of.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Answer<T> {
  answer: T | null;
  error: string | null;
}

/** The answer to a question to the server: null while it is awaited, from the moment that the keys are others. */
export function useAnswer<T>(ask: () => Promise<T>, keys: unknown[]): Answer<T> & { again: () => void } {
  const [state, setState] = useState<Answer<T> & { of: unknown[] }>({ answer: null, error: null, of: [] });
  const [turn, setTurn] = useState(0);
  const now = [...keys, turn];
  useLayoutEffect(() => {
    let isWanted = true;
    ask().then(
      (answer) => isWanted && setState({ answer, error: null, of: now }),
      (error: Error) => isWanted && setState({ answer: null, error: error.message, of: now }),
    );
    return () => void (isWanted = false);
  }, now);
  const isNow = state.of.length === now.length && now.every((key, k) => Object.is(key, state.of[k]));
  return { answer: isNow ? state.answer : null, error: isNow ? state.error : null, again: () => setTurn(turn + 1) };
}

export const Trouble = ({ message, again }: { message: string; again?: () => void }) => (
  <div class="trouble" role="alert">
    <p>{message}</p>
    {again && <button onClick={again}>Try again</button>}
  </div>
);

export const Waiting = ({ what }: { what: string }) => (
  <p class="waiting" role="status">
    Reading {what} …
  </p>
);

export function Copy({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1200);
  };
  return (
    <button class="copy" onClick={copy} title={label} aria-label={label}>
      {isCopied ? "copied" : "copy"}
    </button>
  );
}

async function copyText(text: string): Promise<void> {
  // Pages that do not come by https or from this machine have no clipboard of the newer kind.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Choice<T extends string>({ label, value, choices, onChange }: { label: string; value: T; choices: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {choices.map(([name, text]) => (
        <button key={name} aria-pressed={name === value} onClick={() => onChange(name)}>
          {text}
        </button>
      ))}
    </div>
  );
}

export const Check = ({ label, checked, onChange, title }: { label: string; checked: boolean; onChange: (checked: boolean) => void; title?: string }) => (
  <label class="check" title={title}>
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
    {label}
  </label>
);

/** A number that is taken when it is left or Enter is pressed. */
export function NumberField({ label, value, onChange }: { label: string; value: number | null; onChange: (value: number) => void }) {
  const text = value === null ? "" : String(Number(value.toPrecision(6)));
  const take = (input: HTMLInputElement) => {
    const typed = Number(input.value);
    if (input.value !== "" && Number.isFinite(typed) && input.value !== text) onChange(typed);
  };
  return (
    <label class="number">
      <span>{label}</span>
      <input
        key={text}
        inputMode="decimal"
        defaultValue={text}
        onBlur={(event) => take(event.currentTarget)}
        onKeyDown={(event) => event.key === "Enter" && take(event.currentTarget)}
      />
    </label>
  );
}

export const Section = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section class="section">
    <h3>{title}</h3>
    {children}
  </section>
);

/** A canvas that is drawn again whenever it changes in size, and whenever `draw` is another function. */
export function Canvas({ draw, class: name, label, ...rest }: { draw: (context: CanvasRenderingContext2D, width: number, height: number) => void; class: string; label: string } & Record<string, unknown>) {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = ref.current!;
    const redraw = () => {
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
      const context = canvas.getContext("2d")!;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      if (width && height) draw(context, width, height);
    };
    const observer = new ResizeObserver(redraw);
    observer.observe(canvas);
    window.addEventListener("themechange", redraw);
    return () => {
      observer.disconnect();
      window.removeEventListener("themechange", redraw);
    };
  }, [draw]);
  return <canvas ref={ref} class={name} role="img" aria-label={label} {...rest} />;
}

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const power = count > 0 ? Math.min(units.length - 1, Math.floor(Math.log2(count) / 10)) : 0;
  const value = count / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[power]}`;
}
