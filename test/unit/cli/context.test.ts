import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { context } from "../../../cli/context.ts";
import { type ErrorName, WireError } from "../../../protocol/errors.ts";
import { exampleOf } from "../../../protocol/examples.ts";
import { memoryOutput } from "./memory-output.ts";

const sessionId = "0199c2a4-7c1e-7f6b-8a55-0d6f2f1b9c11";
const hash = "ab".repeat(32);
const document = { format: "pi-rpcd/context", version: 1, items: [{ role: "user", content: "Hi \u009b." }] };
const diagnostics = { entries: 4, nodes: 1, pairs: 0, notes: { reasoning: 3 } };
const tokens = { structured: 120, flattened: 150, saved: 30 };
const summary = {
  ...{ mode: "session", nodes: 9, items: 5, messages: 5, pairs: 1, tokens, hash },
  dropped: { messages: 2, tokens: 40 },
  repairs: { missing_result: 2, bad_call_id: 1 },
  notes: { not_for_model: 3, compacted: 4, system: 1 },
  warnings: ["above_threshold"],
};
const inspected = {
  mode: "session",
  counts: { nodes: 9, items: 5, pairs: 1, repairs: { missing_result: 2 }, notes: { failed_answer: 1, edited: 2 } },
  repairs: [{ code: "missing_result", nodeId: "n\n4", detail: "No result." }],
  ...{ tokens, dropped: { messages: 0, tokens: 0 }, warnings: [], hash },
};

const session = { ...(exampleOf("session/create").result as object), sessionId };

type Params = Readonly<Record<string, unknown>>;
type Answer = (params: Params) => unknown;

/** A daemon that only knows contexts. */
async function stage(answers: Readonly<Record<string, Answer>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "context-"));
  const calls: [string, Params][] = [];
  const known: Readonly<Record<string, Answer>> = {
    "session/list": () => ({ sessions: [session] }),
    "session/create": () => ({ ...session, context: summary }),
    "context/inspect": () => inspected,
    "context/export": () => ({ document, diagnostics }),
    ...answers,
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, params } = JSON.parse(Buffer.concat(chunks).toString());
      calls.push([method, params]);
      const head = { jsonrpc: "2.0", id: 1 };
      try {
        response.end(JSON.stringify({ ...head, result: known[method]?.(params) }));
      } catch (error) {
        const { code, message, data } = error as WireError;
        response.end(JSON.stringify({ ...head, error: { code, message, data } }));
      }
    });
  });
  const socketPath = join(folder, "daemon.sock");
  await once(server.listen(socketPath), "listening");
  const version = { pid: process.pid, version: "0.1.0", protocol: 1 };
  const file = { ...version, url: "http://127.0.0.1:9", socketPath, token: "main-secret" };
  writeFileSync(join(folder, "daemon.json"), JSON.stringify(file));
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const run = async (words: readonly string[], options: object = {}, json = false) => {
    const { output, stdout, stderr } = memoryOutput({ json });
    const signal = new AbortController().signal;
    const all = { "state-dir": folder, "no-start": true, ...options };
    const code = await context({ options: all, arguments: words, output, env: {}, signal });
    return { code, stdout: stdout(), stderr: stderr() };
  };
  return {
    ...{ folder, run, calls, write },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      rmSync(folder, { recursive: true });
    },
  };
}

function refusing(kind: ErrorName, details: Params = {}): never {
  throw new WireError(kind, "The daemon says no.", details);
}

test("importing a document creates a session: its id is on stdout, and a line for each repair on stderr", async () => {
  await using scene = await stage();
  const path = scene.write("past.json", JSON.stringify(document));
  const options = {
    ...{
      node: "n9",
      until: "through",
      model: "a/b",
      cwd: "/srv",
      name: "again",
      ephemeral: true,
      "max-tokens": "none",
    },
    ...{ "on-overflow": "error", "tool-results": "300", "no-repair": true, "no-system": true, "no-events": true },
  };
  expect(await scene.run(["import", path], options)).toEqual({
    code: 0,
    stdout: `${sessionId}\n`,
    stderr: [
      "context: 5 messages, about 120 tokens",
      "repaired: 2 missing_result",
      "repaired: 1 bad_call_id",
      "changed: 4 compacted",
      "excluded by the budget: 2 messages, about 40 tokens",
      "warning: above_threshold\n",
    ].join("\n"),
  });
  const context = {
    ...{ document, nodeId: "n9", until: "through", maxTokens: null, onOverflow: "error", repair: false },
    ...{ toolResults: { maxChars: 300 }, systemNodes: "drop", events: "drop" },
  };
  expect(scene.calls).toEqual([
    ["session/create", { cwd: "/srv", model: "a/b", name: "again", ephemeral: true, context }],
  ]);
  await scene.run(["import", path], { "max-tokens": "auto" });
  expect(scene.calls[1]?.[1]).toEqual({ cwd: process.cwd(), context: { document, maxTokens: "auto" } });
  expect(JSON.parse((await scene.run(["import", path], {}, true)).stdout)).toMatchObject({
    sessionId,
    context: summary,
  });
});

