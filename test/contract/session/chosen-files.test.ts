import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import type { Registry } from "../../../server/session/registry.ts";
import { type Core, startCore } from "../../helpers/core.ts";
import { startTokenStage } from "../../helpers/token-stage.ts";

const message = `${JSON.stringify({ type: "message", id: "a", parentId: null, message: { role: "user", content: "Hi." } })}\n`;

/** As the handler of session/create calls it. */
function create(core: Core, params: Partial<Parameters<Registry["create"]>[0]>, isRepeated = false) {
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

test("a fork has all entries of a file, in a directory of its own, while another session writes to that file", async () => {
  await using core = await startCore();
  const source = await create(core, {});
  const entry = (id: string, parentId: string | null, more: object = {}): string =>
    `${JSON.stringify({ type: "message", id, parentId, message: { role: "user", content: "Hi." }, ...more })}\n`;
  const entries = [
    entry("a", null),
    entry("b", "a"),
    entry("c", "a"),
    entry("d", "c", { text: "x".repeat(3_000_000) }),
  ];
  const more = `not JSON\n\n1\n${readFileSync(source.file, "utf8")}`;
  // The session is about to write the end of its last entry.
  const torn = entry("e", "d").slice(0, -3);
  writeFileSync(source.file, more + entries.join("") + torn, { flag: "a" });
  const before = readFileSync(source.file, "utf8");

  const cwd = join(core.root, "other");
  mkdirSync(cwd);
  const session = await create(core, { cwd, sessionId: "fork", forkFrom: source.file });
  const [first = "", ...rest] = readFileSync(session.file, "utf8").split(/(?<=\n)/);
  const header = {
    type: "session",
    version: 3,
    id: "fork",
    timestamp: expect.any(String),
    cwd,
    parentSession: source.file,
  };
  expect([JSON.parse(first), Object.keys(JSON.parse(first) as object)]).toEqual([header, Object.keys(header)]);
  expect(rest).toEqual(entries);
  expect(statSync(session.file).mode & 0o777).toBe(0o600);
  expect(dirname(session.file)).not.toBe(dirname(source.file));
  expect(readFileSync(source.file, "utf8")).toBe(before);
  expect(source.state.kind).toBe("idle");

  await core.restart();
  expect((await core.registry.get("fork").awake()).state.kind).toBe("ready");
  await core.registry.close("fork");
  expect(existsSync(session.file)).toBe(true);

  // It lacks its line feed alone. The path in the header is the one that was named.
  writeFileSync(source.file, "}}", { flag: "a" });
  const link = join(core.root, "link");
  symlinkSync(source.file, link);
  const again = await create(core, { forkFrom: link, file: join(core.root, "chosen.jsonl") });
  expect(readFileSync(again.file, "utf8").split("\n").slice(1)).toHaveLength(6);
  expect(JSON.parse(readFileSync(again.file, "utf8").split("\n")[0] ?? "")).toMatchObject({ parentSession: link });
});

test("of forks and new sessions at one path, one has the file, and it stays", async () => {
  await using core = await startCore();
  const { file: forkFrom } = await create(core, {});
  const note = `${JSON.stringify({ type: "label", id: "a", x: "x".repeat(2_000_000) })}\n`;
  writeFileSync(forkFrom, note, { flag: "a" });
  for (const [name, others] of [
    ["forks", [{ forkFrom }, { forkFrom }]],
    ["mixed", [{}, {}]],
  ] as const) {
    const file = join(core.root, `${name}.jsonl`);
    const made = await Promise.allSettled([{ forkFrom }, ...others].map((each) => create(core, { file, ...each })));
    const sessions = made.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    expect(sessions).toHaveLength(1);
    for (const one of made) if (one.status === "rejected") expect(one.reason).toMatchObject({ kind: "conflict" });
    const [header = ""] = readFileSync(file, "utf8").split("\n");
    expect(JSON.parse(header)).toMatchObject({ id: sessions[0]?.sessionId });
    expect([statSync(file).nlink, existsSync(`${file}.unfinished`)]).toEqual([1, false]);
  }
});

test("a file that pi could not load is not forked, and a fork that fails leaves nothing", async () => {
  const roots: string[] = [];
  await using core = await startCore({ roots: () => [...roots] });
  const at = (name: string): string => join(core.root, name);
  const header = JSON.stringify({ type: "session", version: 3, id: "old", timestamp: "", cwd: core.cwd });
  const write = (name: string, ...lines: readonly string[]): void => writeFileSync(at(name), `${lines.join("\n")}\n`);
  write("good", header, message.trim());
  write("note", '{"type":"note"}');
  write("cycle", header, '{"type":"label","id":"a","parentId":"b"}', '{"type":"label","id":"b","parentId":"a"}');
  write("twice", header, '{"type":"label","id":"a"}', '{"type":"label","id":"a"}');
  write("deep", header, `{"type":"label","id":"a","x":${"[".repeat(600)}${"]".repeat(600)}}`);
  write("newer", header.replace(":3,", ":4,"));
  writeFileSync(at("empty"), "");
  mkdirSync(at("folder"));
  const large = openSync(at("large"), "w");
  writeSync(large, `${header}\n{"type":"label","id":"a","x":"`);
  ftruncateSync(large, 65 * 1024 * 1024);
  closeSync(large);
  execFileSync("mkfifo", [at("pipe")]);
  const sessionDir = at("sessions");
  const fork = (forkFrom: string, more: object = {}) => create(core, { forkFrom, sessionDir, ...more });
  for (const [name, reason] of [
    ["missing", "missing"],
    ["note", "header_damaged"],
    ["empty", "header_damaged"],
    ["newer", "version_unknown"],
    ["folder", "not_a_file"],
    ["pipe", "not_a_file"],
    ["cycle", "entries_damaged"],
    ["twice", "entries_damaged"],
    ["deep", "entries_damaged"],
    ["large", "entries_damaged"],
  ] as const) {
    const refused = fork(at(name));
    await expect(refused, name).rejects.toMatchObject({ kind: "session_file_unusable", data: { reason } });
    expect(existsSync(sessionDir), name).toBe(false);
  }
  const findings = [{ path: "/forkFrom", message: expect.stringContaining("cannot be given with") }];
  for (const more of [{ ephemeral: true }, { context: { document: { messages: [] } } }])
    await expect(fork(at("good"), more)).rejects.toMatchObject({ kind: "invalid_params", data: { findings } });
  core.behave("exit-at-start");
  await expect(fork(at("good"))).rejects.toMatchObject({ kind: "start_failed" });
  expect(existsSync(sessionDir)).toBe(false);
  expect(existsSync(at("good"))).toBe(true);

  roots.push(core.cwd);
  await core.restart();
  symlinkSync(at("good"), join(core.cwd, "link.jsonl"));
  for (const file of [at("good"), join(core.cwd, "link.jsonl"), join(core.cwd, "..", "good")])
    await expect(create(core, { forkFrom: file })).rejects.toMatchObject({ data: { reason: "outside" } });
});

test("over the wire, a chosen file needs admin, a fork and a file outside pi's directories also the Unix socket, and a key belongs to the chosen id", async () => {
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

  const forked = { cwd, forkFrom: file };
  await expect(client.call("session/create", forked)).rejects.toMatchObject({ data: { needs: "admin" } });
  expect(await stage.call(stage.main, "session/create", forked)).toMatchObject({
    name: "forbidden",
    param: "forkFrom",
  });
  expect(await admin.call("session/create", forked)).toMatchObject({ cwd });

  const keyed = { cwd, sessionId: "keyed", idempotencyKey: "k" };
  expect(await client.call("session/create", keyed)).toMatchObject({ sessionId: "keyed" });
  expect(await client.call("session/create", keyed)).toMatchObject({ sessionId: "keyed" });
  const taken = client.call("session/create", { ...keyed, idempotencyKey: "other" });
  await expect(taken).rejects.toMatchObject(conflictOf("keyed"));
});
