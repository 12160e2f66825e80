import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { startFakeStage } from "./fake-stage.ts";

test("without free descriptors new work is refused by name, existing sessions continue, and it recovers when some are free", async () => {
  await using stage = await startFakeStage({ prefix: ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"] });
  const first = await stage.session();
  const sessions: SessionHandle[] = [];
  for (let round = 0; round < 3; round += 1) {
    let refusal: unknown;
    for (let i = 0; refusal === undefined && i < 40; i += 1) {
      const cwd = join(stage.root, `r${round}-${i}`);
      mkdirSync(cwd);
      await stage.client.createSession({ cwd }).then(
        (session) => sessions.push(session),
        (error: unknown) => {
          refusal = error;
        },
      );
    }
    expect(refusal).toMatchObject({ data: { name: "overloaded", code: "EMFILE", retryAfterMs: 5_000 } });
    await first.handle.runUntilSettled("hello");
    expect((await stage.client.info()).store).toMatchObject({ state: "open" });
    for (const session of sessions.splice(0)) await session.close();
  }
  expect((await first.handle.get()).generation).toBe(1);
});
