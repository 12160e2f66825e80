import { pino } from "pino";
import { afterEach, expect, test, vi } from "vitest";
import { startDaemon } from "../../server/daemon.ts";

afterEach(() => void vi.restoreAllMocks());

test("on Windows no daemon starts, so that no command line is built there", async () => {
  vi.spyOn(process, "platform", "get").mockReturnValue("win32");
  const started = startDaemon({ stateDir: "/nowhere/at/all", env: {}, log: pino({ level: "silent" }) });
  await expect(started).rejects.toMatchObject({ name: "StartError", kind: "platform_unsupported" });
});
