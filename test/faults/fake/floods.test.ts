import { expect, test } from "vitest";
import { startFakeStage } from "./fake-stage.ts";

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

test("a child that floods its stderr with invalid text is read to the end, and only the end is kept", async () => {
  await using stage = await startFakeStage();
  const { handle, witness } = await stage.session();
  const before = await stage.memory();
  for (let round = 0; round < 3; round += 1) await handle.runUntilSettled("stderr 64");
  expect((await stage.memory()).peak - before.now).toBeLessThan(60);
  await handle.close();
  const exit = (await witness.state("closed"))["exit"] ?? {};
  expect(JSON.stringify(exit).length).toBeLessThan(64 * 1024);
});
