// Workers that fill and hash buffers, a stream through compression, and child processes, one a shell: prints digests.
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { execFile, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompressSync, brotliDecompressSync, gzip, gunzip } from "node:zlib";
import { fileURLToPath } from "node:url";

const self = fileURLToPath(import.meta.url);
const digest = (data) => createHash("sha256").update(data).digest("hex").slice(0, 16);

export function filled(seed, bytes) {
    const buffer = Buffer.allocUnsafe(bytes);
    let state = seed >>> 0;
    for (let i = 0; i < bytes; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        buffer[i] = state >>> 24 & (i % 3 ? 15 : 255);
    }
    return buffer;
}

export function worked(seed) {
    const kept = [];
    const sum = createHash("sha256");
    for (let i = 0; i < 300; i++) {
        const buffer = filled(seed + i, 64 + (i * 977) % 60000);
        sum.update(buffer);
        kept.push(buffer);
        if (i % 3 === 0) kept.splice((i * 7) % kept.length, 1);
        if (i % 50 === 0 && globalThis.gc) globalThis.gc();
    }
    const table = new Map();
    for (let i = 0; i < 30000; i++) table.set(`key ${i % 9000}`, { number: i, text: "x".repeat(i % 40) });
    sum.update(JSON.stringify([...table]));
    return sum.digest("hex").slice(0, 16);
}

export function inWorker(seed) {
    return new Promise((resolve, reject) => {
        const worker = new Worker(self, { workerData: seed });
        worker.on("message", resolve);
        worker.on("error", reject);
        worker.on("exit", (code) => code && reject(new Error(`a worker ended with ${code}`)));
    });
}

export async function roundTrip(bytes) {
    const data = filled(bytes, bytes);
    const back = await promisify(gunzip)(await promisify(gzip)(data));
    return data.equals(back) && data.equals(brotliDecompressSync(brotliCompressSync(data, { params: {} })));
}

export function inChild(seed) {
    return new Promise((resolve, reject) => {
        const child = fork(self, [String(seed)]);
        child.on("message", resolve);
        child.on("error", reject);
        child.on("exit", (code, signal) => (code || signal) && reject(new Error(`a child ended: ${code ?? signal}`)));
    });
}

async function main() {
    for (let round = 0; round < 3; round++) {
        const sums = await Promise.all([1, 2, 3, 4].map((seed) => inWorker(seed * 100 + round)));
        console.log(digest(sums.join()));
    }
    console.log((await Promise.all([1000, 100000, 700000].map(roundTrip))).join());
    console.log(digest((await Promise.all([7, 8].map(inChild))).join()));
    const said = await Promise.all(Array.from({ length: 20 }, (_, i) => promisify(execFile)("sh", ["-c", `seq ${i} 900`])));
    console.log(digest(said.map(({ stdout }) => stdout).join()));
    // One that is ended while it works.
    const endless = new Worker("for (;;) Buffer.alloc(5000)", { eval: true });
    await new Promise((resolve) => endless.on("online", resolve));
    console.log(await endless.terminate());
}

if (!isMainThread) parentPort.postMessage(worked(workerData));
else if (process.send && process.argv[1] === self) process.send(worked(Number(process.argv[2])), () => process.disconnect());
else if (process.argv[1] === self) await main();
