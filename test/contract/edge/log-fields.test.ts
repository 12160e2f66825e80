import { expect, test } from "vitest";
import { startTokenStage } from "../../helpers/token-stage.ts";

interface LogRecord {
  readonly msg?: string;
  readonly method?: string;
  readonly sessionId?: string;
  readonly generation?: number;
  readonly connectionId?: string;
  readonly tokenName?: string;
}

test("a log line about a session, its pi, a connection or a call has the id of each", async () => {
  await using stage = await startTokenStage();
  const records = () => stage.logged.map((line) => JSON.parse(line) as LogRecord);
  const token = await stage.token({ name: "ci", capabilities: ["observe", "prompt"] });
  const [first, second] = [await stage.webSocket(token), await stage.webSocket(stage.main)];
  const { result } = await first.call("session/create", { cwd: stage.directory("cwd") });
  const { sessionId } = result as { readonly sessionId: string };
  await second.call("session/rename", { sessionId, name: "named" });
  await stage.call(stage.main, "session/close", { sessionId });
  await Promise.all([first, second].map(async (each) => await each[Symbol.asyncDispose]()));
  await expect.poll(() => records().filter(({ msg }) => msg === "a connection has ended")).toHaveLength(2);

  const opened = records().filter(({ msg }) => msg === "a connection was opened");
  expect(opened.map(({ tokenName }) => tokenName)).toEqual(["ci", "main"]);
  const [ofFirst, ofSecond] = opened.map(({ connectionId }) => connectionId);
  const calls = records().filter(({ msg }) => msg === "call");
  const call = (name: string) => calls.find(({ method }) => method === name);
  expect(call("session/create")).toMatchObject({ connectionId: ofFirst, sessionId });
  expect(call("session/rename")).toMatchObject({ connectionId: ofSecond, sessionId });
  expect(call("session/close")).not.toHaveProperty("connectionId");
  const ended = records().filter(({ msg }) => msg === "a connection has ended");
  expect(new Set(ended.map(({ connectionId }) => connectionId))).toEqual(new Set([ofFirst, ofSecond]));
});
