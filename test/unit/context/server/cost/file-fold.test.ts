import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CostFold } from "../../../../../context/cost/fold.ts";
import { COST_MARK_TYPE, markData } from "../../../../../context/cost/marks.ts";
import { EntryFold, FileFold } from "../../../../../server/context/cost/file-fold.ts";
import { fileTotal, usageOf } from "../../../../../server/context/cost/file-total.ts";

const header = { type: "session", version: 3, id: "s", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };
let count = 0;
const entry = (type: string, fields: object) => {
  count += 1;
  const timestamp = new Date(Date.UTC(2026, 0, 1) + count * 1_000).toISOString();
  return { type, id: `e${count}`, parentId: count === 1 ? null : `e${count - 1}`, timestamp, ...fields };
};
const user = (content: string) => entry("message", { message: { role: "user", content } });
const answer = (output: number, more: object = {}) => {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: output / 1e6 };
  const usage = { input: 1, output, cacheRead: 2, cacheWrite: 3, totalTokens: 0, cost };
  return entry("message", { message: { role: "assistant", provider: "p", model: "m", content: [], usage, ...more } });
};
const checkpoint = (label: string) =>
  entry("custom", { customType: COST_MARK_TYPE, data: markData({ kind: "checkpoint", label }) });
const line = (value: unknown) => `${JSON.stringify(value)}\n`;

class File implements Disposable {
  readonly #root = mkdtempSync(join(tmpdir(), "cost-"));
  readonly path = join(this.#root, "s.jsonl");

  write(...values: readonly unknown[]): void {
    writeFileSync(this.path, values.map(line).join(""));
  }

  append(text: string): void {
    appendFileSync(this.path, text);
  }

  async replace(...values: readonly unknown[]): Promise<void> {
    writeFileSync(`${this.path}.new`, values.map(line).join(""));
    await rename(`${this.path}.new`, this.path);
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true });
  }
}

const foldOf = (path: string) => new FileFold(path, () => new EntryFold());
const outputOf = async (fold: FileFold<EntryFold>): Promise<number> => (await fold.read()).costs.whole.total.output;

test("an entry added to a file is added to its costs, and lines without costs only advance the time", async () => {
  using file = new File();
  const fold = foldOf(file.path);
  expect(await outputOf(fold)).toBe(0);
  const cut = answer(7, { stopReason: "length" });
  const entries = [
    user('What does "usage" mean? '.repeat(20_000)),
    answer(1),
    user("And then?"),
    cut,
    entry("context_edit", { targetId: cut.id, replacement: null }),
    user("Well."),
    checkpoint("half"),
    entry("session_info", { name: "x" }),
  ];
  file.write(header, ...entries);
  expect(await outputOf(fold)).toBe(8);
  const more = [user("More."), answer(10), checkpoint("whole")];
  for (const one of more) {
    file.append(line(one));
    await fold.read();
  }
  const whole = new CostFold();
  for (const one of [header, ...entries, ...more]) whole.add(one);
  const { costs: read } = await fold.read();
  expect(read.checkpoints).toEqual(whole.checkpoints);
  expect(read.whole.bySource()).toEqual(whole.whole.bySource());
  expect(read.checkpoints.map(({ event }) => event.deltaTokens.output)).toEqual([8, 10]);
});

test("a line is counted when it is complete, including the last one of a file without a final line end, and only once", async () => {
  using file = new File();
  const fold = foldOf(file.path);
  file.write(header, answer(1));
  const torn = JSON.stringify(answer(20));
  file.append(torn.slice(0, 40));
  expect(await outputOf(fold)).toBe(1);
  file.append(torn.slice(40));
  expect(await outputOf(fold)).toBe(21);
  expect(await outputOf(fold)).toBe(21);
  file.append("\n{no entry}\n\n");
  file.append(line(answer(300)));
  expect(await Promise.all([outputOf(fold), outputOf(fold), outputOf(fold)])).toEqual([321, 321, 321]);
});

