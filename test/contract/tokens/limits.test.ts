import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type MethodName, methods } from "../../../protocol/methods.ts";
import { goodParams } from "../../faults/hostile/schemas.ts";
import { startTokenStage, type TokenStage } from "../../helpers/token-stage.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const capabilities = ["observe", "prompt"] as const;
const unknownId = "01920000-0000-7000-8000-00000000dead";

interface Two {
  /** A token that can access only the first session. */
  readonly token: string;
  readonly inside: string;
  readonly outside: string;
}

/** A session within the limits of a token and one outside, by labels or by directories. */
async function two(stage: TokenStage, by: "labels" | "cwds"): Promise<Two> {
  const [one, other] = [stage.directory(`${by}/one`), stage.directory(`${by}/other`)];
  const limit = by === "labels" ? { labels: { team: "a" } } : { cwds: [one] };
  const token = await stage.token({ name: by, capabilities: [...capabilities], ...limit });
  const { sessionId: outside } = await stage.call(stage.main, "session/create", { cwd: other, labels: { team: "b" } });
  const { sessionId: inside } = await stage.call(token, "session/create", { cwd: one });
  return { token, inside, outside };
}

/** Replaces ids, so that answers for an existing and an unknown id can be compared. */
function masked(answer: object, ...ids: readonly string[]): unknown {
  return JSON.parse(ids.reduce((text, id) => text.replaceAll(id, "ID"), JSON.stringify(answer)));
}

test.each(["labels", "cwds"] as const)(
  "for a token limited by %s, a search is about the sessions within",
  async (by) => {
    await using stage = await startTokenStage();
    const { token, inside, outside } = await two(stage, by);
    for (const sessionId of [inside, outside]) {
      const { file } = await stage.call(stage.main, "session/get", { sessionId });
      const header = { type: "session", version: 3, id: sessionId, timestamp: "", cwd: "/" };
      const message = { role: "user", content: "A needle.", timestamp: 1 };
      const entry = { type: "message", id: "a", parentId: null, timestamp: "", message };
      writeFileSync(file, `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`);
    }
    const params = { query: "NEEDLE" };
    const own = await stage.call(token, "transcript/search", params);
    expect(own).toMatchObject({ hits: [{ sessionId: inside, entryId: "a" }], sessions: 1, sessionsLeft: 0 });
    expect(await stage.call(token, "transcript/search", { ...params, sessionId: inside })).toEqual(own);
    const foreign = await stage.call(token, "transcript/search", { ...params, sessionId: outside });
    const unknown = await stage.call(token, "transcript/search", { ...params, sessionId: unknownId });
    expect(masked(foreign, outside)).toEqual(masked(unknown, unknownId));
    expect(foreign).toMatchObject({ name: "session_not_found" });
    expect((await stage.call(stage.main, "transcript/search", params)).hits).toHaveLength(2);
  },
);

test.each(["labels", "cwds"] as const)(
  "for a token limited by %s, every method treats a session outside the limits as missing",
  async (by) => {
    await using stage = await startTokenStage();
    const { token, inside, outside } = await two(stage, by);
    const push = { customType: "t", content: "x", triggerTurn: false, deliverAs: "nextTurn" };
    const { deliveryId } = await stage.call(stage.main, "delivery/push", { sessionId: outside, ...push });
    const { promptId } = await stage.call(stage.main, "session/prompt", {
      sessionId: outside,
      text: "hi",
      wait: "settled",
    });
    for (const [method, params] of [
      ["session/get", { sessionId: outside }],
      ["session/events", { sessionId: outside }],
      ["session/prompt", { sessionId: outside, text: "x" }],
      ["session/open", { sessionId: outside }],
      ["session/fork", { sessionId: outside, entryId: "e" }],
      ["session/delete", { sessionId: outside, confirm: true }],
      ["session/close", { sessionId: outside }],
      ["session/getMessages", { sessionId: outside }],
      ["session/command", { sessionId: outside, command: { type: "get_state" } }],
      ["session/waitForIdle", { sessionId: outside }],
      ["delivery/push", { sessionId: outside, ...push }],
      ["delivery/list", { sessionId: outside }],
      ["delivery/list", { after: deliveryId }],
      ["delivery/get", { deliveryId }],
      ["delivery/wait", { deliveryId }],
      ["delivery/cancel", { deliveryId }],
      ["dialog/list", { sessionId: outside }],
      ["prompt/get", { promptId }],
      ["prompt/wait", { promptId }],
      ["prompt/list", { sessionId: outside }],
    ] as const) {
      const ids = [outside, deliveryId, promptId];
      const nobodys = JSON.parse(ids.reduce((text, id) => text.replaceAll(id, unknownId), JSON.stringify(params)));
      const [said, ofNothing] = [await stage.call(token, method, params), await stage.call(token, method, nobodys)];
      expect([method, masked(said, ...ids)]).toEqual([method, masked(ofNothing, unknownId)]);
      expect([method, said]).toEqual([
        method,
        method === "delivery/list" && "sessionId" in params
          ? { deliveries: [] }
          : expect.objectContaining({ name: expect.stringMatching(/_not_found$/) }),
      ]);
    }
    expect((await stage.call(stage.main, "session/get", { sessionId: outside })).state).toBe("idle");
    expect((await stage.call(token, "session/get", { sessionId: inside })).sessionId).toBe(inside);
  },
);

