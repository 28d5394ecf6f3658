import assert from "node:assert/strict";
import { test } from "node:test";
import { pythonLine } from "../src/python.ts";

const range = (start: number, stop: number, step = 1) => ({ start, stop, step });

test("the line of Python for a selection", () => {
  assert.equal(pythonLine("/data/a.zarr", "x/t", [3, range(0, 80, 4), range(10, 20)], [5, 80, 90]), 'omnizarr.open("/data/a.zarr")["x/t"][3, ::4, 10:20]');
  assert.equal(pythonLine("a.zarr", "", [range(0, 5), range(0, 80)], [5, 80]), 'omnizarr.open("a.zarr")[:]');
  assert.equal(pythonLine("a.zarr", "s", [], []), 'omnizarr.open("a.zarr")["s"][()]');
});

test("names with quotes and letters of all kinds", () => {
  assert.equal(pythonLine('C:\\x"y', "é", [1], [3]), 'omnizarr.open("C:\\\\x\\"y")["é"][1]');
});

test("what is drawn is decoded, turned and flipped as on the screen", () => {
  const shape = [5, 80, 90];
  const read = [3, range(0, 80), range(10, 20)];
  assert.equal(pythonLine("a", "t", read, shape, { unpack: ".lazy.unpack()", order: [1, 0], flipped: true }), 'omnizarr.open("a")["t"].lazy.unpack()[3, :, 10:20].T[::-1]');
  assert.equal(pythonLine("a", "t", [range(0, 5), range(0, 80), range(0, 90)], shape, { order: [1, 2, 0], channels: [0, 2] }), 'omnizarr.open("a")["t"][:].transpose(1, 2, 0)[..., [0, 2]]');
  assert.equal(pythonLine("a", "t", read, shape, { part: "magnitude", order: [0, 1] }), 'abs(omnizarr.open("a")["t"][3, :, 10:20])');
});