test("a session is imported from its current position, or from an entry", async () => {
  await using scene = await stage();
  await scene.run(["import", "last"]);
  await scene.run(["import", "0199"], { leaf: "e1" });
  const created = scene.calls.filter(([method]) => method === "session/create").map(([, params]) => params["context"]);
  expect(created).toEqual([{ fromSession: { sessionId } }, { fromSession: { sessionId, leafId: "e1" } }]);
});

test("a large document is passed to the daemon by its path, and sent if the daemon cannot read it", async () => {
  const long = JSON.stringify({ ...document, source: { kind: "x".repeat(1_100_000) } });
  await using scene = await stage();
  const path = scene.write("long.json", long);
  await scene.run(["import", path]);
  expect(scene.calls).toEqual([["session/create", { cwd: process.cwd(), context: { path } }]]);
  for (const [kind, reason] of [["forbidden"], ["context_transport_failed", "ENOENT"]] as const) {
    await using other = await stage({
      "context/inspect": ({ context }) => ("path" in (context as Params) ? refusing(kind, { reason }) : inspected),
    });
    expect((await other.run(["inspect", path])).code).toBe(0);
    expect(other.calls.map(([, { context }]) => Object.keys(context as Params))).toEqual([["path"], ["document"]]);
  }
  await using third = await stage({ "session/create": () => refusing("context_too_large") });
  await expect(third.run(["import", path])).rejects.toMatchObject({ kind: "context_too_large" });
  expect(third.calls).toHaveLength(1);
  // A session may have been created, so the call is not repeated.
  await using fourth = await stage({
    "session/create": () => refusing("context_transport_failed", { reason: "timeout" }),
  });
  await expect(fourth.run(["import", path], { ephemeral: true })).rejects.toMatchObject({
    kind: "context_transport_failed",
  });
  expect(fourth.calls).toHaveLength(1);
});

test("a document is read to its end or the length limit, and errors reveal nothing of an invalid file", async () => {
  await using scene = await stage();
  await expect(scene.run(["import", "/dev/zero"])).rejects.toMatchObject({
    kind: "too_large",
    message: "/dev/zero has more than 15728640 bytes.",
  });
  const wrong = scene.write("wrong.json", "SECRETSECRETSECRET");
  const refusal = await scene.run(["import", wrong]).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ kind: "no_document", message: `${wrong} is not a valid JSON document.` });
  expect(scene.calls).toEqual([]);
});

test("inspecting prints the result of a document, each repair on its own line", async () => {
  await using scene = await stage();
  const path = scene.write("past.json", JSON.stringify(document));
  const { stdout, stderr } = await scene.run(["inspect", path], { model: "a/b" });
  expect(stderr).toBe("");
  expect(stdout.split("\n")).toEqual([
    "mode      session",
    "items     5 of 9 nodes; 1 tool call with its result",
    "tokens    about 120; as one text about 150",
    "excluded  nothing",
    "repaired  2 missing_result",
    "changed   1 failed_answer, 2 edited",
    "warnings  none",
    `hash      ${hash}`,
    "missing_result n | 4: No result.",
    "and 1 more",
    "",
  ]);
  expect(scene.calls).toEqual([["context/inspect", { context: { document }, model: "a/b" }]]);
  expect(JSON.parse((await scene.run(["inspect", path], {}, true)).stdout)).toEqual(inspected);
  await scene.run(["inspect", sessionId]);
  expect(scene.calls.at(-1)).toEqual(["context/inspect", { sessionId }]);
  await scene.run(["inspect", sessionId], { model: "a/b", leaf: "e1", "max-tokens": "9" });
  const context = { maxTokens: 9, fromSession: { sessionId, leafId: "e1" } };
  expect(scene.calls.at(-1)).toEqual(["context/inspect", { context, model: "a/b" }]);
});

test("an export goes to stdout as one printable line, notes about its losses to stderr", async () => {
  await using scene = await stage();
  const options = { leaf: "e1", view: "full", "include-system": true, "include-reasoning": true, "no-images": true };
  const { stdout, stderr } = await scene.run(["export", "last"], options);
  expect(stdout).toMatch(/^\{.*\}\n$/);
  expect(stdout).toContain("\\u009b");
  expect(JSON.parse(stdout)).toEqual(document);
  expect(stderr).toBe("changed: 3 reasoning\n");
  const flags = { includeSystem: true, includeReasoning: true, includeImages: false };
  expect(scene.calls.at(-1)).toEqual(["context/export", { sessionId, leafId: "e1", view: "full", ...flags }]);
  expect(JSON.parse((await scene.run(["export", "last"], {}, true)).stdout)).toEqual({ document, diagnostics });
  const path = scene.write("stored.jsonl", "");
  await scene.run(["export", path]);
  expect(scene.calls.at(-1)).toEqual(["context/export", { path }]);
});

