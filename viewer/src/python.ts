// The line of Python that reads the current view.

export type Index = number | { start: number; stop: number; step: number };

/** A Python string literal: JSON's are ones. */
const quote = (text: string) => JSON.stringify(text);

/** One index as it is written in Python, as short as it can be. */
export function slice(index: Index, size: number): string {
  if (typeof index === "number") return String(index);
  const start = index.start > 0 ? String(index.start) : "";
  const stop = index.stop < size ? String(index.stop) : "";
  return `${start}:${stop}${index.step > 1 ? `:${index.step}` : ""}`;
}

/** `omnizarr.open("place")["path"][3, ::4]`. */
export function pythonLine(location: string, path: string, selection: Index[], shape: number[]): string {
  const opened = `omnizarr.open(${quote(location)})${path ? `[${quote(path)}]` : ""}`;
  if (shape.length === 0) return `${opened}[()]`;
  const texts = selection.map((index, k) => slice(index, shape[k] ?? 0));
  while (texts.length > 1 && texts[texts.length - 1] === ":") texts.pop();
  return `${opened}[${texts.join(", ")}]`;
}
