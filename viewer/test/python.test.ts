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
