import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import type { SessionInfo } from "../../../../protocol/session.ts";
import { errorName, Scene } from "../scene.ts";

test("stored sessions are listed and opened, sessions are forked, and deleted only when asked twice", async () => {
  await using scene = await Scene.open();
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  expect((await scene.run(["prompt", sessionId, "hello"])).code).toBe(0);
  const { messages } = await scene.json<{ messages: { entryId: string; text: string }[] }>(["fork", "last", "--list"]);
  expect(messages.map(({ text }) => text)).toEqual(["hello"]);
  const forked = await scene.json<{ session: SessionInfo; text: string }>([
    "fork",
    sessionId,
    "--at",
    messages[0]?.entryId ?? "",
  ]);
  expect(forked).toMatchObject({ text: "hello", session: { state: "idle" } });
  const cloned = await scene.run(["fork", sessionId]);
  expect([cloned.code, cloned.stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}\n$/)]);
  const copy = cloned.stdout.trim();

  const unsure = await scene.run(["rm", copy, "--json"]);
  expect([unsure.code, errorName(unsure.stderr)]).toEqual([2, "usage"]);
  const { sessions } = await scene.json<{ sessions: SessionInfo[] }>(["ls"]);
  const file = sessions.find((session) => session.sessionId === copy)?.file ?? "";
  expect(existsSync(file)).toBe(true);
  expect((await scene.run(["rm", copy, "--yes"])).stdout).toBe(`${copy} is deleted.\n`);
  expect(existsSync(file)).toBe(false);

  // Another daemon does not know it yet.
  expect((await scene.run(["stop"])).code).toBe(0);
  const other = ["--state-dir", `${scene.stateDir}-other`];
  const table = await scene.run(["open", "--cwd", scene.cwd, ...other]);
  expect(table.stdout).toMatch(
    new RegExp(`^SESSION +AGE +NAME OR FIRST MESSAGE +DIRECTORY\\n(.*\\n)*${sessionId.slice(-8)} .* hello `),
  );
  const opened = await scene.json<SessionInfo>(["open", sessionId, ...other]);
  expect(opened).toMatchObject({ sessionId, state: "idle" });
  expect(errorName((await scene.run(["open", "nobody", "--json", ...other])).stderr)).toBe("session_not_found");
  expect((await scene.run(["stop", ...other])).code).toBe(0);
});
