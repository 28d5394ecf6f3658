import assert from "node:assert/strict";
import { test } from "node:test";
import { dataType, drawable, fromHalf, missingNumbers, readable, timeWords, wordsOf, type Meaning } from "../src/dtypes.ts";

const meaning = (dtype: string, rest: Partial<Meaning> = {}): Meaning => ({ type: dataType(dtype), part: "magnitude", scale: 1, offset: 0, missing: [], ...rest });

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
