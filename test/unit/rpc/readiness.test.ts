import { expect, test } from "vitest";
import type { StoreInfo } from "../../../protocol/daemon.ts";
import { readiness } from "../../../server/rpc/handlers/daemon.ts";

const open = { state: "open", unwritten: 0, bytes: 0, damaged: [] } as const satisfies StoreInfo;

test("a daemon is ready if its store accepts writes and its pi exists", async () => {
  const found = { pi: { path: process.execPath }, store: () => open, lostLogLines: () => 2 };
  expect(await readiness(found)).toMatchObject({ ready: true, store: "open", pi: "found", lostLogLines: 2 });
});

test("a daemon that is not ready reports every reason", async () => {
  const store = (): StoreInfo => ({ ...open, state: "failing", since: 1, why: "ENOSPC" });
  const failed = readiness({ pi: { path: "/nowhere/pi" }, store, lostLogLines: () => 0 });
  await expect(failed).rejects.toMatchObject({
    kind: "not_ready",
    httpStatus: 503,
    data: {
      reasons: ["The store cannot be written: ENOSPC.", "/nowhere/pi no longer exists."],
      checks: { store: "failing", pi: "missing" },
    },
  });
});
