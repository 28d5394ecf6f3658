import assert from "node:assert/strict";
import { test } from "node:test";
import { clip, isGeographic, kindOf, outline, parse } from "../src/coast.ts";
import { Coordinates, timeTexts } from "../src/coordinates.ts";
import type { ArrayInfo } from "../src/api.ts";

test("times are as exact as one of them needs", () => {
  assert.deepEqual(timeTexts(["2020-02-30T00:00", "2020-03-01"]), ["2020-02-30", "2020-03-01"]);
  assert.deepEqual(timeTexts(["2020-01-01", "2020-01-01T06:00:00"]), ["2020-01-01T00:00", "2020-01-01T06:00"]);
  assert.deepEqual(timeTexts(["2020-01-01T00:00:00.000000000", "2020-01-01T00:00:30.500000000"]), ["2020-01-01T00:00:00", "2020-01-01T00:00:30.5"]);
  assert.deepEqual(timeTexts(["2020-01-01T00:00:10", "2020-01-01T00:00:20"]), ["2020-01-01T00:00:10", "2020-01-01T00:00:20"]);
  assert.deepEqual(timeTexts(["Bern", 5]), ["Bern", "5"]);
});

const dimension = (name: string | null, units: string | null, size: number, step: number | null, origin = 0) => ({ name, units, size, step, origin, role: null, coordinate: null });
const array = (...dimensions: ReturnType<typeof dimension>[]) => ({ dimensions }) as unknown as ArrayInfo;

test("longitudes and latitudes are known by their units, or by their names", () => {
  const found = array(dimension("y", "degrees_north", 180, 1), dimension("lon", null, 360, 1), dimension("rlon", "degrees", 9, 1), dimension("lat", "m", 9, 1), dimension("lat", null, 9, null));
  assert.deepEqual(found.dimensions.map((_, k) => kindOf(found, k)), ["latitude", "longitude", null, null, null]);
  assert.ok(isGeographic(found, [1, 0]));
  assert.ok(!isGeographic(found, [0, 2]));
});

test("lines are cut where the array ends", () => {
  assert.deepEqual(clip([0, 0], [10, 10], [2, 8], [0, 5]), [[2, 2], [5, 5]]);
  assert.deepEqual(clip([3, 3], [4, 4], [2, 8], [0, 5]), [[3, 3], [4, 4]]);
  assert.equal(clip([0, 6], [10, 6], [2, 8], [0, 5]), null);
  assert.equal(clip([0, 0], [1, 1], [2, 8], [0, 5]), null);
});

test("the coast is where its longitudes and latitudes are, from -180 or from 0 on", () => {
  const lines = parse("-100,400 100,0 0,50\n"); // from 10 west, 40 north to 0, 40 to 0, 45
  assert.deepEqual(lines, [[[-10, 40], [0, 40], [0, 45]]]);
  const info = array(dimension("lat", "degrees_north", 180, -1, 89.5), dimension("lon", "degrees_east", 360, 1, 0.5));
  const [y, x] = [0, 1].map((k) => new Coordinates(0, "", info, k, () => undefined)) as [Coordinates, Coordinates];
  assert.deepEqual(x.range, [0, 360]);
  assert.deepEqual(outline(lines, x, y, false), [[[0, 50], [0, 45]], [[350, 50], [360, 50], [360, 45]]]);
  assert.deepEqual(outline(lines, y, x, true), [[[50, 0], [45, 0]], [[50, 350], [50, 360], [45, 360]]]);
});
