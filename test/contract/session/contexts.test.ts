import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import type { ContextDocument } from "../../../context/document/document.ts";
import { normalise } from "../../../context/document/normalise.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import type { ContextOption } from "../../../protocol/context-option.ts";
import { WireError } from "../../../protocol/errors.ts";
import { sumOf } from "../../../server/custody/created-files.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";
import { fencesOf, read } from "../docs/documents.ts";

/** The files below a directory, except leases. */
function filesIn(directory: string): string[] {
  const found = readdirSync(directory, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile() && !entry.name.includes(".lease")).map(({ name }) => name);
}

const caller = { mayReadAny: true, signal: new AbortController().signal };
const nobody = () => {};

const items = [
  { role: "user", content: "What is 2+2?", timestamp: 1, nodeId: "a" },
  { role: "assistant", content: "It is 4.", timestamp: 2, nodeId: "b" },
];
const document = { format: "pi-rpcd/context", version: 1, items };

const tree = { format: "pi-rpcd/context", version: 1 };
const orphan = { ...tree, items: [...items, { role: "toolResult", toolCallId: "none", content: "x", timestamp: 3 }] };

function create(core: Core, context: ContextOption, more: object = {}, id?: string) {
  return core.registry.create({ cwd: core.cwd, context, ...more }, id, nobody, caller);
}

