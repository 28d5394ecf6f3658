import assert from "node:assert/strict";
import { test } from "node:test";
import { across, choose, columnAt, down, fit, indexOf, rowAt, seen, strideFor, tickIndices, tilesIn, type Frame } from "../src/geometry.ts";

const plot = { x: 50, y: 10, width: 400, height: 200 };
const frame = (rest: Partial<Frame> = {}): Frame => ({ view: fit(800, 400, 1, plot), aspect: 1, columns: 800, rows: 400, flipped: false, plot, ...rest });

test("all of an array fits into the plot", () => {
  const whole = frame();
  assert.equal(whole.view.z, 0.5);
  assert.deepEqual([across(whole, 0), across(whole, 800), down(whole, 0), down(whole, 400)], [50, 450, 10, 210]);
  assert.deepEqual([down(frame({ flipped: true }), 0), down(frame({ flipped: true }), 400)], [210, 10]);
});

test("places and indices are each other's inverse", () => {
  for (const flipped of [false, true]) {
    const some = frame({ flipped, aspect: 2, view: { x: 123, y: 45, z: 3 } });
    assert.ok(Math.abs(columnAt(some, across(some, 130.5)) - 130.5) < 1e-9);
    assert.ok(Math.abs(rowAt(some, down(some, 50.25)) - 50.25) < 1e-9);
  }
});

test("what is seen lies inside the array", () => {
  assert.deepEqual(seen(frame({ view: { x: 0, y: 0, z: 1 } })), { x: [0, 200], y: [0, 100] });
  assert.deepEqual(seen(frame({ view: { x: 0, y: 0, z: 1 }, flipped: true })), { x: [0, 200], y: [0, 100] });
});

test("strides are powers of two with about one sample per pixel", () => {
  assert.deepEqual([2, 1, 0.5, 0.25, 0.2, 1 / 5000].map((z) => strideFor(z, 100000)), [1, 1, 2, 4, 4, 4096]);
  assert.equal(strideFor(1e-6, 100), 64);
});

test("the coarsest level that is fine enough, then strides", () => {
  const levels = [1, 2, 4].map((factor) => ({ path: String(factor), factors: [factor, factor] as [number, number] }));
  const chosen = (stride: number) => {
    const { level, strides } = choose(levels, [stride, stride]);
    return [level.path, ...strides];
  };
  assert.deepEqual([1, 2, 4, 16].map(chosen), [["1", 1, 1], ["2", 1, 1], ["4", 1, 1], ["4", 4, 4]]);
});

test("tiles of what is seen, the middle first", () => {
  const tiles = tilesIn([0, 600], [200, 300], [256, 256]);
  assert.equal(tiles.length, 6);
  assert.equal(tiles[0]!.column, 1);
  assert.deepEqual(tilesIn([256, 512], [0, 256], [256, 256]), [{ row: 0, column: 1 }]);
});

test("ticks at round numbers", () => {
  assert.deepEqual(tickIndices(0, 100, 5), [0, 20, 40, 60, 80]);
  assert.deepEqual(tickIndices(2.5, 6, 10), [3, 4, 5]);
});

test("the place of a value among coordinates", () => {
  assert.equal(indexOf([10, 20, 40], 30), 1.5);
  assert.equal(indexOf([40, 20, 10], 15), 1.5);
  assert.equal(indexOf([10, 20], 21), null);
});