test("a file that was rewritten, truncated or removed is read again", async () => {
  using file = new File();
  const fold = foldOf(file.path);
  file.write(header, answer(1), answer(2), answer(4));
  expect(await outputOf(fold)).toBe(7);
  await file.replace(header, answer(8), answer(16), answer(32), answer(64));
  expect(await outputOf(fold)).toBe(120);
  file.write(header, answer(5));
  expect(await outputOf(fold)).toBe(5);
  rmSync(file.path);
  expect(await outputOf(fold)).toBe(0);
  file.write(header, answer(9));
  expect(await outputOf(fold)).toBe(9);
});

test("a caller that disconnects ends its reading, and the next reads the whole file", async () => {
  using file = new File();
  const fold = foldOf(file.path);
  file.write(header, answer(1));
  await expect(fold.read(AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  expect(await outputOf(fold)).toBe(1);
});

test("an entry of more than 4 MiB costs nothing and is not kept, complete or not, and later ones count", async () => {
  using file = new File();
  const fold = foldOf(file.path);
  file.write(header, answer(1), answer(20, { padding: "[".repeat(4 * 1024 * 1024) }), answer(300));
  expect(await outputOf(fold)).toBe(301);
  // A hole, as if an attacker made the file long: none of it may stay in memory.
  truncateSync(file.path, 300 * 1024 * 1024);
  const before = process.memoryUsage().arrayBuffers;
  const reading = outputOf(fold);
  let most = 0;
  const looking = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }, 1);
  expect(await reading).toBe(301);
  clearInterval(looking);
  expect(most).toBeLessThan(200 * 1024 * 1024);
  file.append("still the same entry");
  expect(await outputOf(fold)).toBe(301);
  file.append(`and its end\n${line(answer(4_000))}`);
  expect(await outputOf(fold)).toBe(4_301);
  truncateSync(file.path, 1024 * 1024 * 1024 + 1);
  await expect(fold.read()).rejects.toMatchObject({ data: { reason: "unreadable" } });
});

test("a file that is not regular is not awaited", async () => {
  using file = new File();
  execFileSync("mkfifo", [file.path]);
  await expect(foldOf(file.path).read()).rejects.toMatchObject({ data: { reason: "not_a_file" } });
});

test("a total goes on where it was stored, in bounded reads, and ends with the sums of a whole report", async () => {
  using file = new File();
  const large = (mebibytes: number) => user("x".repeat(mebibytes * 1024 * 1024));
  file.write(header, answer(1), large(3), answer(20), large(6), answer(300), large(2), large(3), answer(4_000));
  const wholeOf = async () => {
    const { total } = (await foldOf(file.path).read()).costs.whole;
    return { totalTokens: total.totalTokens, costUsd: total.cost.total };
  };
  const totals = [await fileTotal(file.path, undefined, 5 * 1024 * 1024)];
  const last = () => {
    const total = totals.at(-1);
    if (total === undefined) throw new Error("There is no total.");
    return total;
  };
  while (!last().place.isAtEnd) {
    expect(usageOf(last())).toBeUndefined();
    // As a later daemon finds it.
    const stored = JSON.parse(JSON.stringify(last())) as ReturnType<typeof last>;
    totals.push(await fileTotal(file.path, stored, 5 * 1024 * 1024));
    expect(last().place.read).toBeGreaterThan(stored.place.read);
    expect(last().place.read - stored.place.read).toBeLessThanOrEqual(5 * 1024 * 1024);
  }
  expect(totals.length).toBeGreaterThan(3);
  expect(usageOf(last())).toEqual(await wholeOf());
  file.append(line(answer(50_000)));
  totals.push(await fileTotal(file.path, last()));
  expect(usageOf(last())).toEqual(await wholeOf());
  // Another file: its own requests count.
  await file.replace(header, answer(7));
  totals.push(await fileTotal(file.path, last()));
  expect(usageOf(last())).toEqual(await wholeOf());
  const unpriced = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 };
  file.append(line(entry("message", { message: { role: "assistant", content: [], usage: unpriced } })));
  totals.push(await fileTotal(file.path, last()));
  expect(usageOf(last())).toEqual({ totalTokens: (await wholeOf()).totalTokens });
  rmSync(file.path);
  expect(await fileTotal(file.path, last())).toBeUndefined();
});