function lines(file: string): Record<string, unknown>[] {
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** All files that belong to a session. */
function leftovers(core: Core): string[] {
  const names = readdirSync(core.root, { recursive: true, withFileTypes: true });
  return names
    .filter((entry) => entry.isFile() && /\.(?:jsonl|context\.json|repairs\.json|unfinished|tmp)$/.test(entry.name))
    .map((entry) => entry.name);
}

test("a session with a context starts with a file that has a header, the root entry, and the messages in order", async () => {
  await using core = await startCore();
  const session = await create(core, { document });
  const [header, root, user, assistant, ...rest] = lines(session.file);
  expect(rest).toEqual([]);
  expect(header).toMatchObject({ type: "session", version: 3, id: session.sessionId, cwd: core.cwd });
  expect(root).toMatchObject({ type: "custom", customType: "pi-rpcd.context", parentId: null });
  expect(user).toMatchObject({ parentId: root?.["id"], message: { role: "user" } });
  expect(assistant).toMatchObject({
    parentId: user?.["id"],
    message: { role: "assistant", provider: "fake", model: "model" },
  });
  expect(statSync(session.file).mode & 0o777).toBe(0o600);
  const summary = session.stored.context?.summary;
  expect(summary).toMatchObject({ mode: "session", messages: 2, pairs: 0, dropped: { messages: 0, tokens: 0 } });
  // The model is the target's, whatever model the last answer in the file names.
  expect(session.stored.options.model).toBe("fake/model");
  expect(await core.registry.contexts.inspect({ sessionId: session.sessionId }, caller)).toMatchObject({
    mode: "session",
    hash: summary?.hash,
    counts: { nodes: 2, items: 2 },
  });
  // Closing keeps a file that has messages.
  const { file, sessionId } = session;
  await core.registry.close(sessionId);
  expect(existsSync(file)).toBe(true);
});

test("a process list never shows a part of a document, however the document reaches pi", async () => {
  await using core = await startCore();
  for (const ephemeral of [false, true]) {
    const { state } = await create(core, { document }, { ephemeral });
    if (state.kind !== "idle") throw new Error(state.kind);
    const { pid } = state.child;
    const shown = ["cmdline", "environ"].map((name) => readFileSync(`/proc/${pid}/${name}`, "utf8")).join();
    expect(shown).toContain("--mode\0rpc");
    for (const text of ["What is 2+2?", "It is 4."]) {
      expect(shown).not.toContain(text);
      expect(shown).not.toContain(Buffer.from(text).toString("base64").slice(0, 8));
    }
  }
});

test("a repeated call with the same id returns the existing session with its context", async () => {
  await using core = await startCore();
  const id = "0190aaaa-0000-7000-8000-000000000001";
  const [first, second] = await Promise.all([create(core, { document }, {}, id), create(core, { document }, {}, id)]);
  expect(second).toBe(first);
  expect(await create(core, { document }, {}, id)).toBe(first);
  await core.restart();
  expect((await create(core, { document }, {}, id)).stored.context?.summary.messages).toBe(2);
});

test("a creation that fails leaves nothing, though its file has messages", async () => {
  await using core = await startCore();
  // The model is known since the first session, so the start of the session's own pi is what fails.
  await core.registry.close((await create(core, { document })).sessionId);
  const before = leftovers(core);
  core.behave("exit-at-start");
  await expect(create(core, { document })).rejects.toMatchObject({ kind: "start_failed" });
  expect(leftovers(core)).toEqual(before);
  expect(readdirSync(join(core.root, "creating"))).toEqual([]);
});

test("the file of a closed session stays, also if the note of its creation is still there", async () => {
  await using core = await startCore();
  const { sessionId, file } = await create(core, { document });
  await core.registry.close(sessionId);
  const note = { file, content: sumOf(readFileSync(file)) };
  writeFileSync(join(core.root, "creating", sessionId), JSON.stringify(note));
  await core.restart();
  expect(readdirSync(join(core.root, "creating"))).toEqual([]);
  expect(existsSync(file)).toBe(true);
});

test("the helper of an ephemeral session has the context before the session exists, and its file is deleted when the session closes", async () => {
  await using core = await startCore();
  const session = await create(core, { document }, { ephemeral: true });
  expect(session.info()).toMatchObject({ ephemeral: "living", state: "idle" });
  expect(session.stored.context?.summary).toMatchObject({ mode: "ephemeral", messages: 2 });
  const kept = join(core.root, "contexts", `${session.sessionId}.context.json`);
  expect(statSync(kept).mode & 0o777).toBe(0o600);
  expect(filesIn(join(core.root, "run"))).toEqual([]);
  const heard = recorder();
  session.subscribe(heard, { after: 0 });
  await heard.until(({ params }) => params.event?.type === "context_came");
  await core.registry.close(session.sessionId);
  expect(existsSync(kept)).toBe(false);
});

test("after a pi dies, the next one has the context, and session/updated reports the loss", async () => {
  await using core = await startCore();
  const session = await create(core, { document }, { ephemeral: true });
  const heard = recorder();
  session.subscribe(heard);
  const { state } = session;
  if (state.kind !== "idle") throw new Error(state.kind);
  process.kill(state.child.pid, "SIGKILL");
  await heard.until(({ params }) => params.session?.state === "crashed");
  expect(session.info()).toMatchObject({ ephemeral: "living" });
  await session.prompting.prompt({ text: "hi", ifRunning: "refuse" });
  const at = (fits: (params: Record<string, unknown>) => boolean): number =>
    heard.heard.findIndex(({ params }) => fits(params));
  const came = at(({ event }) => (event as { type?: string } | undefined)?.type === "context_came");
  const restored = at((params) => params["restored"] === true);
  expect(came).toBeGreaterThan(0);
  expect(restored).toBeGreaterThan(came);
  expect(session.info()).toMatchObject({ generation: 2, ephemeral: "living" });
});

test("the next daemon continues with an ephemeral session's context, and deletes contexts that belong to no session", async () => {
  await using core = await startCore();
  const { sessionId } = await create(core, { document }, { ephemeral: true });
  writeFileSync(join(core.root, "contexts", "gone.context.json"), "{}");
  writeFileSync(join(core.root, "contexts", "gone.context.json.x.tmp"), "{}");
  await core.restart();
  expect(readdirSync(join(core.root, "contexts"))).toEqual([`${sessionId}.context.json`]);
  const session = core.registry.get(sessionId);
  await session.awake();
  expect(session.info()).toMatchObject({ state: "idle", generation: 2 });
});

test("a stored context that was changed is refused by its hash, and the session is closed", async () => {
  await using core = await startCore();
  const session = await create(core, { document }, { ephemeral: true });
  const kept = join(core.root, "contexts", `${session.sessionId}.context.json`);
  await session.supervisor.hibernate(true);
  writeFileSync(kept, readFileSync(kept, "utf8").replace("It is 4.", "It is 5."));
  await expect(session.awake()).rejects.toMatchObject({
    kind: "context_transport_failed",
    data: { reason: "hash_mismatch" },
  });
  await expect.poll(() => core.registry.find(session.sessionId)).toBeUndefined();
  await expect.poll(() => leftovers(core)).toEqual([]);
});

test.each([
  ["mute-on-context", "timeout", /did not confirm the context within 0.2 s; the session was closed/],
  ["silent-helper", "refused", /rejected the context/],
  ["other-context", "hash_mismatch", /another context/],
])("a helper that is %s fails the creation by name, and leaves nothing", async (behaviour, reason, message) => {
  await using core = await startCore({ contexts: { ackTimeoutMs: 200 } });
  await core.registry.close((await create(core, { document })).sessionId);
  const before = leftovers(core);
  core.behave(behaviour);
  const failed = create(core, { document }, { ephemeral: true });
  await expect(failed).rejects.toMatchObject({ kind: "context_transport_failed", httpStatus: 502, data: { reason } });
  await expect(failed).rejects.toThrow(message);
  expect(core.registry.all()).toEqual([]);
  expect(leftovers(core)).toEqual(before);
});

test("a large context reaches the helper in a file, which is deleted when the session exists", async () => {
  await using core = await startCore();
  const long = { ...document, items: [{ ...items[0], content: "x ".repeat(400_000) }, items[1]] };
  const session = await create(core, { document: long, maxTokens: null }, { ephemeral: true });
  expect(session.stored.context?.summary.messages).toBe(2);
  expect(filesIn(join(core.root, "run"))).toEqual([]);
});

test("with onError warn the session starts without the context, and reports the reason", async () => {
  await using core = await startCore();
  const session = await create(core, { document, mode: "ephemeral", onError: "warn" });
  expect(session.stored.context).toBeUndefined();
  expect(session.context.error).toMatchObject({ data: { name: "context_mode_conflict" } });
  const heard = recorder();
  session.subscribe(heard, { after: 0 });
  const { params } = await heard.until(({ method }) => method === "context/failed");
  expect(params.error).toEqual(session.context.error);
  core.behave("other-context");
  const ephemeral = await create(core, { document, onError: "warn" }, { ephemeral: true });
  expect(ephemeral.context.error).toMatchObject({ data: { name: "context_transport_failed" } });
  expect(leftovers(core).filter((name) => name.includes(".context."))).toEqual([]);
});

test("a context that kills pi fails the creation, or with onError warn the session starts without it", async () => {
  await using core = await startCore();
  core.behave("die-on-context");
  const before = leftovers(core);
  await expect(create(core, { document }, { ephemeral: true })).rejects.toMatchObject({ kind: "child_exited" });
  expect(leftovers(core)).toEqual(before);
  const session = await create(core, { document, onError: "warn" }, { ephemeral: true });
  expect(session.info()).toMatchObject({ state: "idle" });
  expect(session.context.error).toMatchObject({ data: { name: "child_exited" } });
  expect(session.stored.context).toBeUndefined();
  expect(leftovers(core)).toEqual(before);
});

test("no process has a part of a context in its arguments", async () => {
  await using core = await startCore();
  const secret = `xyzzy-${process.pid}-`;
  const said = {
    ...document,
    items: [
      { role: "system", content: `${secret}a` },
      { role: "user", content: `${secret}b` },
    ],
  };
  const path = join(core.root, "said.json");
  writeFileSync(path, JSON.stringify(said));
  for (const [ephemeral, source] of [true, false].flatMap((is) => [
    [is, { document: said }] as const,
    [is, { path }] as const,
  ])) {
    const session = await create(core, { ...source, until: "through" }, { ephemeral });
    expect(session.info().state).toBe("idle");
  }
  const processes = execFileSync("ps", ["-A", "-ww", "-o", "args="], { encoding: "utf8" });
  expect(processes.split("\n").filter((line) => line.includes("fake-pi")).length).toBeGreaterThanOrEqual(4);
  expect(processes).not.toContain(secret);
});

test("the report on a session's context is correct without a context, and with a truncated repair record", async () => {
  await using core = await startCore();
  const { contexts } = core.registry;
  const inspect = (params: Parameters<typeof contexts.inspect>[0]) => contexts.inspect(params, caller);
  const { sessionId } = await create(core, { document: orphan });
  expect((await inspect({ sessionId })).repairs).toMatchObject([{ code: "orphan_result" }]);
  writeFileSync(join(core.root, "contexts", `${sessionId}.repairs.json`), '[{"code":"orph');
  expect(await inspect({ sessionId })).toMatchObject({ repairs: [], counts: { repairs: { orphan_result: 1 } } });
  for (const more of [{ items: true }, { model: "fake/model" }]) {
    await expect(inspect({ sessionId, ...more })).rejects.toMatchObject({ kind: "invalid_params" });
  }
  const bare = await create(core, { document, mode: "ephemeral", onError: "warn" });
  await expect(inspect({ sessionId: bare.sessionId })).rejects.toThrow(
    'The session started without its context: Mode "ephemeral" needs a session created with ephemeral: true.',
  );
  const other = await core.registry.create({ cwd: core.cwd }, undefined, nobody, caller);
  await expect(inspect({ sessionId: other.sessionId })).rejects.toThrow(/created without one, or derives from another/);
});

test("a missing file, or one that is not a session's, is reported as not retryable", async () => {
  await using core = await startCore();
  const { contexts } = core.registry;
  const path = join(core.root, "no.jsonl");
  const refused = { kind: "context_transport_failed", data: { retryable: false } };
  await expect(contexts.inspect({ context: { path } }, caller)).rejects.toMatchObject(refused);
  writeFileSync(path, "{}\n");
  await expect(contexts.export({ path }, caller)).rejects.toMatchObject(refused);
});

test.each<[string, ContextOption, object, string, number, RegExp]>([
  ["no source", {}, {}, "invalid_params", 400, /exactly one of document, path and fromSession; it has 0/],
  ["two sources", { document, path: "/x" }, {}, "invalid_params", 400, /it has 2/],
  [
    "ephemeral with a file",
    { document, mode: "ephemeral" },
    {},
    "context_mode_conflict",
    409,
    /^Mode "ephemeral" needs a session created with ephemeral: true\.$/,
  ],
  [
    "session without a file",
    { document, mode: "session" },
    { ephemeral: true },
    "context_mode_conflict",
    409,
    /^Mode "session" needs/,
  ],
  [
    "a document that is too long",
    { document: { ...document, x: "y".repeat(3_000) } },
    {},
    "context_too_large",
    413,
    /^The document has 3 \d\d\d bytes; the limit is 2 000 \(context\.maxDocumentBytes\)\.$/,
  ],
  ["an unknown session", { fromSession: { sessionId: "none" } }, {}, "session_not_found", 404, /no session "none"/],
  [
    "a file that is not there",
    { path: "/nowhere/at/all" },
    {},
    "context_transport_failed",
    502,
    /cannot be read \(ENOENT\)/,
  ],
  ["a directory", { path: "/tmp" }, {}, "forbidden", 403, /^Reading contexts from this path is not allowed\.$/],
  [
    "a wrong role",
    { document: { ...document, items: [{ role: "assitant", content: "x" }] } },
    {},
    "invalid_params",
    400,
    /^context\.document\.items\[0\]\.role: expected system, user, assistant, .*; got "assitant"$/,
  ],
  [
    "a parent that is not there",
    { document: { ...tree, nodes: [{ id: "n9", parentId: "n8", role: "user", content: "x" }] }, nodeId: "n9" },
    {},
    "context_invalid",
    422,
    /^Node "n9" has parent "n8", which is not in the document\.$/,
  ],
  [
    "what needs more tokens than it may have",
    { document, maxTokens: 1, onOverflow: "error" },
    {},
    "context_over_budget",
    422,
    /^The context needs about \d+ tokens; the budget is 1\. Use onOverflow "trim" or raise maxTokens\.$/,
  ],
  ["a document that may not be repaired", { document: orphan, repair: false }, {}, "context_invalid", 422, /./],
])("%s is refused by name", async (_case, context, more, kind, httpStatus, message) => {
  await using core = await startCore({ contexts: { limits: { ...defaultContextLimits, maxDocumentBytes: 2_000 } } });
  const failed = await create(core, context, more).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(failed instanceof WireError)) throw failed ?? new Error("It was not refused.");
  expect([failed.kind, failed.httpStatus]).toEqual([kind, httpStatus]);
  expect(failed.message).toMatch(message);
  expect(JSON.stringify(failed.data)).not.toContain("/nowhere");
  expect(core.registry.all()).toEqual([]);
  expect(leftovers(core)).toEqual([]);
});

