// zarrita.js: `npm install zarrita` in the directory that NODE_MODULES names, or in the current one.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const modules = resolve(process.env.NODE_MODULES ?? "node_modules");
const load = async (name) => {
	const root = join(modules, name);
	const about = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
	const entry = (name.includes("storage") ? about.exports["./fs"] : about.exports["."]);
	return [await import(pathToFileURL(join(root, entry.import ?? entry.default ?? entry)).href), about.version];
};
const [zarr, version] = await load("zarrita");
const [{ default: FileSystemStore }] = await load("@zarrita/storage");
// What a library prints must not stand among the answers.
console.log = console.error;

const parsed = (text) => text.split(",").map((part) => {
	if (!part.includes(":")) return Number(part);
	const [start, stop, step] = part.split(":").map((each) => (each ? Number(each) : null));
	return zarr.slice(start, stop, step ?? null);
});

function flat(chunk) {
	const { data, shape, stride } = chunk;
	const total = shape.reduce((a, b) => a * b, 1);
	const out = [];
	const get = typeof data.get === "function" ? (i) => data.get(i) : (i) => data[i];
	for (let number = 0; number < total; number++) {
		let rest = number, at = 0;
		for (let axis = shape.length - 1; axis >= 0; axis--) {
			at += (rest % shape[axis]) * stride[axis];
			rest = Math.floor(rest / shape[axis]);
		}
		out.push(get(at));
	}
	return out;
}

function raw(chunk) {
	if (chunk === null || typeof chunk !== "object" || !("data" in chunk)) throw new Error("a scalar without its type");
	const { data, shape, stride } = chunk;
	const total = shape.reduce((a, b) => a * b, 1);
	let step = 1;
	const plain = shape.every((_, i) => { const axis = shape.length - 1 - i; const good = stride[axis] === step || shape[axis] === 1; step *= shape[axis]; return good; });
	if (ArrayBuffer.isView(data) && plain) return Buffer.from(data.buffer, data.byteOffset, total * data.BYTES_PER_ELEMENT);
	if (ArrayBuffer.isView(data)) return Buffer.from(new data.constructor(flat(chunk)).buffer);
	const items = flat(chunk);
	if (typeof items[0] === "boolean") return Buffer.from(items.map(Number));
	if (typeof items[0] === "string" && data.chars) {
		const out = Buffer.alloc(total * data.chars * (data.BYTES_PER_ELEMENT / data.chars === 4 ? 4 : 1));
		return Buffer.concat(items.map((text) => {
			const wide = data.BYTES_PER_ELEMENT / data.chars === 4;
			const one = Buffer.alloc(out.length / total);
			[...text].forEach((c, i) => (wide ? one.writeUInt32LE(c.codePointAt(0), i * 4) : one.writeUInt8(c.codePointAt(0), i)));
			return one;
		}));
	}
	throw new Error(`no raw bytes of ${data.constructor.name}`);
}

function nested(items, shape) {
	if (shape.length === 0) return items[0];
	const size = items.length / shape[0];
	return Array.from({ length: shape[0] }, (_, i) => nested(items.slice(i * size, (i + 1) * size), shape.slice(1)));
}

async function read(request) {
	const store = request.path.startsWith("http") ? new zarr.FetchStore(request.path) : new FileSystemStore(request.path);
	const open = request.path.startsWith("http") ? zarr.open : existsSync(join(request.path, "zarr.json")) ? zarr.open.v3 : zarr.open.v2;
	const array = await open(store, { kind: "array" });
	const selection = request.selection === null || request.selection === undefined ? null : parsed(request.selection);
	let chunk = array.shape.length === 0 ? await array.getChunk([]) : await zarr.get(array, selection);
	if (chunk === null || typeof chunk !== "object" || !("data" in chunk)) {
		const whole = await zarr.get(array, selection?.map((i) => zarr.slice(i, i + 1)) ?? null);
		chunk = typeof whole === "object" && "data" in whole ? { ...whole, shape: [] , stride: []} : whole;
	}
	if (request.format === "json") return Buffer.from(JSON.stringify(nested(flat(chunk), chunk.shape), (_, v) => (v instanceof Uint8Array ? Buffer.from(v).toString("base64") : v)));
	return raw(chunk);
}

async function answer(request) {
	if (request.verb !== "read") return ["unsupported", Buffer.alloc(0), "no such verb"];
	if (request.path.endsWith(".zip")) return ["unsupported", Buffer.alloc(0), "not tried"];
	try {
		return ["ok", await read(request), ""];
	} catch (error) {
		const state = /Unsupported|Unknown codec|not supported|Unknown or unsupported/i.test(`${error.name} ${error.message}`) ? "unsupported" : "refused";
		return [state, Buffer.alloc(0), `${error.name}: ${error.message}`.slice(0, 1000)];
	}
}

const put = (head, value) => process.stdout.write(Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), value ?? Buffer.alloc(0)]));
if (process.argv[2] === "--batch") {
	put({ zarr_conformance: 1, implementation: "zarrita.js", version });
	for await (const line of createInterface({ input: process.stdin })) {
		const request = JSON.parse(line);
		const [status, value, message] = await answer(request);
		put({ id: request.id, status, length: value.length, message }, value);
	}
} else {
	const words = process.argv.slice(2).flatMap((each) => (each.startsWith("--") ? each.split(/=(.*)/s).slice(0, 2) : [each]));
	const named = Object.fromEntries(words.flatMap((word, i) => (i % 2 ? [] : [[word, words[i + 1]]])));
	const verb = "--array_path" in named ? "read" : "list";
	const [status, value, message] = await answer({ verb, path: named["--array_path"] ?? "", selection: named["--selection"] ?? null, format: named["--format"] ?? "raw" });
	process.stdout.write(value);
	if (message) console.error(message);
	process.exitCode = { ok: 0, unsupported: 3 }[status] ?? 1;
}