test("every method gives the same answer for something outside a token's limits and for something that does not exist, on every transport", async () => {
  await using stage = await startTokenStage();
  const { token, outside } = await two(stage, "cwds");
  const push = { customType: "t", content: "x", triggerTurn: false, deliverAs: "nextTurn" };
  const { deliveryId } = await stage.call(stage.main, "delivery/push", { sessionId: outside, ...push });
  const { promptId } = await stage.call(stage.main, "session/prompt", { sessionId: outside, text: "hi" });
  const subjects = { sessionId: outside, deliveryId, promptId };
  await using webSocket = await stage.webSocket(token);
  const said: unknown[] = [];
  const expected: unknown[] = [];
  for (const [name, { params }] of Object.entries(methods)) {
    const method = name as MethodName;
    for (const [param, id] of Object.entries(subjects)) {
      if (!Object.hasOwn((params as { properties?: object }).properties ?? {}, param)) continue;
      // With different optional params, because they change what a method checks first.
      for (const sample of fc.sample(goodParams(method), { seed: 1, numRuns: 3 })) {
        const given = (subject: string) => ({ ...sample, [param]: subject });
        for (const [transport, call] of [
          ["http", (subject: string) => stage.call(token, method, given(subject))],
          ["WebSocket", async (subject: string) => (await webSocket.call(method, given(subject))).error ?? {}],
        ] as const) {
          said.push([transport, method, param, masked(await call(id), id)]);
          expected.push([transport, method, param, masked(await call(unknownId), unknownId)]);
        }
      }
    }
  }
  expect(said.length).toBeGreaterThan(200);
  expect(said).toEqual(expected);
});

test("lists and counts contain nothing outside a token's limits, and their pages continue", async () => {
  await using stage = await startTokenStage();
  const { token, inside, outside } = await two(stage, "labels");
  const push = { customType: "t", content: "x", triggerTurn: false, deliverAs: "nextTurn" };
  const pushed: string[] = [];
  for (const sessionId of [inside, outside, inside, outside, outside, inside]) {
    const { deliveryId } = await stage.call(stage.main, "delivery/push", { sessionId, ...push });
    if (sessionId === inside) pushed.unshift(deliveryId);
  }
  const { sessions } = await stage.call(token, "session/list");
  expect(sessions.map(({ sessionId }: { sessionId: string }) => sessionId)).toEqual([inside]);
  expect((await stage.call(stage.main, "session/list")).sessions).toHaveLength(2);
  const listed: string[] = [];
  let after: string | undefined;
  do {
    const page = await stage.call(token, "delivery/list", { limit: 2, ...(after === undefined ? {} : { after }) });
    listed.push(...page.deliveries.map(({ deliveryId }: { deliveryId: string }) => deliveryId));
    after = page.next;
  } while (after !== undefined);
  expect(listed).toEqual(pushed);
  expect((await stage.call(token, "daemon/info")).sessions).toEqual({ idle: 1 });
  expect(await stage.call(token, "daemon/info")).not.toHaveProperty("keyVariables");
  expect(await stage.call(stage.main, "daemon/info")).toHaveProperty("keyVariables");
  expect((await stage.call(stage.main, "daemon/info")).sessions).toEqual({ idle: 2 });
});

test("subscribers to the list are notified only of sessions within their token's limits, also when these are closed", async () => {
  await using stage = await startTokenStage();
  const { token, inside, outside } = await two(stage, "labels");
  await using webSocket = await stage.webSocket(token);
  await webSocket.call("daemon/subscribe");
  await stage.call(stage.main, "session/close", { sessionId: outside });
  await stage.call(stage.main, "session/close", { sessionId: inside });
  for (;;) {
    const { method, params } = await webSocket.next();
    expect([method, params.sessionId]).toEqual(["daemon/sessionChanged", inside]);
    if (params.change === "closed") break;
  }
});

