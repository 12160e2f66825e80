import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { largeLines, startFakeStage } from "./fake-stage.ts";

test("a child that floods its stdout costs bounded memory and does not affect its neighbour", async () => {
  await using stage = await startFakeStage();
  const noisy = await stage.session();
  const quiet = await stage.session();
  const before = await stage.memory();
  for (let round = 1; round <= 3; round += 1) {
    await noisy.handle.prompt("flood 160");
    const settled = noisy.witness.until(
      () => noisy.witness.told.filter(({ params }) => params.event?.["type"] === "agent_settled").length === round,
    );
    for (let i = 0; i < 5; i += 1) await quiet.handle.runUntilSettled("hello");
    await settled;
  }
  const { peak } = await stage.memory();
  // The replay buffer, the reader's backlog, and uncollected garbage; not the 480 MiB.
  expect(peak - before.now).toBeLessThan(240);
  expect((await noisy.handle.get()).state).toBe("idle");
});

test("a record of many MiB is forwarded completely, and one over the limit is reported and skipped", async () => {
  await using stage = await startFakeStage();
  const { handle, witness } = await stage.session();
  const before = await stage.memory();
  for (const mebibytes of [8, 16, 32]) {
    await handle.runUntilSettled(`record ${mebibytes}`);
    await witness.event("message_end", ({ data }) => String(data).length === mebibytes * 1024 * 1024);
  }
  await handle.runUntilSettled("record 65");
  const diagnostic = await witness.event("rpcd_diagnostic");
  expect(diagnostic).toMatchObject({ kind: "record_too_large", bytes: 65 * 1024 * 1024 + 32 });
  expect((await handle.get()).state).toBe("idle");
  expect((await stage.memory()).peak - before.now).toBeLessThan(5 * 64);
});

test("what a child wrote is told in order and before its end, also if that comes while a large record is handled", async () => {
  await using stage = await startFakeStage();
  const file = join(stage.root, "lines");
  const lines = largeLines(5);
  writeFileSync(file, `${lines.join("")}{"type":"half`);
  const ends = (["leaves", "is killed", "is closed"] as const).map(async (how) => {
    const { handle, witness } = await stage.session();
    await handle.prompt(how === "leaves" ? `leave ${file}` : `write ${file}`);
    await witness.event("tool_execution_end");
    const { pid } = await handle.get();
    if (how === "is killed" && pid !== undefined) process.kill(pid, "SIGKILL");
    if (how === "is closed") await handle.close();
    await witness.state(how === "is closed" ? "closed" : "crashed");
    const told = witness.told.map(({ params }) => params.event ?? {});
    const records = told.filter(({ n }) => n !== undefined).map((event) => `${JSON.stringify(event)}\n`);
    expect(records.findIndex((record, n) => record !== lines[n])).toBe(-1);
    // One that is ended may not have written all.
    if (how === "leaves") expect(records).toHaveLength(lines.length);
    if (how === "leaves") expect(told.filter(({ kind }) => kind === "cut_off")).toMatchObject([{ bytes: 13 }]);
    const end = witness.told.findIndex(({ params }) => isEnd(params["session"]));
    expect(witness.told.slice(end).filter(({ params }) => params.event?.["n"] !== undefined)).toEqual([]);
  });
  await Promise.all(ends);
});

function isEnd(session: unknown): boolean {
  const { state } = (session ?? {}) as { readonly state?: unknown };
  return state === "crashed" || state === "closed";
}

test("a child that floods its stderr with invalid text is read to the end, and only the end is kept", async () => {
  await using stage = await startFakeStage();
  const { handle, witness } = await stage.session();
  const before = await stage.memory();
  for (let round = 0; round < 6; round += 1) await handle.runUntilSettled("stderr 64");
  // Node collects read chunks only when they take 64 MiB or more; kept, they would take 384 MiB.
  expect((await stage.memory()).peak - before.now).toBeLessThan(192);
  await handle.close();
  const exit = (await witness.state("closed"))["exit"] ?? {};
  expect(JSON.stringify(exit).length).toBeLessThan(64 * 1024);
});
