import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { http } from "../../helpers/edge.ts";
import { startTokenStage, type TokenStage } from "../../helpers/token-stage.ts";

const secret = "The word that nobody may read is xyzzy.";
const items = [
  { role: "user", content: secret, timestamp: 1 },
  { role: "assistant", content: "I know it.", timestamp: 2 },
];
const document = { format: "pi-rpcd/context", version: 1, items };
const refused = {
  name: "forbidden",
  message: "Reading contexts from this path is not allowed.",
  retryable: false,
};

/** Files inside and outside the roots, and links between them. */
function materialsIn(root: string) {
  const [inside, outside] = [join(root, "inside"), join(root, "outside")];
  for (const directory of [inside, outside]) mkdirSync(directory, { recursive: true });
  const paths = { inside: join(inside, "a.json"), outside: join(outside, "b.json"), link: join(inside, "link.json") };
  for (const path of [paths.inside, paths.outside]) writeFileSync(path, JSON.stringify(document));
  symlinkSync(paths.outside, paths.link);
  symlinkSync(outside, join(inside, "directory"));
  return { ...paths, throughLink: join(inside, "directory", "b.json"), missing: join(inside, "missing.json") };
}

async function stageWithRoots(config: (root: string) => object): Promise<TokenStage> {
  return await startTokenStage({ configured: config });
}

/** The same call over the Unix socket. */
async function locally(stage: TokenStage, token: string, method: string, params: object) {
  const where = { port: 0, socketPath: stage.daemon.file.socketPath };
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await http(where, { transport: "unix", method: "POST", path: "/v1/rpc", headers, body });
  const { result, error } = answer.body;
  return error === undefined ? result : { ...error.data, message: error.message };
}

test("a path is read only below the read roots, and any path with admin over the Unix socket", async () => {
  await using stage = await stageWithRoots((root) => ({ context: { readRoots: [join(root, "inside")] } }));
  const files = materialsIn(stage.root);
  const inspect = { method: "context/inspect", of: (path: string) => ({ context: { path } }) };
  const token = await stage.token({ name: "some", capabilities: ["observe", "prompt"] });
  for (const who of [stage.main, token]) {
    const over = async (path: string) => await stage.call(who, inspect.method, inspect.of(path));
    expect(await over(files.inside)).toMatchObject({ mode: "session", counts: { items: 2 } });
    for (const path of [
      files.outside,
      files.link,
      files.throughLink,
      files.missing,
      "/etc",
      "/dev/zero",
      "/proc/self/environ",
    ])
      expect(await over(path)).toEqual(refused);
    const made = { cwd: stage.directory("cwd"), context: { path: files.outside } };
    expect(await stage.call(who, "session/create", made)).toEqual(refused);
  }
  // Over the Unix socket the token decides.
  expect(await locally(stage, token, inspect.method, inspect.of(files.outside))).toEqual(refused);
  for (const path of [files.outside, files.link, files.throughLink]) {
    expect(await locally(stage, stage.main, inspect.method, inspect.of(path))).toMatchObject({ mode: "session" });
  }
  expect(await locally(stage, stage.main, inspect.method, inspect.of("/dev/zero"))).toEqual(refused);
  const missing = await locally(stage, stage.main, inspect.method, inspect.of(files.missing));
  expect(missing).toMatchObject({ name: "context_transport_failed", reason: "ENOENT" });
  expect(JSON.stringify(missing)).not.toContain("missing.json");
});

test("read roots must lie below the roots if those are set", async () => {
  await using stage = await stageWithRoots((root) => ({
    roots: [join(root, "cwds")],
    context: { readRoots: [join(root, "inside")] },
  }));
  const files = materialsIn(stage.root);
  expect(await stage.call(stage.main, "context/inspect", { context: { path: files.inside } })).toEqual(refused);
});

test("a token limited to some sessions reads no others: neither by their ids nor by their files", async () => {
  await using stage = await stageWithRoots((root) => ({ context: { readRoots: [root] } }));
  const [one, other] = [stage.directory("one"), stage.directory("other")];
  const capabilities = ["observe", "prompt"] as const;
  const token = await stage.token({ name: "one", capabilities: [...capabilities], cwds: [one] });
  const team = await stage.token({ name: "team", capabilities: [...capabilities], labels: { team: "a" } });
  const theirs = await stage.call(stage.main, "session/create", { cwd: other, context: { document } });
  const absent = { name: "session_not_found", sessionId: theirs.sessionId };
  const fromSession = { sessionId: theirs.sessionId };
  for (const limited of [token, team]) {
    const create = { cwd: one, context: { fromSession } };
    expect(await stage.call(limited, "session/create", create)).toMatchObject(absent);
    expect(await stage.call(limited, "context/inspect", { context: { fromSession } })).toMatchObject(absent);
    expect(await stage.call(limited, "context/inspect", fromSession)).toMatchObject(absent);
    expect(await stage.call(limited, "context/export", fromSession)).toMatchObject(absent);
    expect(await stage.call(limited, "context/export", { path: theirs.file })).toEqual(refused);
    expect(await stage.call(limited, "context/inspect", { context: { path: theirs.file } })).toEqual(refused);
  }
  // A token that may read nothing cannot read through a session's past either.
  const blind = await stage.token({ name: "blind", capabilities: ["prompt"] });
  for (const source of [{ fromSession }, { path: theirs.file }]) {
    const created = await stage.call(blind, "session/create", { cwd: one, context: source });
    expect(created).toMatchObject({ name: "forbidden", needs: "observe" });
  }
  const own = await stage.call(token, "session/create", { cwd: one, context: { document } });
  for (const source of [{ sessionId: own.sessionId }, { path: own.file }]) {
    expect(await stage.call(token, "context/export", source)).toMatchObject({ diagnostics: { nodes: 2 } });
  }
  // A token for all sessions may read pi's session files without any root.
  expect(await stage.call(stage.main, "context/export", { path: theirs.file })).toMatchObject({
    document: { source: { kind: "pi-session", id: theirs.sessionId } },
  });
});

