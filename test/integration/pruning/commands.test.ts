import { expect, test } from "vitest";
import type { MethodName, Result } from "../../../protocol/methods.ts";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import { createValidator } from "../../../protocol/validation.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { Model } from "../optimisation/model.ts";

const validator = createValidator();
const pruning: PruningOptions = {
  enabled: true,
  debug: true,
  notification: "detailed",
  protectRecentTurns: 1,
  strategies: { deduplication: { enabled: false }, purgeErrors: { enabled: false } },
};
const emit = (name: string) => call("emit", { text: `line of ${name}\n`, times: 400 });
const ranges = [{ startId: "m001", endId: "m003", summary: "What was emitted." }];

interface Refusal {
  readonly refused: string;
  readonly message: string;
}

/** The helper's answer to the daemon: the method's result, or a refusal. */
async function ask<M extends MethodName>(pi: Pi, about: M, params: object = {}): Promise<Result<M>> {
  const data = await pi.send({ kind: "ask", about, params });
  expect(validator.result(about, data)).toEqual([]);
  return data as Result<M>;
}

async function refused(pi: Pi, about: MethodName, params: object = {}): Promise<string> {
  const { refused: name } = await pi.send<Refusal>({ kind: "ask", about, params });
  return name;
}

/** The output of a command for users. */
async function say(pi: Pi, command: string): Promise<string> {
  pi.log.forget("hello");
  const shown = pi.log.until(({ type, method }) => type === "extension_ui_request" && method === "notify");
  await pi.rpc({ type: "prompt", message: command });
  return String((await shown)["message"]);
}

function changes(pi: Pi): readonly string[] {
  return pi.frames("notice").flatMap((notice) => (notice.name === "pruning/changed" ? [notice.data.cause] : []));
}

async function withHistory(provider: ScriptedProvider, options: PruningOptions = {}, after: string[] = []) {
  const pi = await startPi({ provider, pruning: { ...pruning, ...options }, after: ["emitting", ...after] });
  const model = new Model(pi, provider);
  await model.run(emit("first"), emit("second"));
  await model.run(emit("third"));
  await model.run();
  return { pi, model };
}

test("each command of /dcp does what its method does (R002-23)", async () => {
  await using provider = await startProvider();
  const { pi, model } = await withHistory(provider);
  await using _pi = pi;
  expect(await say(pi, "/dcp help")).toContain("/dcp decompress bN");
  expect(await say(pi, "/dcp")).toBe(await say(pi, "/dcp help"));
  expect(await say(pi, "/dcp dance")).toContain("/dcp sweep [N]");

  const before = await ask(pi, "pruning/inspect");
  expect(before.messages.map(({ id }) => id)).toEqual(["m001", "m002", "m003", "m004", "m005", "m006"]);
  expect(before.blocks).toEqual([]);
  expect(before.byKind["results"]).toBeGreaterThan(before.byKind["user"] ?? 0);
  expect(before.candidates[0]).toMatchObject({ startId: "m001" });

  // A block without the model.
  expect(await refused(pi, "pruning/compress", { ranges })).toBe("invalid_params");
  expect(await refused(pi, "pruning/compress", { topic: "Old", ranges: [{ ...ranges[0], endId: "b7" }] })).toBe(
    "block_not_found",
  );
  pi.log.forget("hello");
  const made = await ask(pi, "pruning/compress", { topic: "Old things", ranges });
  expect(made).toMatchObject({ state: "done", blocks: [{ id: "b1", state: "active", startId: "m001" }] });
  expect(made.tokens).toBeGreaterThan(1_000);
  expect(changes(pi)).toEqual(["compress"]);
  const [request] = await model.run();
  expect(request?.hasText("What was emitted.")).toBe(true);
  expect(request?.hasText("line of first")).toBe(false);
  expect(request?.hasText("line of third")).toBe(true);

  const shown = await say(pi, "/dcp context");
  expect(shown).toContain("b1 Old things: m001–m003");
  expect((await ask(pi, "pruning/inspect")).blocks).toMatchObject([{ id: "b1", state: "active", isShortened: false }]);
  expect(JSON.parse(await say(pi, "/dcp export"))).toEqual(await ask(pi, "pruning/export"));
  expect((await ask(pi, "pruning/export")).blocks).toMatchObject([{ id: "b1", text: "What was emitted." }]);

  expect(await say(pi, "/dcp decompress (b01)")).toContain("b1 is open.");
  expect(changes(pi)).toEqual(["decompress"]);
  expect(await refused(pi, "pruning/decompress", { block: "b1" })).toBe("block_not_restorable");
  expect(await refused(pi, "pruning/decompress", { block: "b9" })).toBe("block_not_found");
  expect(await ask(pi, "pruning/recompress", { block: "b1" })).toMatchObject({ blocks: [{ state: "active" }] });
  expect(await say(pi, "/dcp recompress b1")).toBe("b1 is active.");
  const opened = await ask(pi, "pruning/decompress", { block: "b1" });
  expect(opened.tokens).toBe(-made.tokens);
  expect((await model.run())[0]?.hasText("line of first")).toBe(true);
  expect(await say(pi, "/dcp recompress b1")).toContain("tokens less");

  expect(await say(pi, "/dcp manual")).toBe("Manual mode is on.");
  expect((await ask(pi, "pruning/inspect")).mode).toBe("manual");
  expect(await ask(pi, "pruning/setMode", { mode: "automatic" })).toEqual({ mode: "automatic" });
  expect(await say(pi, "/dcp manual off")).toBe("Manual mode is off.");
  expect(changes(pi)).toEqual([]);

  const [swept, ...none] = (await ask(pi, "pruning/sweep", { last: 1 })).pruned;
  expect(swept).toMatchObject({ tool: "emit", strategy: "sweep" });
  expect(none).toEqual([]);
  expect((await model.run())[0]?.countText("line of third")).toBeLessThan(3);
  expect(await model.recall(swept?.recallId ?? "")).toContain("line of third");
  expect(await say(pi, "/dcp sweep")).toContain("Nothing has changed.");
  expect(await say(pi, "/dcp sweep 0")).toContain("1 to 1000");

  expect(await say(pi, "/dcp stats")).toContain("b1 Old things");
  const stats = await ask(pi, "pruning/stats");
  expect(stats.blocks).toMatchObject([{ id: "b1" }]);
  expect(stats.strategies).toMatchObject({ sweep: { count: 1 } });
  // Its content in each request.
  expect(stats.standing.system + stats.standing.tool).toBeLessThan(1_000);
  expect(stats.standing.system).toBeGreaterThan(100);

  expect(await say(pi, "/dcp reload")).toContain("read again");
  expect(pi.frames("reload")).toHaveLength(1);
  await ask(pi, "pruning/inspect");
  expect(pi.frames("debug").map(({ facts }) => facts)).toEqual([{ asked: "inspect" }]);
});