test("a pi without a model cannot have a context built for it", async () => {
  await using core = await startCore();
  core.behave("no-model");
  await expect(create(core, { document })).rejects.toMatchObject({ kind: "model_not_found" });
});

test("an entry that a session does not have is refused by name", async () => {
  await using core = await startCore();
  const { sessionId } = await create(core, { document });
  const leafId = "a1b2c3d4";
  const message = 'Entry "a1b2c3d4" is not in this session.';
  const expected = { kind: "entry_not_found", httpStatus: 404, message };
  await expect(create(core, { fromSession: { sessionId, leafId } })).rejects.toMatchObject(expected);
  await expect(core.registry.contexts.export({ sessionId, leafId }, caller)).rejects.toMatchObject(expected);
});

test("an inspection for a model returns the items, and only the user can read an exported file", async () => {
  await using core = await startCore();
  const { contexts } = core.registry;
  const inspected = await contexts.inspect({ context: { document }, items: true }, caller);
  expect(inspected.items).toMatchObject([{ role: "user" }, { role: "assistant" }]);
  const { sessionId } = await create(core, { document });
  const [first, second] = [
    await contexts.export({ sessionId, output: "file" }, caller),
    await contexts.export({ sessionId, output: "file" }, caller),
  ];
  // The same session gives the same document.
  expect(second.sha256).toBe(first.sha256);
  expect(statSync(first.path ?? "").mode & 0o777).toBe(0o600);
  await expect(contexts.export({ sessionId, path: "/x" }, caller)).rejects.toMatchObject({ kind: "invalid_params" });
  await expect(contexts.inspect({}, caller)).rejects.toMatchObject({ kind: "invalid_params" });
  const { sessionId: without } = await core.registry.create({ cwd: core.cwd });
  await expect(contexts.inspect({ sessionId: without }, caller)).rejects.toMatchObject({ kind: "context_invalid" });
  await core.restart();
  expect(existsSync(first.path ?? "")).toBe(false);
});