test("session files outside the roots are neither read nor opened", async () => {
  await using stage = await stageWithRoots((root) => ({ roots: [join(root, "in")], context: { readRoots: [] } }));
  const inside = stage.directory("in");
  const { file } = await stage.call(stage.main, "session/create", { cwd: inside, context: { document } });
  const [header = "", ...lines] = readFileSync(file, "utf8").split("\n");
  const id = "0190aaaa-0000-7000-8000-00000000000f";
  const other = join(dirname(file), `2026-01-01T00-00-00-000Z_${id}.jsonl`);
  const moved = { ...JSON.parse(header), id, cwd: stage.directory("out") };
  writeFileSync(other, [JSON.stringify(moved), ...lines].join("\n"));
  const token = await stage.token({ name: "observer", capabilities: ["observe"] });
  for (const who of [token, stage.main]) {
    expect(await stage.call(who, "context/export", { path: file })).toMatchObject({ diagnostics: { nodes: 2 } });
    expect(await stage.call(who, "context/export", { path: other })).toEqual(refused);
  }
  const whole = await locally(stage, stage.main, "context/export", { path: other });
  expect(whole).toMatchObject({ diagnostics: { nodes: 2 } });
});

test("the text of a document is never logged", async () => {
  await using stage = await stageWithRoots(() => ({}));
  const cwd = stage.directory("cwd");
  const create = async (context: object, more: object = {}) =>
    await stage.call(stage.main, "session/create", { cwd, context, ...more });
  const { sessionId } = await create({ document });
  await stage.call(stage.main, "context/export", { sessionId });
  await create({ document }, { ephemeral: true });
  await create({ document: { ...document, items: [{ role: secret, content: secret }] } });
  await create({ document: { ...document, version: secret } });
  await create({ document: secret, onError: "warn" });
  await create({ document: { ...document, items: [{ role: "assistant", toolCalls: secret }] }, onError: "warn" });
  const broken = join(stage.root, "broken.json");
  writeFileSync(broken, `${JSON.stringify(document).slice(0, -9)}${secret}`);
  const unread = await locally(stage, stage.main, "context/inspect", { context: { path: broken } });
  expect(unread).toMatchObject({ name: "invalid_params" });
  expect(JSON.stringify(unread)).not.toContain("xyzzy");
  expect(stage.logged.length).toBeGreaterThan(5);
  expect(stage.logged.filter((line) => line.includes("xyzzy"))).toEqual([]);
  expect(readFileSync(join(stage.root, "broken.json"), "utf8")).toContain("xyzzy");
});

test("a configured limit above the maximum prevents the daemon's start, and the error names its key", async () => {
  for (const [key, value] of [
    ["maxDocumentBytes", 256 * 1024 * 1024 + 1],
    ["maxNodes", 500_001],
    ["maxItems", 100_001],
    ["maxBlockBytes", 64 * 1024 * 1024 + 1],
  ] as const) {
    await expect(stageWithRoots(() => ({ context: { [key]: value } }))).rejects.toThrow(
      new RegExp(` context\\.${key} .*<=`),
    );
  }
});

test("a creation with a key happens once, including its context; another document under the same key is a conflict", async () => {
  await using stage = await stageWithRoots(() => ({}));
  const params = { cwd: stage.directory("cwd"), context: { document }, idempotencyKey: "k" };
  const [first, second] = await Promise.all(
    [params, params].map(async (given) => await stage.call(stage.main, "session/create", given)),
  );
  expect(second).toEqual(first);
  expect(first.context).toMatchObject({ mode: "session", messages: 2 });
  expect(await stage.call(stage.main, "session/create", params)).toEqual(first);
  const other = { ...params, context: { document: { ...document, items: items.slice(0, 1) } } };
  expect(await stage.call(stage.main, "session/create", other)).toMatchObject({ name: "conflict" });
  expect((await stage.call(stage.main, "session/list")).sessions).toHaveLength(1);
});