test("a session is created with its token's labels and in its token's directories, and nowhere else", async () => {
  await using stage = await startTokenStage();
  const [here, there] = [stage.directory("here"), stage.directory("there")];
  symlinkSync(there, join(here, "out"));
  symlinkSync(here, join(there, "in"));
  mkdirSync(join(here, "below"));
  const both = { labels: { team: "a" }, cwds: [join(there, "in")] };
  const token = await stage.token({ name: "ci", capabilities: [...capabilities], ...both });
  const create = (cwd: string, labels?: object) =>
    stage.call(token, "session/create", { cwd, ...(labels && { labels }) });
  const refused = (limit: string) => ({ name: "forbidden", limit });
  // Links are resolved in the token and in the call.
  expect(await create(join(here, "out"))).toMatchObject(refused("cwd"));
  expect(await create(there)).toMatchObject(refused("cwd"));
  expect(await create(join(there, "none"))).toMatchObject(refused("cwd"));
  expect(await create(`${here}-not`)).toMatchObject(refused("cwd"));
  expect(await create(join(here, "none"))).toMatchObject({ name: "cwd_invalid" });
  expect(await create(here, { team: "b" })).toMatchObject(refused("labels"));
  expect(await create(join(there, "in", "below"), { kind: "x" })).toMatchObject({
    cwd: join(here, "below"),
    labels: { team: "a", kind: "x" },
  });
  expect((await stage.call(stage.main, "session/list")).sessions).toHaveLength(1);
});

test("a token limited to directories cannot make pi read prompt templates of other directories, by any name", async () => {
  await using stage = await startTokenStage();
  const [here, there] = [stage.directory("here"), stage.directory("there")];
  const token = await stage.token({ name: "ci", capabilities: [...capabilities], cwds: [here] });
  for (const directory of [here, there]) writeFileSync(join(directory, "review.md"), "Review it.");
  symlinkSync(join(there, "review.md"), join(here, "link.md"));
  const create = (by: string, ...promptTemplates: string[]) =>
    stage.call(by, "session/create", { cwd: here, promptTemplates });
  for (const file of [
    join(there, "review.md"),
    join(there, "none.md"),
    there,
    join(here, "link.md"),
    `${here}/../there/review.md`,
    `${here}-not/review.md`,
  ]) {
    const outcome = await create(token, join(here, "review.md"), file);
    expect([file, outcome]).toEqual([file, expect.objectContaining({ name: "forbidden", limit: "cwd" })]);
  }
  expect(await create(token, join(here, "none.md"))).toMatchObject({ name: "path_invalid" });
  expect(await create(token, join(here, "review.md"))).toMatchObject({ cwd: here });
  expect(await create(stage.main, join(there, "review.md"))).toMatchObject({ cwd: here });
});

test("an idempotency key belongs to its token: other tokens do not get its result, and can use the same key", async () => {
  await using stage = await startTokenStage();
  const cwd = stage.directory("cwd");
  const params = { cwd, idempotencyKey: "same" };
  const first = await stage.call(stage.main, "session/create", params);
  const token = await stage.token({ name: "ci", capabilities: [...capabilities], labels: { team: "a" } });
  const own = await stage.call(token, "session/create", params);
  expect(own.sessionId).not.toBe(first.sessionId);
  expect(own.labels).toEqual({ team: "a" });
  expect((await stage.call(token, "session/create", params)).sessionId).toBe(own.sessionId);
  await stage.call(stage.main, "token/revoke", { name: "ci" });
  const again = await stage.token({ name: "ci", capabilities: [...capabilities], labels: { team: "c" } });
  expect((await stage.call(again, "session/create", params)).sessionId).not.toBe(own.sessionId);
});

