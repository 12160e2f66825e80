import { expect, test } from "vitest";
import { ls } from "../../../cli/ls.ts";
import { FakeDaemon } from "../client/fake-daemon.ts";
import { sessionInfo } from "../client/fixtures.ts";
import { memoryOutput } from "./memory-output.ts";

test("with ids only, one is printed per line, whatever the sessions' names", async () => {
  await using daemon = await FakeDaemon.start();
  const labels = { sessionId: "$(reboot)" };
  daemon.answer("session/list", () => ({
    sessions: [
      sessionInfo({ sessionId: "0199-aa", name: "a\nb", labels }),
      sessionInfo({ sessionId: "0199-bb", labels }),
    ],
  }));
  const { output, stdout } = memoryOutput();
  const { signal } = new AbortController();
  const options = { "state-dir": daemon.stateDir, "no-start": true, ids: true };
  expect(await ls({ options, arguments: [], output, env: {}, signal })).toBe(0);
  expect(stdout()).toBe("0199-aa\n0199-bb\n");
});
