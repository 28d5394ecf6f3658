// The picture as a PNG file: the current view, with a title and a legend.
import type { ArrayInfo } from "./api.ts";
import { css } from "./colours.ts";
import { numberWords } from "./dtypes.ts";
import type { Look } from "./look.ts";
import type { BlendStyle, ColourMap } from "./scene.ts";

export interface Drawn {
  canvas: HTMLCanvasElement;
  title: string;
  style: ColourMap | BlendStyle;
}

const [HEAD, FOOT] = [30, 44];

export async function savePicture(drawn: Drawn[], array: ArrayInfo, look: Look, name: string): Promise<void> {
  const ratio = window.devicePixelRatio || 1;
  const width = drawn.reduce((sum, { canvas }) => sum + canvas.width, 0);
  const height = Math.max(...drawn.map(({ canvas }) => canvas.height)) + (HEAD + FOOT) * ratio;
  const page = Object.assign(document.createElement("canvas"), { width, height });
  const context = page.getContext("2d")!;
  const style = getComputedStyle(document.body);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, width, height);
  let x = 0;
  for (const pane of drawn) {
    context.drawImage(pane.canvas, x, HEAD * ratio);
    context.save();
    context.translate(x, 0);
    context.scale(ratio, ratio);
    context.fillStyle = style.color;
    const title = drawn.length === 1 ? [array.title, pane.title].filter(Boolean).join(" · ") : pane.title;
    decorate(context, pane, title, pane.canvas.width / ratio, height / ratio, array.units, look.log);
    context.restore();
    x += pane.canvas.width;
  }
  const blob = await new Promise<Blob | null>((resolve) => page.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("the browser made no PNG of the picture");
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function decorate(context: CanvasRenderingContext2D, { style }: Drawn, title: string, width: number, height: number, units: string | null, log: boolean): void {
  context.font = "600 14px system-ui, sans-serif";
  context.textAlign = "center";
  context.fillText(title, width / 2, 20, width - 20);
  if (style.kind !== "map" || !style.range) return;
  const [left, length, top] = [width * 0.2, width * 0.6, height - FOOT + 8];
  style.table.forEach((colour, i) => {
    context.fillStyle = css(colour);
    context.fillRect(left + (length * i) / 256, top, length / 256 + 0.6, 12);
  });
  context.fillStyle = getComputedStyle(document.body).color;
  context.font = "11px system-ui, sans-serif";
  const [lo, hi] = style.range.map((value) => numberWords(Number(value.toPrecision(4))));
  context.fillText(lo!, left, top + 26);
  context.fillText(hi!, left + length, top + 26);
  context.fillText([units, log ? "log" : null].filter(Boolean).join(", "), width / 2, top + 26);
}