test("stored sessions of other directories are neither listed nor opened, nor named in a page's cursor", async () => {
  await using stage = await startTokenStage();
  const [here, there] = [stage.directory("here"), stage.directory("there")];
  const stored = (name: string, cwd: string): string => {
    const directory = stage.directory(`agent/sessions/${name}`);
    const file = join(directory, `2026-01-01T00-00-00-000Z_${name}.jsonl`);
    const header = { type: "session", version: 3, id: name, timestamp: "2026-01-01T00:00:00.000Z", cwd };
    writeFileSync(file, `${JSON.stringify(header)}\n`);
    return file;
  };
  const [own, foreign] = [stored("own", here), stored("foreign", there)];
  symlinkSync(there, join(here, "out"));
  stored("linked", join(here, "out"));
  const limited = { capabilities: [...capabilities], cwds: [here] };
  const token = await stage.token({ name: "ci", ...limited });
  const byLabel = await stage.token({ name: "labelled", capabilities: [...capabilities], labels: { team: "a" } });
  const files = (page: { stored: { sessions: { file: string }[] } }) => page.stored.sessions.map(({ file }) => file);
  expect(files(await stage.call(stage.main, "session/list", { stored: true }))).toHaveLength(3);
  expect(files(await stage.call(token, "session/list", { stored: true }))).toEqual([own]);
  expect(files(await stage.call(byLabel, "session/list", { stored: true }))).toEqual([]);
  const found: string[] = [];
  let storedAfter: string | undefined;
  do {
    const page = await stage.call(token, "session/list", {
      stored: true,
      storedLimit: 1,
      ...(storedAfter === undefined ? {} : { storedAfter }),
    });
    found.push(...files(page));
    storedAfter = page.stored.next;
    expect(Buffer.from(storedAfter ?? "", "base64url").toString("latin1")).not.toContain("sessions");
  } while (storedAfter !== undefined);
  expect(found).toEqual([own]);
  expect(await stage.call(token, "session/open", { file: foreign })).toMatchObject({
    name: "session_file_unusable",
    reason: "missing",
  });
  expect(await stage.call(token, "session/open", { sessionId: "foreign" })).toMatchObject({
    name: "session_not_found",
  });
  expect(await stage.call(token, "session/open", { sessionId: "own" })).toMatchObject({ sessionId: "own", cwd: here });
  expect(await stage.call(byLabel, "session/open", { sessionId: "own" })).toMatchObject({ name: "session_not_found" });
});

test("a limited token does not get the metrics and the log of all sessions", async () => {
  await using stage = await startTokenStage();
  const here = stage.directory("here");
  const labelled = await stage.token({ name: "l", capabilities: ["observe"], labels: { team: "a" } });
  const within = await stage.token({ name: "c", capabilities: ["observe"], cwds: [here] });
  const all = await stage.token({ name: "all", capabilities: ["observe"] });
  expect(await stage.call(labelled, "daemon/metrics")).toMatchObject({ name: "forbidden", limit: "labels" });
  expect(await stage.http(within, "GET", "/metrics")).toMatchObject({ status: 403, body: { limit: "cwd" } });
  expect((await stage.http(all, "GET", "/metrics")).text).toContain("pi_rpcd_sessions");
  expect(await stage.call(labelled, "daemon/log")).toMatchObject({ name: "forbidden", limit: "labels" });
  expect(await stage.http(within, "GET", "/v1/log")).toMatchObject({ status: 403, body: { limit: "cwd" } });
  expect((await stage.http(all, "GET", "/v1/log")).text).toContain("listening");
  const prompting = await stage.token({ name: "p", capabilities: ["prompt"] });
  expect(await stage.call(prompting, "daemon/log")).toMatchObject({ name: "forbidden", needs: "observe" });
});

test("one token cannot keep others from reading session files, or from searching them", async () => {
  await using stage = await startTokenStage();
  const { sessionId, file } = await stage.call(stage.main, "session/create", { cwd: stage.root });
  await stage.call(stage.main, "session/hibernate", { sessionId, force: true });
  writeFileSync(file, `${JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp: "", cwd: "/" })}\n`);
  // Each call reads as much of it as it may.
  truncateSync(file, 400 * 1024 * 1024);
  const token = await stage.token({ name: "reader", capabilities: ["observe"] });
  const reading = ["transcript/page", "transcript/outline"];
  const batch = Array.from({ length: 72 }, (_, id) => ({
    ...{ jsonrpc: "2.0", id },
    ...(id < 12 ? { method: "transcript/search", params: { sessionId, query: "x" } } : {}),
    ...(id < 12 ? {} : { method: reading[id % 2], params: { sessionId } }),
  }));
  const { body } = await stage.http(token, "POST", "/v1/rpc", batch);
  const refusedIn = (from: number, to: number) => {
    const refused = (body as Unchecked[]).filter(({ id, error }) => id >= from && id < to && error !== undefined);
    return [...new Set(refused.map(({ error }) => error.message))];
  };
  expect(refusedIn(0, 12)).toEqual(['8 searches that run or wait is the limit of the token "reader".']);
  expect(refusedIn(12, 72)).toEqual(['32 calls that read session files is the limit of the token "reader".']);
  expect(await stage.call(token, "transcript/page", { sessionId })).toMatchObject({ entries: [] });
});
