// Bundles the page into the Python package; see README.md.
import { build } from "esbuild";
import { gzipSync } from "node:zlib";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../src/omnizarr/web/page");

// Tiles come uncompressed: the WebAssembly codecs, most of zarrita's size, are never asked for.
const withoutNumcodecs = {
  name: "without-numcodecs",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^numcodecs\// }, ({ path }) => ({ path, namespace: "numcodecs" }));
    onLoad({ filter: /.*/, namespace: "numcodecs" }, ({ path }) => ({
      contents: `export default { fromConfig() { throw new Error("the page reads no ${path}") } }`,
    }));
  },
};

/** The packages whose files went into the bundle, by their folder in node_modules. */
function bundled(inputs) {
  const packages = Object.keys(inputs).flatMap((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1] ?? []);
  return [...new Set(packages)].sort();
}

function licence(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `License: ${license}`;
  return `${name} ${version} (${license})\n\n${text}\n`;
}

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const { metafile } = await build({
  entryPoints: [join(here, "src/app.tsx"), join(here, "src/app.css")],
  outdir: target,
  absWorkingDir: here,
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  plugins: [withoutNumcodecs],
});
cpSync(join(here, "static"), target, { recursive: true });
const coast = "coastline.txt (public domain)\n\nMade with Natural Earth, https://www.naturalearthdata.com: land at 1:110 million, simplified by coastline.mjs.\n";
writeFileSync(join(target, "LICENSES.txt"), [...bundled(metafile.inputs).map(licence), coast].join(`\n${"-".repeat(80)}\n\n`));
const sizes = readdirSync(target).map((name) => gzipSync(readFileSync(join(target, name))).length);
console.log(`the page: ${Math.round(sizes.reduce((sum, size) => sum + size) / 1000)} kB compressed, in ${target}`);
