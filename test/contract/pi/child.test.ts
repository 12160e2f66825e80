import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import type { OutwardFrame } from "../../../protocol/link-outward.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { KeptChildren, liveRestoreFacts } from "../../../server/core/live-restore-facts.ts";
import { largeRecordBytes } from "../../../server/frames/large-record.ts";
import type { Child, ChildOptions, KeptOptions, KeptStatus } from "../../../server/pi/child.ts";
import { locatePi } from "../../../server/pi/locate.ts";
import { exists, marked, startTimeOf } from "../../../server/pi/processes.ts";
import type { PiEvent } from "../../../server/pi/records.ts";
import type { RecordDiagnostic } from "../../../server/pi/router.ts";
import { startPi } from "../../../server/pi/start-pi.ts";
import { patience } from "../../helpers/patience.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

const keeper = join(import.meta.dirname, "..", "..", "..", "extension", "keeper.ts");

let root: string;
/** Outside of the directory, which must be empty in the end. */
let sockets: string;
let kept: KeptOptions | undefined;
const children: Child[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "child-"));
  sockets = mkdtempSync(join(tmpdir(), "child-k-"));
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(async (child) => [await child.stop(), await child.cleaned]));
  for (const directory of [root, sockets]) {
    expect(readdirSync(directory)).toEqual([]);
    rmSync(directory, { recursive: true });
  }
});

const keptStatus = (): KeptStatus => new KeptChildren(liveRestoreFacts(true));

function keptWith(status: KeptStatus): KeptOptions {
  const { listenWithinMs, ...keeping } = limits.keeper;
  const timing = { orphanIdleMs: 600_000, orphanRunMs: 600_000 };
  return { keeper, socketDirectory: sockets, limits: { ...keeping, ...timing }, listenWithinMs, status };
}

interface Heard {
  readonly events: { readonly text: string; readonly event: PiEvent | undefined }[];
  readonly frames: OutwardFrame[];
  readonly diagnostics: RecordDiagnostic[];
  /** Resolves with the first event of a type, past or future. */
  next(type: string): Promise<PiEvent>;
}

async function start(
  behaviours: string,
  overrides: Partial<ChildOptions["limits"]> = {},
  abandon = new AbortController().signal,
  stage?: ChildOptions["stage"],
  pi = fakePi,
) {
  const waiting = new Map<string, (event: PiEvent) => void>();
  const heard: Heard = {
    events: [],
    frames: [],
    diagnostics: [],
    next: (type) => {
      const found = heard.events.find(({ event }) => event?.type === type)?.event;
      const { promise, resolve } = Promise.withResolvers<PiEvent>();
      if (found !== undefined) resolve(found);
      else waiting.set(type, resolve);
      return promise;
    },
  };
  const { child, ready } = await startPi({
    program: await locatePi({ option: pi, env: {} }),
    kept,
    helper: "unused",
    runDirectory: root,
    sessionFile: join(root, "unused.jsonl"),
    cwd: root,
    pi: {},
    env: { ...process.env, FAKE_PI: behaviours },
    limits: { ...limits.child, afterEofMs: 5_000, afterTermMs: 5_000, ...overrides },
    signal: abandon,
    log: pino({ level: "silent" }),
    onEvent: (record, event) => {
      heard.events.push({ text: record.toString("utf8"), event });
      if (event !== undefined) waiting.get(event.type)?.(event);
    },
    onFrame: (frame) => heard.frames.push(frame),
    ...(stage === undefined ? {} : { stage }),
    onDiagnostic: (diagnostic) => heard.diagnostics.push(diagnostic),
  });
  children.push(child);
  return { child, ready, heard };
}

async function failure(attempt: Promise<unknown>): Promise<WireError> {
  return await attempt.then(
    () => expect.unreachable("it succeeded"),
    (error: unknown) => error as WireError,
  );
}

