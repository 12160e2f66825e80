import { expect, test } from "vitest";
import { startTokenStage } from "../../helpers/token-stage.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

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

test("the log over the wire has the lines that were written, goes on from any place, and refuses what is no place", async () => {
  await using stage = await startTokenStage();
  const written = () => stage.logged.map((line) => JSON.parse(line) as { readonly msg: string });
  const call = async (params: object): Promise<Unchecked> => await stage.call(stage.main, "daemon/log", params);
  const first = await call({ limit: 500 });
  expect(first.lines.map(({ message }: Unchecked) => message)).toEqual(written().map(({ msg }) => msg));
  expect(first.lines.at(-1)).toMatchObject({
    message: "listening",
    level: "info",
    fields: { stateDir: stage.stateDir },
  });

  await stage.call(stage.main, "session/create", { cwd: "/no-such-directory" });
  const { lines, cursor } = await call({ after: first.cursor });
  expect(lines.map(({ fields }: Unchecked) => fields?.outcome)).toContain("cwd_invalid");
  expect((await call({ after: cursor })).lines).toEqual([]);
  expect((await call({ after: first.cursor, before: lines[0].seq + 1 })).lines).toEqual([lines[0]]);
  const wanted = { after: first.cursor, limit: 1, level: "info" };
  const query = new URLSearchParams({ ...wanted, after: String(wanted.after), limit: "1" });
  expect((await stage.http(stage.main, "GET", `/v1/log?${query}`)).body).toEqual(await call(wanted));

  for (const after of [-1, 1.5, 2 ** 53, 1e300, "1", "", null, true, [], { toString: 1 }])
    expect([after, (await call({ after })).name]).toEqual([after, "invalid_params"]);
  for (const params of [{ limit: 0 }, { limit: 501 }, { level: "all" }, { level: "__proto__" }, { before: -1 }])
    expect([params, (await call(params)).name]).toEqual([params, "invalid_params"]);
  expect((await call({ after: Number.MAX_SAFE_INTEGER })).missed).toEqual({ reason: "other_daemon" });
});