test("during a run, sweeps and blocks wait for its boundary, and the model is asked to compress in it", async () => {
  await using provider = await startProvider();
  const { pi } = await withHistory(provider, { manualMode: { enabled: true, strict: true } }, ["session-commands"]);
  await using _pi = pi;
  const gate = new Gate();
  pi.log.forget("hello");
  provider.add(answer("At work.", hold(gate), emit("late")), answer("Done."));
  await pi.rpc({ type: "prompt", message: "Go on." });
  await gate.reached;
  for (const about of ["pruning/sweep", "pruning/compress"] as const)
    expect(await refused(pi, about, about === "pruning/sweep" ? {} : { topic: "Old", ranges })).toBe("session_busy");
  expect(await ask(pi, "pruning/compress", { topic: "Old", ranges, wait: true })).toMatchObject({
    state: "waiting",
    blocks: [{ id: "b1" }],
  });
  expect(await ask(pi, "pruning/sweep", { last: 1, wait: true })).toMatchObject({ state: "waiting", pruned: [] });
  expect(changes(pi)).toEqual([]);
  gate.open();
  await pi.settled();
  expect([...changes(pi)].sort()).toEqual(["compress", "strategies"]);
  expect(provider.requests.at(-1)?.hasText("What was emitted.")).toBe(true);
  expect(provider.requests.at(-1)?.hasText("line of first")).toBe(false);

  // In strict manual mode exactly one call is allowed.
  const second = call("compress", {
    topic: "Third thing",
    ranges: [{ startId: "m004", endId: "m005", summary: "A third thing." }],
  });
  provider.add(answer(second), answer(second), answer("Done."));
  pi.log.forget("hello");
  expect(await ask(pi, "pruning/compress", { focus: "The third thing." })).toMatchObject({ state: "asked" });
  await pi.settled();
  const [asked, granted, blocked] = provider.requests.slice(-3);
  expect(asked?.hasText("Begin with this: The third thing.")).toBe(true);
  expect(granted?.hasText("Compression waits for the user in manual mode.")).toBe(false);
  expect(blocked?.hasText("Compression waits for the user in manual mode.")).toBe(true);
  expect((await ask(pi, "pruning/inspect")).blocks.map(({ id }) => id)).toEqual(["b1", "b2"]);
});

test("if another extension has /dcp ours gets another name, and the methods work", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning, after: ["own-dcp"] });
  const { data } = (await pi.rpc({ type: "get_commands" })) as { data: { commands: { name: string }[] } };
  expect(data.commands.map(({ name }) => name)).toEqual(expect.arrayContaining(["dcp", "pi-rpcd-dcp"]));
  expect(await say(pi, "/dcp stats")).toBe("Not ours.");
  expect(await say(pi, "/pi-rpcd-dcp context")).toContain("There are no blocks.");
  expect((await ask(pi, "pruning/inspect")).blocks).toEqual([]);
});

test("with pruning off, the command and each method report it", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: { enabled: false } });
  for (const command of ["context", "stats", "export", "sweep", "manual on", "compress", "decompress b1"])
    expect(await say(pi, `/dcp ${command}`)).toBe("Pruning is off for this session.");
  for (const about of ["inspect", "stats", "export", "sweep", "setMode", "compress", "decompress"] as const)
    expect(await refused(pi, `pruning/${about}`, { block: "b1" })).toBe("pruning_disabled");
  expect(provider.requests).toEqual([]);
});
