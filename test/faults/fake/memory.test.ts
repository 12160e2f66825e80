import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fakePi, startFakeStage } from "./fake-stage.ts";

test("a child that runs out of memory ends without affecting others, and the reason is reported", async () => {
  const directory = mkdtempSync(join(tmpdir(), "small-pi-"));
  try {
    const small = join(directory, "pi");
    writeFileSync(small, `#!/bin/sh\nexec ${process.execPath} --max-old-space-size=32 ${fakePi} "$@"\n`);
    chmodSync(small, 0o755);
    await using stage = await startFakeStage({ pi: small });
    const greedy = await stage.session();
    const modest = await stage.session();
    for (let round = 1; round <= 3; round += 1) {
      const { cursor } = await greedy.handle.get();
      await greedy.handle.prompt("allocate everything");
      const session = await greedy.witness.state("crashed", cursor);
      expect(session).toMatchObject({ generation: round, exit: { expected: false } });
      expect(JSON.stringify(session["exit"])).toContain("heap out of memory");
      await modest.handle.runUntilSettled("hello");
    }
    expect((await modest.handle.get()).generation).toBe(1);
    await greedy.handle.runUntilSettled("hello again");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
