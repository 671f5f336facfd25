// A trainer without any library: least squares by gradient descent, in JavaScript, writing a run directory that foxrun
// gates, pairs and compares. docs/run-contract.md explains each line.   node examples/minimal_trainer.mjs --out a --seed 1

import { createHash, randomBytes } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { arch, platform } from "node:os";
import { join } from "node:path";

const MASK = (1n << 64n) - 1n;

function mix(z) {
  z ^= z >> 30n; // BigInts here are never negative, so every shift is logical
  z = (z * 0xbf58476d1ce4e5b9n) & MASK;
  z ^= z >> 27n;
  z = (z * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

// Float64Array -> BigInt in 1..2^64-1. Its stored bits are seen through a DataView, so the machine's byte order is no matter.
export function fingerprint(values) {
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  const nativeLittle = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
  let sum = mix((256n * BigInt(values.length) + 8n) & MASK);
  for (let i = 0; i < values.length; i++) {
    const word = view.getBigUint64(8 * i, nativeLittle);
    sum += mix((word + BigInt(i + 1) * 0x9e3779b97f4a7c15n) & MASK);
  }
  sum &= MASK;
  return sum === 0n ? 1n : sum;
}

// JSON has no NaN and no infinity, and JSON.stringify writes -0 as 0: both would lose bits.
function json(value) {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) return `"${value}"`; // "NaN", "Infinity", "-Infinity"
    return Object.is(value, -0) ? "-0.0" : Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : `${value}`;
  }
  if (typeof value === "bigint") return `${value}`; // an integer stays one
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${json(item)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

const canonical = (object) => json(Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))));
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

function generator(seed) {
  let state = BigInt.asUintN(64, BigInt(seed)); // every draw is a function of the seed and of its number
  return () => {
    state = (state + 0x9e3779b97f4a7c15n) & MASK;
    return Number(mix(state) >> 11n) / 2 ** 53;
  };
}

const options = { out: "", seed: "42", mode: "1", steps: "50" };
for (let i = 2; i < process.argv.length; i += 2) options[process.argv[i].replace(/^--/, "")] = process.argv[i + 1];
if (!options.out) {
  console.error("minimal_trainer.mjs: --out DIR is missing: name the directory to write the run into");
  process.exit(2);
}

const started = new Date().toISOString();
const runId = randomBytes(8).toString("hex");
const directory = join(options.out, runId);
mkdirSync(directory, { recursive: true });

const steps = Number(options.steps);
const draw = generator(options.seed);
let weight = new Float64Array([0, 0]);
const lines = [];
const bits = [];
const sum = (values) => values.reduce((a, b) => a + b);
for (let step = 0; step <= steps; step++) {
  const last = step === steps; // one last row holds the state after the last step
  const x = 2 * draw() - 1;
  const error = weight[0] * x + weight[1] - (3 * x - 1);
  const gradient = new Float64Array([2 * error * x, 2 * error]);
  bits.push(fingerprint(weight), last ? 0n : fingerprint(gradient)); // the weight as the step reads it; 0: not taken
  const checksums = last ? { w: sum(weight) } : { w: sum(weight), w_grad: sum(gradient) };
  lines.push(json({ step: BigInt(step), phase: "train", checksums, metrics: last ? {} : { loss: error * error } }) + "\n");
  if (!last) weight = weight.map((w, i) => w - 0.1 * gradient[i]);
}

const shape = [2n];
const leaves = [
  { name: "w", component: "model", kind: "weight", dtype: "float64", shape },
  { name: "w_grad", component: "model", kind: "gradient", dtype: "float64", shape },
];
const bitsBytes = Buffer.alloc(8 * bits.length);
bits.forEach((value, i) => bitsBytes.writeBigUInt64LE(value, 8 * i));
const contents = {
  "bits.u64": bitsBytes,
  "diag.jsonl": Buffer.from(lines.join("")),
  "eval_summary.json": Buffer.from(json({ slope: weight[0], offset: weight[1] }) + "\n"),
  "leaves.json": Buffer.from(json({ schema_version: 1n, leaves }) + "\n"),
};

function writeDurably(name, data) {
  const file = openSync(join(directory, name), "wx");
  for (let done = 0; done < data.length; ) done += writeSync(file, data, done);
  fsyncSync(file);
  closeSync(file);
}
for (const [name, data] of Object.entries(contents)) writeDurably(name, data);

// Hashes by block of rows: a remote comparison then reads only the block that differs.
const rowsPerBlock = 16;
const blocksOf = (sizes, data) => {
  const offsets = [];
  let offset = 0;
  sizes.forEach((size, row) => {
    if (row % rowsPerBlock === 0) offsets.push(offset);
    offset += size;
  });
  const hashes = offsets.map((start, k) => sha256(data.subarray(start, offsets[k + 1] ?? data.length)));
  return { rows_per_block: BigInt(rowsPerBlock), offsets: offsets.map(BigInt), sha256: hashes };
};

const config = { steps: BigInt(steps), rate: 0.1 };
const manifest = {
  schema_version: 1n,
  run_id: runId,
  code: {
    commit_asked: process.env.FOXRUN_SHA ?? "",
    tree_asked: process.env.FOXRUN_TREE ?? "",
    tree_run: process.env.FOXRUN_TREE_RUN ?? "",
    branch: process.env.FOXRUN_BRANCH ?? "",
  },
  seed: BigInt(options.seed),
  mode: BigInt(options.mode),
  config,
  config_sha256: sha256(canonical(config)),
  inputs: [],
  environment: { node: process.version, v8: process.versions.v8, platform: `${platform()}-${arch()}` },
  variables: {},
  command: process.argv,
  files: Object.entries(contents).map(([name, data]) => ({
    name,
    size: BigInt(statSync(join(directory, name)).size),
    sha256: sha256(data),
    compared: true,
  })),
  blocks: {
    "diag.jsonl": blocksOf(lines.map((line) => Buffer.byteLength(line)), contents["diag.jsonl"]),
    "bits.u64": blocksOf(lines.map(() => 8 * leaves.length), bitsBytes),
  },
  rows: BigInt(lines.length),
  leaf_count: BigInt(leaves.length),
  times: { started, finished: new Date().toISOString() },
  exit_reason: "completed",
};
writeDurably(".run_manifest.json.tmp", Buffer.from(json(manifest) + "\n"));
renameSync(join(directory, ".run_manifest.json.tmp"), join(directory, "run_manifest.json")); // last and atomically
