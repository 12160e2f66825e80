import { existsSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import type { Registry } from "../../../server/session/registry.ts";
import { type Core, startCore } from "../../helpers/core.ts";
import { startTokenStage } from "../../helpers/token-stage.ts";

const message = `${JSON.stringify({ type: "message", id: "a", parentId: null, message: { role: "user", content: "Hi." } })}\n`;

/** As the handler of session/create calls it. */
function create(core: Core, params: Omit<Parameters<Registry["create"]>[0], "cwd">, isRepeated = false) {
  const caller = { mayReadAny: true, signal: new AbortController().signal, isRepeated };
  return core.registry.create({ cwd: core.cwd, ...params }, params.sessionId, () => {}, caller);
}

const conflictOf = (sessionId: string) => ({ kind: "conflict", data: { sessionId } });

test("a session has the id that its client chose, in pi's header and in the name of its file", async () => {
  await using core = await startCore();
  const session = await create(core, { sessionId: "My.own-id_1" });
  expect(session.sessionId).toBe("My.own-id_1");
  expect(session.file).toMatch(/_My\.own-id_1\.jsonl$/);
  expect(JSON.parse(readFileSync(session.file, "utf8").split("\n")[0] ?? "")).toMatchObject({ id: "My.own-id_1" });
});

test("an id is a conflict if a live, closed or stored session has it, and only one of many calls at once makes it", async () => {
  await using core = await startCore();
  const session = await create(core, { sessionId: "one" });
  await expect(create(core, { sessionId: "one" })).rejects.toMatchObject(conflictOf("one"));
  // The earlier attempt of the same keyed call made it.
  expect(await create(core, { sessionId: "one" }, true)).toBe(session);

  writeFileSync(session.file, message, { flag: "a" });
  await core.registry.close("one");
  await expect(create(core, { sessionId: "one" })).rejects.toMatchObject(conflictOf("one"));

  // pi's own, which the daemon has never had; also in a directory that the call names.
  const header = (id: string): string =>
    `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd: core.cwd })}\n`;
  writeFileSync(join(dirname(session.file), "0_two.jsonl"), header("two"));
  await expect(create(core, { sessionId: "two" })).rejects.toMatchObject(conflictOf("two"));
  const sessionDir = join(core.root, "chosen");
  mkdirSync(sessionDir);
  writeFileSync(join(sessionDir, "0_three.jsonl"), header("three"));
  await expect(create(core, { sessionId: "three", sessionDir })).rejects.toMatchObject(conflictOf("three"));

  const made = await Promise.allSettled(Array.from({ length: 8 }, () => create(core, { sessionId: "many" })));
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  for (const one of made) if (one.status === "rejected") expect(one.reason).toMatchObject(conflictOf("many"));
  // A session without a message leaves nothing, so its id is free.
  await core.registry.close("many");
  expect((await create(core, { sessionId: "many" })).sessionId).toBe("many");
});

test("a session's file is the chosen one, in a directory that only the user can read, and belongs to the session after a restart", async () => {
  await using core = await startCore();
  const file = join(core.root, "new", "deep", "mine.jsonl");
  const session = await create(core, { file });
  expect(session.file).toBe(file);
  for (const directory of [dirname(file), dirname(dirname(file))]) expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await core.restart();
  expect((await core.registry.get(session.sessionId).awake()).state.kind).toBe("ready");
  expect(core.registry.get(session.sessionId).file).toBe(file);
});

test("a chosen file that exists is a conflict and stays as it is, also as a link, and a file of another session is its own", async () => {
  await using core = await startCore();
  const at = (name: string): string => join(core.root, name);
  writeFileSync(at("there.jsonl"), "text");
  symlinkSync(at("nowhere"), at("dangling.jsonl"));
  symlinkSync(at("there.jsonl"), at("link.jsonl"));
  for (const name of ["there", "dangling", "link"])
    await expect(create(core, { file: at(`${name}.jsonl`) })).rejects.toMatchObject({ kind: "conflict" });
  expect(readFileSync(at("there.jsonl"), "utf8")).toBe("text");
  expect(existsSync(at("nowhere"))).toBe(false);

  const made = await Promise.allSettled(Array.from({ length: 8 }, () => create(core, { file: at("many.jsonl") })));
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  for (const one of made) if (one.status === "rejected") expect(one.reason).toMatchObject({ kind: "conflict" });

  await expect(create(core, { file: at("e.jsonl"), ephemeral: true })).rejects.toMatchObject({
    kind: "invalid_params",
  });
  await expect(create(core, { file: at("there.jsonl/x/e.jsonl") })).rejects.toMatchObject({ kind: "path_invalid" });
  // A start that fails leaves neither the file nor its directories.
  core.behave("exit-at-start");
  await expect(create(core, { file: at("failed/deep/f.jsonl") })).rejects.toThrow();
  expect(existsSync(at("failed"))).toBe(false);
});

test("a chosen file is under the roots, also through a link", async () => {
  const roots: string[] = [];
  await using core = await startCore({ roots: () => [...roots] });
  symlinkSync("/tmp", join(core.cwd, "link"));
  roots.push(core.cwd);
  await core.restart();
  for (const file of [join(core.root, "a.jsonl"), join(core.cwd, "link", "a.jsonl"), join(core.cwd, "..", "a.jsonl")]) {
    const refused = create(core, { file });
    await expect(refused).rejects.toMatchObject({ kind: "path_invalid", data: { reason: "outside" } });
  }
  expect((await create(core, { file: join(core.cwd, "new", "a.jsonl") })).state.kind).toBe("idle");
});

test("a session directory that is missing is created for the user alone, as pi does", async () => {
  await using core = await startCore();
  const sessionDir = join(core.root, "sessions", "mine");
  const session = await create(core, { sessionDir });
  expect(dirname(session.file)).toBe(sessionDir);
  expect(statSync(sessionDir).mode & 0o777).toBe(0o700);
});

test("a file outside pi's session directories is opened for an admin on the Unix socket alone, with all other checks", async () => {
  const roots: string[] = [];
  await using core = await startCore({ roots: () => [...roots] });
  const { files } = core.registry;
  const any = { mayOpenAny: true };
  const at = (name: string): string => join(core.root, name);
  const header = (id: string): string =>
    `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd: core.cwd })}\n`;
  writeFileSync(at("mine.jsonl"), header("mine") + message);
  const outside = { kind: "session_file_unusable", data: { reason: "outside" } };
  await expect(files.open({ file: at("mine.jsonl") })).rejects.toMatchObject(outside);

  writeFileSync(at("text.txt"), header("text"));
  writeFileSync(at("bad.jsonl"), "text");
  symlinkSync(at("text.txt"), at("link.jsonl"));
  writeFileSync(at("linked.jsonl"), header("linked"));
  linkSync(at("linked.jsonl"), at("other.jsonl"));
  mkdirSync(at("folder.jsonl"));
  for (const [file, reason] of [
    ["mine.jsonl", "not_absolute"],
    [at("text.txt"), "not_a_session"],
    [at("link.jsonl"), "not_a_session"],
    [at("bad.jsonl"), "header_damaged"],
    [at("other.jsonl"), "hard_link"],
    [at("folder.jsonl"), "not_a_file"],
    [at("nothing.jsonl"), "missing"],
  ] as const) {
    const refused = files.open({ file }, any);
    await expect(refused, file).rejects.toMatchObject({ kind: "session_file_unusable", data: { reason } });
  }

  const session = await files.open({ file: at("mine.jsonl") }, any);
  expect(session).toMatchObject({ sessionId: "mine", file: at("mine.jsonl") });
  // It is not deleted either.
  await expect(files.delete("mine")).rejects.toMatchObject(outside);
  await core.registry.close("mine");

  roots.push(core.cwd);
  await core.restart();
  await expect(core.registry.files.open({ file: at("mine.jsonl") }, any)).rejects.toMatchObject(outside);
});

test("over the wire, a chosen file needs admin, a file outside pi's directories also the Unix socket, and a key belongs to the chosen id", async () => {
  await using stage = await startTokenStage();
  const cwd = stage.directory("cwd");
  const { socketPath } = stage.daemon.file;
  const named = await stage.token({ name: "ci", capabilities: ["observe", "prompt"] });
  await using admin = await connect({ socketPath, token: stage.main });
  await using client = await connect({ socketPath, token: named });
  const file = join(stage.directory("outside"), "mine.jsonl");
  const header = { type: "session", version: 3, id: "mine", timestamp: new Date(0).toISOString(), cwd };
  writeFileSync(file, `${JSON.stringify(header)}\n${message}`);

  const outside = { reason: "outside" };
  const anywhere = { file, anywhere: true };
  expect(await stage.call(stage.main, "session/open", { file })).toMatchObject(outside);
  expect(await stage.call(stage.main, "session/open", anywhere)).toMatchObject({
    name: "forbidden",
    param: "anywhere",
  });
  await expect(client.call("session/open", anywhere)).rejects.toMatchObject({ data: { needs: "admin" } });
  await expect(admin.call("session/open", { file })).rejects.toMatchObject({ data: outside });
  expect(await admin.call("session/open", anywhere)).toMatchObject({ sessionId: "mine", file });

  const chosen = join(stage.root, "new", "a.jsonl");
  await expect(client.call("session/create", { cwd, file: chosen })).rejects.toMatchObject({
    data: { needs: "admin" },
  });
  expect(await stage.call(stage.main, "session/create", { cwd, file: chosen })).toMatchObject({ file: chosen });

  const keyed = { cwd, sessionId: "keyed", idempotencyKey: "k" };
  expect(await client.call("session/create", keyed)).toMatchObject({ sessionId: "keyed" });
  expect(await client.call("session/create", keyed)).toMatchObject({ sessionId: "keyed" });
  const taken = client.call("session/create", { ...keyed, idempotencyKey: "other" });
  await expect(taken).rejects.toMatchObject(conflictOf("keyed"));
});
