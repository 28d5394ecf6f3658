import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHash, START, toHash, type Look } from "../src/look.ts";

test("the start has a short address", () => {
  assert.equal(toHash(START), "d=0");
  assert.deepEqual(fromHash("#d=0"), START);
});

test("an address says all of a look", () => {
  const look: Look = {
    dataset: 1,
    path: "a b/µ&=#/t",
    beside: { dataset: 0, path: "" },
    tab: "line",
    dims: [2, 0],
    at: [3, null, 0],
    line: 1,
    part: "phase",
    colours: "RdBu",
    reversed: true,
    limits: "manual",
    percentiles: [0.5, 99],
    range: [-1.5e-7, 280.25],
    log: true,
    blend: "channels",
    channels: [
      { on: true, color: "ff00ff", lo: -1, hi: 20.5 },
      { on: false, color: "00ff00", lo: null, hi: null },
    ],
    missing: "#ff00c8",
    fillIsMissing: true,
    stretch: false,
    flip: true,
    grid: true,
    labels: "cells",
  coast: false,
    view: { x: 50000.5, y: 12, z: 0.0125 },
  };
  assert.deepEqual(fromHash(`#${toHash(look)}`), look);
});

test("nonsense in an address is ignored", () => {
  const look = fromHash("#d=x&dims=1&at=a,2&cmap=zzz&min=1&z=-3&x=1&y=1&tab=nothing&part=%20");
  assert.deepEqual(look, { ...START, at: [null, 2] });
});