describe.each(["pipes", "a keeper"])("a child with %s", (how) => {
  beforeEach(() => {
    kept = how === "pipes" ? undefined : keptWith(keptStatus());
  });
  afterEach(() => expect(kept?.status.problem).toBeUndefined());

  test("is ready when its helper's hello has arrived and its model is known", async () => {
    const { child, ready, heard } = await start("");
    expect(child.state.kind).toBe("ready");
    expect(ready.model).toEqual({ provider: "fake", id: "model" });
    expect(heard.frames.map(({ kind }) => kind)).toEqual(["hello"]);
    expect(heard.events).toEqual([]);
  });

  test("asks pi for its commands once for all hellos before its answer, and again for a hello after it", async () => {
    const { child, heard } = await start("");
    await child.send({ type: "reload", times: 3 });
    expect(heard.frames).toHaveLength(4);
    expect((await child.send({ type: "listings" })).data).toEqual({ listings: 2 });
    // Another extension takes the helper's command right after an answer that still lists it.
    await child.send({ type: "reload", times: 1, takesNext: true }).catch(() => {});
    expect(await child.exited).toMatchObject({ expected: false });
  });

  test("answers commands by id, and rejects pending ones when it ends", async () => {
    const { child } = await start("");
    expect((await child.send({ type: "echo", n: 1 })).data).toMatchObject({ type: "echo", n: 1 });
    process.kill(child.pid, "SIGSTOP");
    const waiting = [child.send({ type: "get_state" }), child.send({ type: "echo" })].map(failure);
    process.kill(child.pid, "SIGKILL");
    for (const error of await Promise.all(waiting)) expect(error.kind).toBe("child_exited");
    expect((await failure(child.send({ type: "get_state" }))).kind).toBe("child_exited");
    expect(await child.exited).toMatchObject({ signal: "SIGKILL", code: null, expected: false });
  });

  test.each([
    ["exit-at-start", "start_failed", /code 1 while it started.*fake pi has no wish to start/s],
    ["no-hello", "link_failed", /helper extension did not load/],
    ["other-link", "link_failed", /version 99/],
    ["command-taken", "link_failed", /helper extension did not load/],
    ["startup-dialog,hang-at-start", "startup_dialog", /opened the dialog "May I\?" while pi was starting/],
  ])("that does %j fails to start with %s", async (behaviours, kind, message) => {
    const error = await failure(start(behaviours, { afterEofMs: 100 }));
    expect(error.kind).toBe(kind);
    expect(error.message).toMatch(message);
  });

  test("that never answers fails to start after its time limit", async () => {
    const error = await failure(start("hang-at-start", { startTimeoutMs: 300, afterEofMs: 100, afterTermMs: 5_000 }));
    expect([error.kind, error.message]).toEqual([
      "start_failed",
      expect.stringContaining("did not answer within 300 ms"),
    ]);
  });

  test("is ended if its start is aborted", async () => {
    const abandon = new AbortController();
    const failed = failure(start("hang-at-start", { afterEofMs: 100 }, abandon.signal));
    abandon.abort();
    expect((await failed).kind).toBe("start_failed");
  });

  test("reports each malformed record once, and continues", async () => {
    const { child, heard } = await start("malformed");
    await child.send({ type: "prompt", message: "x" });
    await heard.next("agent_settled");
    expect(heard.diagnostics.map(({ kind }) => kind)).toEqual([
      "unparsable",
      "not_an_object",
      "not_an_object",
      "not_an_object",
      "unparsable",
      "unparsable",
      "unparsable",
    ]);
    expect(heard.events.filter(({ text }) => text.includes("text_delta"))).toHaveLength(3);
  });

  test("skips and reports a record over the limit, and stays alive", async () => {
    const { child, heard } = await start("oversize", { maxRecordBytes: 1024 * 1024 });
    await child.send({ type: "prompt", message: "x" });
    await heard.next("agent_settled");
    expect(heard.diagnostics).toMatchObject([
      { kind: "record_too_large", excerpt: expect.stringContaining("message_end") },
    ]);
    expect(heard.diagnostics[0]?.bytes).toBeGreaterThan(70 * 1024 * 1024);
  });

  test("keeps the end of a flood of stderr, and is not blocked by it", async () => {
    const { child } = await start("stderr-flood");
    await child.send({ type: "get_state" });
    expect(Buffer.byteLength(child.stderrTail)).toBeLessThanOrEqual(limits.child.maxStderrBytes);
  });

  test("calls the callback of a response at its position among the records", async () => {
    const { child, heard } = await start("");
    let eventsBefore = -1;
    await child.send({ type: "prompt", message: "x" }, { onResponse: () => (eventsBefore = heard.events.length) });
    await heard.next("agent_settled");
    expect(eventsBefore).toBe(0);
  });

  test("refuses commands while the backlog of its stdin is full, and accepts them when the child reads again", async () => {
    const { child } = await start("", { maxStdinBacklogBytes: 1024 * 1024 });
    process.kill(child.pid, "SIGSTOP");
    const big = { type: "echo", data: "x".repeat(600_000) };
    const taken = [child.send(big), child.send(big)];
    expect((await failure(child.send(big))).kind).toBe("overloaded");
    process.kill(child.pid, "SIGCONT");
    expect(await Promise.all(taken)).toHaveLength(2);
    expect((await child.send(big)).success).toBe(true);
  });

  test.each([
    ["ends by itself", "leave", { code: 7, expected: false }],
    ["is killed", "write", { signal: "SIGKILL", expected: false }],
    ["is stopped", "write", { code: 0, expected: true }],
  ])("that %s while a large record is handled in slices has ended after its last record", async (how, order, exit) => {
    const file = join(root, "lines");
    const lines = [largeRecordBytes, 5].map((size) =>
      JSON.stringify({ type: size > 5 ? "tool_execution_end" : "small", text: "x".repeat(size) }),
    );
    writeFileSync(file, `${lines.join("\n")}\n{"type":"half`);
    const [staged, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { child, heard } = await start("", { afterEofMs: 600_000 }, undefined, () => {
      staged.resolve();
      return gate.promise;
    });
    await child.send({ type: "prompt", message: `${order} ${file}` });
    await staged.promise;
    if (how === "is killed") process.kill(child.pid, "SIGKILL");
    const stopped = how === "is stopped" ? child.stop() : undefined;
    await vi.waitFor(() => expect(exists(child.pid)).toBe(false), patience);
    expect(heard.events.filter(({ text }) => lines.includes(text))).toEqual([]);
    expect(child.state.kind).not.toBe("exited");
    // It ended before, so this is not the reason.
    const late = child.stop();
    gate.resolve();
    expect(await child.exited).toMatchObject(exit);
    expect([await late, await stopped]).toEqual([await child.exited, stopped && (await child.exited)]);
    const told = heard.events.map(({ text }) => text).filter((text) => lines.includes(text));
    // A killed one may not have written the second.
    expect(told).toEqual(lines.slice(0, how === "is killed" ? Math.max(1, told.length) : 2));
    if (order === "leave") expect(heard.diagnostics).toMatchObject([{ kind: "cut_off", excerpt: '{"type":"half' }]);
    rmSync(file);
  });

  test("ends when its stdin ends", async () => {
    const { child } = await start("");
    expect(await child.stop()).toMatchObject({ code: 0, signal: null, expected: true });
    expect(child.stop()).toBe(child.stop());
  });

  test("ends by SIGTERM when it ignores the end of stdin", async () => {
    const { child } = await start("ignore-eof", { afterEofMs: 100 });
    expect(await child.stop()).toMatchObject({ signal: "SIGTERM", expected: true });
  });

  test("ends by SIGKILL when it ignores everything else", async () => {
    const { child } = await start("ignore-eof,ignore-sigterm", { afterEofMs: 100, afterTermMs: 100 });
    expect(await child.stop()).toMatchObject({ signal: "SIGKILL", expected: true });
  });

  // With a keeper these descriptors are not how it talks to the daemon.
  test.each(how === "pipes" ? ["close-stdin", "close-stdout"] : [])(
    "that does %j is ended, and its end counts as unrequested",
    async (behaviour) => {
      const { child } = await start(`${behaviour},ignore-eof`, { afterEofMs: 100 });
      // Nothing reads or answers records written after the prompt.
      await Promise.allSettled([child.send({ type: "prompt", message: "x" })]);
      child.post({ type: "late" });
      expect(await child.exited).toMatchObject({ expected: false });
    },
  );

  test.each(["stop", "SIGKILL"])(
    "leaves no processes after %s, including processes in sessions of their own",
    async (how) => {
      const { child } = await start("leave-a-process");
      expect(await marked([child.id])).toHaveLength(2);
      if (how === "stop") await child.stop();
      else process.kill(child.pid, "SIGKILL");
      await child.cleaned;
      expect(await marked([child.id])).toEqual([]);
      expect(exists(child.pid)).toBe(false);
    },
  );

  test.each(["double-fork", "double-fork-unmarked"])(
    "that does a %j and ends before its helper's hello leaves nothing running",
    async (behaviour) => {
      const { message } = await failure(start(behaviour));
      const pid = Number(/left (\d+)/.exec(message)?.[1]);
      expect(pid).toBeGreaterThan(0);
      await vi.waitFor(async () => expect(await startTimeOf(pid)).toBeUndefined(), patience);
    },
  );

  test.each(["", "ignore-eof,ignore-sigterm"])(
    "that is told to end and %j leaves no process, even one that has cleared its environment",
    async (manners) => {
      const { child, heard } = await start(`leave-an-unmarked-process,${manners}`, {
        afterEofMs: 200,
        afterTermMs: 200,
      });
      const { pid } = await heard.next("left");
      expect(await startTimeOf(pid as number)).toEqual(expect.any(String));
      await child.stop();
      await child.cleaned;
      // A zombie keeps its process id, but has ended.
      await vi.waitFor(async () => expect(await startTimeOf(pid as number)).toBeUndefined(), patience);
    },
  );

  test("rejects a frame to a helper that acknowledges nothing, though pi reports success", async () => {
    const { child } = await start("silent-helper");
    const error = await failure(child.link.send({ kind: "ping" }));
    expect([error.kind, error.message]).toEqual(["link_failed", expect.stringContaining("ended without a reply")]);
  });

  test("carries frames both ways, and large ones by a file that is then deleted", async () => {
    const { child } = await start("");
    expect(await child.link.send({ kind: "ping" })).toEqual({ running: false, held: [] });
  });
});

describe("a child that cannot have a keeper", () => {
  const hanging = "setInterval(() => {}, 1_000);";
  test.each([
    ["is missing", undefined, 60_000, /Cannot find module/],
    ["fails", 'throw new Error("no keeper today")', 60_000, /failed: .*no keeper today/s],
    ["ends", "", 60_000, /failed: /],
    ["does not listen", hanging, 200, /did not listen within 200 ms/],
    [
      "does not answer",
      `require("node:fs").writeSync(3, "listening\\n"); require("node:fs").closeSync(3); ${hanging}`,
      // A loaded machine takes seconds to start Node.
      10_000,
      /did not answer within 10000 ms/,
    ],
  ])("because it %s has pipes, and the reason is known", async (_what, source, listenWithinMs, problem) => {
    const status = keptStatus();
    const broken = join(root, "keeper.cjs");
    if (source !== undefined) writeFileSync(broken, source);
    kept = { ...keptWith(status), keeper: broken, listenWithinMs };
    const { child } = await start("");
    expect(status.problem).toMatch(problem);
    expect((await child.send({ type: "echo", n: 1 })).success).toBe(true);
    rmSync(broken, { force: true });
  });

  test("because its socket's path is too long has pipes, and the next one may have a keeper", async () => {
    const status = keptStatus();
    const long = join(sockets, "x".repeat(100));
    kept = { ...keptWith(status), socketDirectory: long };
    const { child: piped } = await start("");
    expect(status.problem).toMatch(/failed: .*EINVAL/s);
    rmSync(long, { recursive: true });
    kept = keptWith(status);
    await start("");
    // The first one still ends with the daemon.
    expect(status.problem).toMatch(/EINVAL/);
    await piped.stop();
    await piped.cleaned;
    expect(status.problem).toBeUndefined();
  });

  test("because it is not a script has pipes", async () => {
    const status = keptStatus();
    kept = keptWith(status);
    const wrapper = join(root, "wrapper");
    writeFileSync(wrapper, `#!/bin/sh\nexec "${process.execPath}" "${fakePi}" "$@"\n`, { mode: 0o755 });
    const { child } = await start("", {}, undefined, undefined, wrapper);
    rmSync(wrapper);
    expect(status.problem).toMatch(/is not a script/);
    expect((await child.send({ type: "echo", n: 1 })).success).toBe(true);
  });
});
