import { join } from "node:path";
import { expect, test } from "vitest";
import { untagged } from "../../../../bench/lib/pruning/compressor.ts";
import { commonMessages, headOf, messagesOf, withoutCompressing } from "../../../../bench/lib/pruning/payload.ts";
import type { SessionHandle } from "../../../../client/index.ts";
import type { LogEntry } from "../../../../provider/log.ts";
import { type KillableStage, startKillableStage } from "../../../helpers/killable-stage.ts";
import { endingWithDaemon } from "../../../helpers/stage.ts";
import { LongRunModel, makePlan, type Plan } from "../long-run.ts";

const noCompress = join(import.meta.dirname, "..", "..", "..", "fixtures", "extension", "no-compress.ts");
/** The compressions after which a process dies: pi, the daemon, and again when blocks are nested. */
const deaths: Readonly<Record<number, "pi" | "daemon">> = { 3: "pi", 6: "daemon", 13: "pi", 16: "daemon" };

test("after two hundred turns with nested blocks and deaths of pi and the daemon, decompressing restores the messages of a run without blocks, byte for byte (R002-11, R002-14, R002-15)", async () => {
  const models = new Map<string, LongRunModel>();
  await using stage = await startKillableStage({
    provider: {
      otherwise: (request) => models.get(request.model ?? "")?.reply(request) ?? "There is no such run.",
    },
    agent: { models: ["pruned", "twin"].map((id) => ({ id, contextWindow: 1_000_000 })) },
    config: endingWithDaemon,
  });
  const plan = makePlan(stage.cwd);
  const lead = async (id: string, extensions: readonly string[]): Promise<Run> => {
    const model = new LongRunModel(plan, Object.keys(deaths).map(Number));
    models.set(id, model);
    return await leadThrough(stage, { plan, model, id, extensions });
  };
  const pruned = await lead("pruned", []);
  expect(pruned.model.stepsLeft).toBe(0);
  expect(pruned.model.turnsDone).toBeGreaterThanOrEqual(200);
  staysAsItWas(pruned);

  // Triple nesting, where only the outermost blocks are visible.
  const { blocks } = await exported(stage, pruned);
  expect(blocks).toHaveLength(pruned.model.compressing.length);
  expect(depthOf(blocks)).toBeGreaterThanOrEqual(3);
  expect(pruned.model.requests.at(-1)?.countText("[Compressed conversation section]")).toBeLessThan(blocks.length);

  const whole = await decompressed(stage, pruned);
  const twin = await lead("twin", [noCompress]);
  const original = await lastRequest(stage, twin);
  expect(headOf(whole)).toBe(headOf(original));
  const [messages, originals] = [whole, original].map((request) => withoutCompressing(messagesOf(request)));
  expect(messages?.length).toBe(originals?.length);
  for (const [at, message] of (messages ?? []).entries()) {
    expect(JSON.stringify(message), `message ${at}`).toBe(JSON.stringify(originals?.[at]));
  }
  // Every byte that was read and said is present.
  const said = whole.messages.flatMap(({ texts, toolResults }) => [...texts, ...toolResults.map(({ text }) => text)]);
  expect(said.map(untagged)).toEqual(expect.arrayContaining([...plan.texts]));
});

interface Run {
  readonly session: () => SessionHandle;
  readonly model: LongRunModel;
  /** Requests that were never answered, and the next ones. */
  readonly revivals: readonly { readonly before: LogEntry; readonly after: LogEntry }[];
}

interface Leading {
  readonly plan: Plan;
  readonly model: LongRunModel;
  readonly id: string;
  readonly extensions: readonly string[];
}

/** Sends all texts of the user. Deaths happen while the model is asked, and the user then continues. */
async function leadThrough(stage: KillableStage, { plan, model, id, extensions }: Leading): Promise<Run> {
  const { sessionId } = await stage.client.call("session/create", {
    ...{
      cwd: stage.cwd,
      model: `scripted-anthropic/${id}`,
      ...(extensions.length > 0 && { extensions: [...extensions] }),
    },
    pruning: { enabled: true },
  });
  const session = (): SessionHandle => stage.client.session(sessionId);
  const revivals: { before: LogEntry; after: LogEntry }[] = [];
  for (const text of plan.prompts) {
    for (let said = text; ; said = "Go on.") {
      const asked = session().promptAndWait(said);
      const before = await Promise.race([model.dying, asked.then(() => undefined)]);
      if (before === undefined) break;
      const ended = Promise.allSettled([asked]);
      if (deaths[model.compressing.length] === "daemon") await stage.restart();
      else await killPi(session());
      await ended;
      void model.next.then((after) => revivals.push({ before, after }));
    }
  }
  return { session, model, revivals };
}

async function killPi(session: SessionHandle): Promise<void> {
  const { pid } = await session.get();
  process.kill(pid ?? Number.NaN, "SIGKILL");
  await expect.poll(async () => (await session.get()).pid).not.toBe(pid);
}

/** Between two compressions a request is the previous one plus more; the same holds after a death. */
function staysAsItWas({ model, revivals }: Run): void {
  for (const [at, request] of model.requests.entries()) {
    const before = model.requests[at - 1];
    if (before === undefined || model.compressing.includes(before)) continue;
    const messages = messagesOf(before);
    expect(commonMessages(messages, messagesOf(request)), `request ${at}`).toBe(messages.length);
    expect(headOf(request), `request ${at}`).toBe(headOf(before));
  }
  expect(revivals).toHaveLength(Object.keys(deaths).length);
  for (const { before, after } of revivals) {
    expect(messagesOf(after).length).toBe(messagesOf(before).length + 1);
    expect(after.messages.at(-1)?.texts[0]).toBe("Go on.");
  }
}

type Exported = Awaited<ReturnType<typeof exported>>;

async function exported(stage: KillableStage, { session }: Run) {
  return await stage.client.call("pruning/export", { sessionId: session().id });
}

function depthOf(blocks: Exported["blocks"]): number {
  const depth = (id: string): number =>
    1 + Math.max(0, ...(blocks.find((block) => block.id === id)?.children ?? []).map(depth));
  return Math.max(...blocks.map(({ id }) => depth(id)));
}

/** The request of a session whose blocks were all decompressed, the outermost first. */
async function decompressed(stage: KillableStage, run: Run): Promise<LogEntry> {
  for (;;) {
    const { blocks } = await exported(stage, run);
    const active = blocks.filter(({ state }) => state === "active");
    if (active.length === 0) return await lastRequest(stage, run);
    for (const { id } of active)
      await stage.client.call("pruning/decompress", { sessionId: run.session().id, block: id });
  }
}

async function lastRequest(stage: KillableStage, { session, model }: Run): Promise<LogEntry> {
  await stage.client.session(session().id).promptAndWait("Is everything there?");
  const last = model.requests.at(-1);
  if (last === undefined) throw new Error("The model was not asked.");
  return last;
}