test.each([false, true])(
  "an export returns the document from which the session (ephemeral: %s) was created",
  async (ephemeral) => {
    await using core = await startCore();
    const source = { kind: "tree", id: "run-17" };
    const call = { id: "a b", name: "x.y", arguments: { n: 1 } };
    const own = { api: "fake-messages", provider: "fake", id: "model" };
    const native = { type: "compaction", tokensBefore: 5, details: { files: [] } };
    const given = {
      ...document,
      source,
      items: [
        { role: "system", content: "Answer in rhymes.", timestamp: 1, nodeId: "s" },
        { role: "event", eventType: "pi.compaction", content: "What was.", meta: { native, mine: 1 }, timestamp: 2 },
        { ...items[0], meta: { mine: [2] } },
        { role: "assistant", toolCalls: [call], usage: { input: 5 }, timestamp: 3, nodeId: "c" },
        {
          role: "toolResult",
          toolCallId: "a b",
          content: "4",
          details: { code: 0 },
          usage: { output: 1 },
          timestamp: 4,
        },
        { ...items[1], model: own, timestamp: 5 },
        { role: "event", eventType: "ci.done", content: "green", meta: { run: 7 }, timestamp: 6 },
      ],
    };
    const expected = normalise(given, { ...own, takesImages: false }, { includeSystem: true });
    expect(expected.items).toHaveLength(7);
    const { contexts } = core.registry;
    const { sessionId } = await create(core, { document: given }, { ephemeral });
    const made = (await contexts.export({ sessionId, includeSystem: true }, caller)).document as ContextDocument;
    expect(made).toMatchObject({ format: expected.format, version: expected.version, items: expected.items });
    expect(made.source).toMatchObject({ kind: "pi-session", id: sessionId, origin: source });
    // The origin is kept when the session goes through another session.
    const other = await create(core, { document: made }, { ephemeral });
    const again = (await contexts.export({ sessionId: other.sessionId, includeSystem: true }, caller)).document;
    expect(again).toMatchObject({ source: { id: other.sessionId, origin: source }, items: expected.items });
  },
);

