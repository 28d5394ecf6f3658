import assert from "node:assert/strict";
import { test } from "node:test";
import { dataType, drawable, flagWords, fromHalf, missingNumbers, PLAIN, readable, timeWords, wordsOf, type Meaning } from "../src/dtypes.ts";

const meaning = (dtype: string, rest: Partial<Meaning> = {}): Meaning => ({ ...PLAIN, type: dataType(dtype), missing: [], ...rest });

test("names of data types", () => {
  for (const [name, kind, bits] of [["float32", "float", 32], ["<i2", "int", 16], ["|b1", "bool", 8], ["uint64", "uint", 64], ["complex64", "complex", 32], [">c16", "complex", 64], ["bfloat16", "float", 16], ["datetime64[10m]", "datetime", 64], ["<U5", "other", 0]] as const)
    assert.deepEqual([dataType(name).kind, dataType(name).bits], [kind, bits], name);
  assert.equal(dataType("datetime64[10m]").step, 600);
});

test("half-precision numbers, beside the table of IEEE 754", () => {
  for (const [bits, value] of [[0x3c00, 1], [0xc000, -2], [0x7bff, 65504], [0x0001, 2 ** -24], [0x0400, 2 ** -14], [0x3555, 0.333251953125], [0xfc00, -Infinity]] as const)
    assert.equal(fromHalf(bits), value);
  assert.ok(Number.isNaN(fromHalf(0x7e00)));
});

test("scale, offset and missing values", () => {
  const packed = meaning("int16", { scale: 0.5, offset: 10, missing: [-32768] });
  const raw = Int16Array.of(0, 4, -32768);
  assert.deepEqual([...drawable(raw, packed)], [10, 12, NaN]);
  assert.deepEqual([0, 1, 2].map((i) => wordsOf(raw, i, packed)), ["10", "12", "missing (-32768)"]);
});

test("values that are not valid, by the stored numbers", () => {
  const packed = meaning("int16", { scale: 0.5, low: 0, high: 100 });
  const raw = Int16Array.of(-1, 0, 100, 101);
  assert.deepEqual([...drawable(raw, packed)], [NaN, 0, 50, NaN]);
  assert.deepEqual([0, 1, 3].map((i) => wordsOf(raw, i, packed)), ["not valid (-1)", "0", "not valid (101)"]);
});

test("integers whose bits mean others", () => {
  const packed = meaning("int8", { kind: "u", scale: 0.5, missing: [255], high: 200 });
  const raw = Int8Array.of(1, -1, -128, -55);
  assert.deepEqual([...drawable(raw, packed)], [0.5, NaN, 64, NaN]);
  assert.deepEqual([1, 2, 3].map((i) => wordsOf(raw, i, packed)), ["missing (255)", "64", "not valid (201)"]);
  assert.deepEqual([...drawable(Uint8Array.of(1, 255), meaning("uint8", { kind: "i" }))], [1, -1]);
  const part = new Int16Array(new ArrayBuffer(8), 2, 2);
  part.set([-2, 3]);
  assert.deepEqual([...drawable(part, meaning("int16", { kind: "u" }))], [65534, 3]);
  assert.equal(wordsOf(BigInt64Array.of(-1n), 0, meaning("int64", { kind: "u" })), "18446744073709551615");
});

test("flags in words", () => {
  const values = ["no_data", "cloud"].map((name, i) => ({ meaning: name, value: i, mask: null }));
  assert.deepEqual([0, 1, 7].map((stored) => flagWords(stored, values)), ["no data", "cloud", ""]);
  const bits = [{ meaning: "day", value: null, mask: 1 }, { meaning: "low", value: 2, mask: 6 }, { meaning: "high", value: 4, mask: 6 }, { meaning: "bad", value: null, mask: -128 }];
  assert.deepEqual([1, 3, 5, -128].map((stored) => flagWords(stored, bits)), ["day", "day, low", "day, high", "bad"]);
  assert.equal(wordsOf(Uint8Array.of(1), 0, meaning("uint8", { flags: values })), "1 cloud");
});

test("64-bit integers keep their digits", () => {
  assert.equal(wordsOf(BigInt64Array.of(9007199254740993n), 0, meaning("int64")), "9007199254740993");
  assert.equal(wordsOf(BigUint64Array.of(2n ** 64n - 1n), 0, meaning("uint64")), "18446744073709551615");
});

test("parts of complex numbers", () => {
  const raw = Float64Array.of(3, -4, 0, 2);
  assert.deepEqual([...drawable(raw, meaning("complex128"))], [5, 2]);
  assert.deepEqual([...drawable(raw, meaning("complex128", { part: "imaginary" }))], [-4, 2]);
  assert.equal(drawable(raw, meaning("complex128", { part: "phase" }))[1], Math.PI / 2);
});

test("times", () => {
  const words = (count: bigint, unit: string) => timeWords(count, dataType(`datetime64[${unit}]`));
  assert.equal(words(18262n, "D"), "2020-01-01");
  assert.equal(words(1577836800n, "s"), "2020-01-01T00:00:00");
  assert.equal(words(1577836800500000000n, "ns"), "2020-01-01T00:00:00.500");
  assert.equal(words(-1n, "M"), "1969-12");
  assert.equal(words(-(2n ** 63n), "s"), "NaT");
  assert.ok(Number.isNaN(drawable(BigInt64Array.of(-(2n ** 63n)), meaning("datetime64[s]"))[0]));
});

test("zarrita is told of data types that it knows", () => {
  const document = { shape: [3, 4], data_type: "complex64", fill_value: [0, 0], chunk_grid: { name: "regular", configuration: { chunk_shape: [2, 2] } } };
  const changed = readable(document, dataType("complex64"));
  assert.deepEqual([changed["shape"], changed.data_type, changed.fill_value], [[3, 4, 2], "float32", 0]);
  assert.equal(readable({ data_type: "bool", fill_value: true }, dataType("bool")).fill_value, 1);
});

test("missing values that are numbers, in JSON's ways to write them", () => {
  assert.deepEqual(missingNumbers([-9999, "1e20", "NaN", null, "", "x"]), [-9999, 1e20]);
});

test("a scaled integer of few bits has all its digits", () => {
  const type = dataType("int16");
  assert.equal(wordsOf(Int16Array.of(443), 0, { ...PLAIN, type, missing: [], scale: 0.25, offset: 10 }), "120.75");
  assert.equal(wordsOf(Int16Array.of(3), 0, { ...PLAIN, type, missing: [], scale: 0.1 }), "0.3");
});