test("an exported file is private to its owner, and replaces another only on request", async () => {
  await using scene = await stage();
  const target = join(scene.folder, "out.json");
  expect((await scene.run(["export", "last"], { output: target })).stdout).toBe(`${target}\n`);
  expect(JSON.parse(readFileSync(target, "utf8"))).toEqual(document);
  expect(statSync(target).mode & 0o777).toBe(0o600);
  const calls = scene.calls.length;
  writeFileSync(target, "mine");
  await expect(scene.run(["export", "last"], { output: target })).rejects.toMatchObject({ kind: "file_exists" });
  expect(readFileSync(target, "utf8")).toBe("mine");
  expect(scene.calls.slice(calls).map(([method]) => method)).not.toContain("context/export");
  const { stdout } = await scene.run(["export", "last"], { output: target, force: true }, true);
  const told = JSON.parse(stdout);
  expect(told).toMatchObject({ path: target, bytes: statSync(target).size, diagnostics });
  expect(JSON.parse(readFileSync(target, "utf8"))).toEqual(document);
  expect(readdirSync(scene.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("a result too large for an answer arrives complete through a file of the daemon's, which is checked", async () => {
  const large = { ...document, source: { kind: "y".repeat(300_000), text: "Grüße 🙈\n" } };
  const sha256 = await sha256Of(JSON.stringify(large));
  const answers = (path: string, sum: string): Readonly<Record<string, Answer>> => ({
    "context/export": ({ output }) =>
      output === "file" ? { path, bytes: 1, sha256: sum, diagnostics } : refusing("too_large"),
  });
  const folder = mkdtempSync(join(tmpdir(), "context-"));
  const path = join(folder, "export.json");
  writeFileSync(path, JSON.stringify(large));
  {
    await using scene = await stage(answers(path, sha256));
    const target = join(scene.folder, "out.json");
    await scene.run(["export", "last"], { output: target });
    expect(JSON.parse(readFileSync(target, "utf8"))).toEqual(large);
    expect(JSON.parse((await scene.run(["export", "last"])).stdout)).toEqual(large);
    expect(JSON.parse((await scene.run(["export", "last"], {}, true)).stdout)).toEqual({
      document: large,
      diagnostics,
    });
  }
  {
    await using scene = await stage(answers(path, hash));
    const target = join(scene.folder, "out.json");
    await expect(scene.run(["export", "last"], { output: target })).rejects.toMatchObject({ kind: "export_damaged" });
    expect([existsSync(target), readdirSync(scene.folder).length]).toEqual([false, 2]);
  }
  rmSync(folder, { recursive: true });
});

async function sha256Of(text: string): Promise<string> {
  return Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(text))).toString("hex");
}

test("an invalid or missing source is named", async () => {
  await using scene = await stage();
  const broken = scene.write("broken.json", "{");
  const stored = scene.write("stored.jsonl", '{"type":"session","version":3}\n{"type":"message"}\n');
  await expect(scene.run(["import", broken])).rejects.toMatchObject({ kind: "no_document" });
  await expect(scene.run(["import", stored])).rejects.toThrow(/session file of pi: see `context export`/);
  await expect(scene.run(["inspect", "./nothing.json"])).rejects.toMatchObject({ kind: "file_not_found" });
  await expect(scene.run(["export", "nobody"])).rejects.toMatchObject({ kind: "session_not_found" });
});

test.each([
  [["export", "last"], { node: "n1" }, "--node only works with inspect and import"],
  [["export", "last"], { ephemeral: true }, "--ephemeral only works with import"],
  [["import", "last"], { output: "x" }, "--output only works with export"],
  [["inspect", "FILE"], { leaf: "e1" }, "--leaf only works with a session"],
  [["inspect", "last"], { view: "full" }, "--view only works with export"],
  [["import", "FILE"], { leaf: "e1" }, "--leaf only works with a session"],
  [["import", "FILE"], { "max-tokens": "many" }, "--max-tokens takes a number"],
  [["import", "FILE"], { "tool-results": "199" }, "--tool-results takes a number from 200"],
])("%j with %j is wrong usage, and makes nothing", async (words, options, message) => {
  await using scene = await stage();
  const path = scene.write("past.json", JSON.stringify(document));
  const line = words.map((word) => (word === "FILE" ? path : word));
  await expect(scene.run(line, options)).rejects.toMatchObject({
    name: "UsageError",
    message: expect.stringContaining(message),
  });
  expect(scene.calls.filter(([method]) => method !== "session/list")).toEqual([]);
});

test("without a daemon, and with --no-start, nothing is done", async () => {
  await using scene = await stage();
  rmSync(join(scene.folder, "daemon.json"));
  await expect(scene.run(["export", "last"])).rejects.toMatchObject({ name: "DaemonNotRunningError" });
});
