import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkCommand } from "../../../server/children/client-command.ts";
import { recorder, startCore } from "../../helpers/core.ts";
import { patience } from "../../helpers/patience.ts";
import { type Move, type Racecourse, race } from "../../helpers/prompt-races.ts";

const never = new AbortController().signal;

/** A session on a fake pi that responds with delays. */
async function course(seed: number): Promise<Racecourse & AsyncDisposable> {
  const core = await startCore();
  core.behave("keep-running", "queue", "write", `lag-${seed}`);
  const session = await core.registry.create({ cwd: core.cwd });
  const heard = recorder();
  session.subscribe(heard, { after: 0 });
  const command = (type: string) => {
    checkCommand({ type }, false);
    return session.calls.send({ type }, never);
  };
  const named = (name: string) => heard.heard.filter(({ method }) => method === name);
  const moves = {
    abort: () => session.prompting.abort(),
    clearQueue: () => session.prompting.clearQueue(),
    compact: () => command("compact"),
    settle: () => session.prompting.prompt({ text: "/settle", ifRunning: "steer" }),
    crash: async () => {
      const { state } = session;
      if (state.kind !== "idle" && state.kind !== "running") return;
      process.kill(state.child.pid, "SIGKILL");
      await state.child.exited;
    },
  };
  return {
    prompt: (promptId, text, ifRunning) => session.prompting.prompt({ promptId, text, ifRunning }),
    do: (kind) => moves[kind](),
    rest: async () => {
      await moves.settle().catch(() => {});
      await session.settled();
      if (!session.prompts.ledger.isQuiet) await moves.clearQueue();
      await session.idleness.wait(patience.timeout, never);
      await session.prompts.told();
    },
    stateOf: async (promptId) => session.prompts.ledger.find(promptId)?.state,
    transcript: async () =>
      readFileSync(session.file, "utf8")
        .split("\n")
        .filter((line) => line.includes('"role":"user"'))
        .map((line) => (JSON.parse(line) as { message: { content: [{ text: string }] } }).message.content[0].text),
    runs: () => ({
      started: named("run/started").length,
      ended: named("run/ended").map(({ params }) => params.outcome),
    }),
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

const move = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("prompt" as const),
      n: fc.constant(0),
      ifRunning: fc.constantFrom("refuse" as const, "steer" as const, "followUp" as const),
      twice: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("abort" as const, "settle" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("clearQueue" as const, "compact" as const, "crash" as const) }),
  },
);

/** Adds a unique number to each prompt. */
function numbered(rows: readonly (readonly Move[])[]): readonly (readonly Move[])[] {
  return rows.map((row, i) => row.map((each, j) => (each.kind === "prompt" ? { ...each, n: i * 10 + j } : each)));
}

test("in any interleaving of prompts, aborts, compactions and crashes every call is answered, and no prompt is lost silently or duplicated", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(move, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 }),
      fc.nat(1_000),
      async (rows, seed) => {
        await using on = await course(seed);
        expect(await race(on, numbered(rows))).toEqual([]);
      },
    ),
    { numRuns: 12, endOnFailure: true },
  );
});
