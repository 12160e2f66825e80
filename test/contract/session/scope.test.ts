import { expect, test } from "vitest";
import { exampleOf } from "../../../protocol/examples.ts";
import type { MethodName } from "../../../protocol/methods.ts";
import { dispatcherOf } from "../../helpers/conversation.ts";
import { startCore } from "../../helpers/core.ts";
import { patience } from "../../helpers/patience.ts";
import { rows } from "../../helpers/policies.ts";

const inScope = rows.filter(([, { scope }]) => scope === "session").map(([name]) => name);

test.each(inScope)(
  "%s waits for its turn in the session's queue, or is refused while another call has it",
  async (name) => {
    await using core = await startCore();
    const session = await core.registry.create({ cwd: core.cwd });
    const { sessionId } = session;
    const { promptId } = await session.prompting.prompt({ text: "hello", ifRunning: "refuse" });
    await session.prompts.ledger.over(promptId, patience.timeout, new AbortController().signal);
    const { deliveryId } = await core.tracker.accept({ sessionId, customType: "n", content: "x" });
    await session.pushing.handOver();
    core.tracker.apply(sessionId, deliveryId, { kind: "settled", at: 1, aborted: true, failed: false, held: true });
    await session.scope.run(async () => {});

    const turn = Promise.withResolvers<void>();
    const busy = session.scope.run(() => turn.promise);
    const named = Object.entries({ sessionId, promptId, deliveryId }).filter(([id]) => id in exampleOf(name).params);
    const params = { ...exampleOf(name).params, ...Object.fromEntries(named) };
    let answer: unknown;
    const answered = Promise.resolve(dispatcherOf(core)().call(name, params)).then((given) => {
      answer = given;
    });
    await expect.poll(() => session.scope.length > 0 || answer !== undefined).toBe(true);
    if (answer === undefined) expect(session.scope.length).toBe(1);
    else expect(answer).toMatchObject({ error: { data: { name: "session_busy" } } });
    turn.resolve();
    await busy;
    await answered;
  },
);

test.each<MethodName>(["session/getState", "session/setModel", "session/rename", "session/getQueue", "delivery/get"])(
  "%s is answered while another call holds the session's queue",
  async (name) => {
    await using core = await startCore();
    const { sessionId, scope } = await core.registry.create({ cwd: core.cwd });
    const { deliveryId } = await core.tracker.accept({ sessionId, customType: "n", content: "x" });
    const turn = Promise.withResolvers<void>();
    const busy = scope.run(() => turn.promise);
    const named = Object.entries({ sessionId, deliveryId }).filter(([id]) => id in exampleOf(name).params);
    const params = { ...exampleOf(name).params, ...Object.fromEntries(named) };
    expect(inScope).not.toContain(name);
    expect(await dispatcherOf(core)().call(name, params)).toHaveProperty("jsonrpc");
    expect(scope.isBusy).toBe(true);
    turn.resolve();
    await busy;
  },
);
