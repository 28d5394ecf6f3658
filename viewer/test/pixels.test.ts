import assert from "node:assert/strict";
import { test } from "node:test";
import { NAMES, rgb, table } from "../src/colours.ts";
import { blendPixels, logLimits, mapPixels } from "../src/painting.ts";
import { histogram, limitsOf, percentile } from "../src/statistics.ts";

const ramp = Uint32Array.from({ length: 256 }, (_, i) => i + 1);

test("numbers become colours, NaN none", () => {
  const out = new Uint32Array(5);
  assert.equal(mapPixels([0, 5, 10, NaN, Infinity], out, ramp, [0, 10], false), true);
  assert.deepEqual([...out], [1, 129, 256, 0, 256]);
});

test("a logarithmic scale", () => {
  const out = new Uint32Array(4);
  assert.equal(mapPixels([1, 10, 100, -1], out, ramp, [1, 100], true), false);
  assert.deepEqual([...out], [1, 129, 256, 1]);
  assert.deepEqual(logLimits([0, 1000]), [-3, 3]);
});

test("channels are added up", () => {
  const out = new Uint32Array(2);
  const channels = [{ color: "ff0000", lo: 0, hi: 10 }, { color: "0000ff", lo: 0, hi: 2 }];
  assert.equal(blendPixels([[10, NaN], [1, NaN]], out, channels), true);
  assert.deepEqual([...out], [0xff7f00ff, 0]);
});

test("all colour maps are tables of opaque colours", () => {
  for (const name of NAMES) assert.ok(table(name, false).every((value) => value >>> 24 === 255), name);
  assert.deepEqual([...table("grey", true).slice(0, 1)], [0xffffffff]);
  assert.deepEqual(rgb("rgb(1, 2, 3)"), [1, 2, 3]);
});

test("percentiles as NumPy's", () => {
  assert.equal(percentile([1, 2, 3, 4], 50), 2.5);
  assert.equal(percentile([1, 2, 3, 10], 75), 4.75);
  assert.deepEqual(limitsOf([], null), null);
  assert.deepEqual(limitsOf([1, 2, 3], null, true), [-3, 3]);
  assert.deepEqual(limitsOf([5, 5], [2, 98]), [4.995, 5.005]);
});

test("a histogram counts both ends", () => {
  assert.deepEqual([...histogram([0, 1, 1, 2, 4], [0, 4], 4)], [1, 2, 1, 1]);
});
