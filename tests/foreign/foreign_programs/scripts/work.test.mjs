// The parts of work.mjs, one by one, under node's own test runner.
import assert from "node:assert/strict";
import test from "node:test";
import { filled, inChild, inWorker, roundTrip, worked } from "./work.mjs";

test("a buffer holds what was written", () => assert.deepEqual(filled(3, 5000), filled(3, 5000)));
test("a slice shares its buffer's memory", () => {
    const whole = filled(1, 9000);
    whole.subarray(100, 200).fill(7);
    assert.ok(whole.subarray(100, 200).every((byte) => byte === 7));
});
test("work comes out the same twice", () => assert.equal(worked(5), worked(5)));
test("a worker does the same as the main thread", async () => assert.equal(await inWorker(5), worked(5)));
test("ten workers at once", async () => {
    const sums = await Promise.all(Array.from({ length: 10 }, () => inWorker(9)));
    assert.equal(new Set(sums).size, 1);
});
test("a child does the same as its parent", async () => assert.equal(await inChild(5), worked(5)));
test("compression gives back what went in", async () => assert.ok(await roundTrip(300000)));
test("a large buffer is moved to another thread's", () => {
    const memory = new ArrayBuffer(8 << 20);
    new Uint8Array(memory).fill(9);
    const moved = structuredClone(memory, { transfer: [memory] });
    assert.equal(memory.byteLength, 0);
    assert.ok(new Uint8Array(moved).every((byte) => byte === 9));
});