test("a large document is processed in a thread that ends afterwards, not on the event loop", async () => {
  await using core = await startCore();
  const long = Array.from({ length: 40 }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${i} ${"word ".repeat(4_000)}`,
    timestamp: i,
  }));
  const session = await create(core, { document: { ...document, items: long }, maxTokens: null });
  expect(session.stored.context?.summary.messages).toBe(40);
  expect(lines(session.file)).toHaveLength(42);
  // Little of it may be left.
  const last = { ...document, items: [{ role: "user", content: "Hi.", timestamp: 1, meta: { long } }] };
  const { items: few, hash } = await core.registry.contexts.inspect(
    { context: { document: last }, items: true },
    caller,
  );
  expect([few?.length, hash]).toEqual([1, expect.stringMatching(/^[0-9a-f]{64}$/)]);
  const short = {
    ...tree,
    leafId: "n1",
    nodes: long.map((node, i) => ({ ...node, id: `n${i}`, parentId: i === 0 ? null : "n0" })),
  };
  const cut = {
    document: { ...short, nodes: [{ ...short.nodes[0], content: "Hi." }, ...short.nodes.slice(1)] },
    nodeId: "n0",
  };
  const facts = await core.registry.contexts.inspect({ context: { ...cut, until: "through" }, items: true }, caller);
  expect(facts.items).toMatchObject([{ role: "user", content: [{ type: "text", text: "Hi." }] }]);
  const refused = create(core, { document: { ...document, items: [...long, { role: "nobody" }] } });
  await expect(refused).rejects.toMatchObject({ kind: "invalid_params", data: { retryable: false } });
  const aborted = new AbortController();
  const context = { document: { ...document, items: long } };
  const given = core.registry.create({ cwd: core.cwd, context }, undefined, nobody, {
    ...caller,
    signal: aborted.signal,
  });
  aborted.abort(new Error("Nobody waits."));
  await expect(given).rejects.toThrow("Nobody waits.");
});

test("the example of docs/context.md creates a session with the described context", async () => {
  await using core = await startCore();
  const block = fencesOf(read("docs/context.md")).find(({ text }) => text.includes("pi-rpcd/context"));
  const { params } = JSON.parse(block?.text ?? "") as { params: { context: ContextOption } };
  const session = await create(core, params.context);
  const [, root, ...messages] = lines(session.file) as { type: string; data?: object; message?: { role: string } }[];
  expect(messages.map(({ type, message }) => message?.role ?? type)).toEqual([
    ...["user", "assistant", "toolResult", "assistant", "custom_message"],
  ]);
  expect(root?.data).toMatchObject({ instructions: "You review patches." });
  expect(session.stored.context?.summary).toMatchObject({ nodes: 6, items: 6, messages: 5, pairs: 1, repairs: {} });
});

test("a lost prompt is reported as lost, though the context has the same text with a future time", async () => {
  await using core = await startCore();
  core.behave("die-after-response");
  const later = Date.now() + 1_000_000_000;
  const said = ["Go on.", "Go on, please."].map((content, i) => ({ role: "user", content, timestamp: later + i }));
  const session = await create(core, { document: { ...document, items: [...items, ...said] } });
  const heard = recorder();
  session.subscribe(heard);
  await session.prompting.prompt({ text: "Go on.", ifRunning: "refuse" }).catch(() => {});
  const { params } = await heard.until((notification) => notification.params.lostPrompts !== undefined);
  expect(params.lostPrompts).toMatchObject([{ text: "Go on." }]);
});

test("the file of a session with a context is in the session's directory, or the creation fails and leaves nothing", async () => {
  await using core = await startCore();
  const sessionDir = join(core.root, "chosen");
  mkdirSync(sessionDir);
  const session = await create(core, { document }, { sessionDir, name: "a past" });
  expect(dirname(session.file)).toBe(sessionDir);
  expect(lines(session.file)).toHaveLength(4);
  await core.registry.close(session.sessionId);
  const before = leftovers(core);
  // Another file is already at the path.
  const id = "0190aaaa-0000-7000-8000-000000000002";
  const taken = Date.now();
  vi.setSystemTime(taken);
  try {
    const name = `${new Date(taken).toISOString().replace(/[:.]/g, "-")}_${id}.jsonl.unfinished`;
    mkdirSync(join(sessionDir, name));
    const failed = create(core, { document }, { sessionDir }, id);
    await expect(failed).rejects.toMatchObject({ kind: "start_failed" });
  } finally {
    vi.useRealTimers();
  }
  expect(leftovers(core)).toEqual(before);
  expect(core.registry.all()).toEqual([]);
});
