import { pino } from "pino";
import { expect, test } from "vitest";
import { exampleOf } from "../../../protocol/examples.ts";
import type { MethodName } from "../../../protocol/methods.ts";
import { createValidator } from "../../../protocol/validation.ts";
import type { Handlers } from "../../../server/rpc/call.ts";
import { createDispatcher } from "../../../server/rpc/dispatcher.ts";
import { commandHandlers } from "../../../server/rpc/handlers/command.ts";
import { deliveryHandlers } from "../../../server/rpc/handlers/delivery.ts";
import { promptHandlers } from "../../../server/rpc/handlers/prompt.ts";
import { sessionHandlers } from "../../../server/rpc/handlers/session.ts";
import { sessionFileHandlers } from "../../../server/rpc/handlers/session-file.ts";
import { type Core, startCore } from "../../helpers/core.ts";
import { fakeCore } from "../../helpers/edge.ts";
import { rows } from "../../helpers/policies.ts";

/** The handlers of the methods that write to a session's pi, as a dispatcher calls them. */
function conversation({ registry, tracker }: Core) {
  const validator = createValidator();
  const handlers: Handlers = {
    ...fakeCore().handlers,
    ...sessionHandlers(registry, tracker),
    ...sessionFileHandlers(registry, tracker),
    ...promptHandlers(registry, tracker),
    ...commandHandlers(registry, tracker, validator),
    ...deliveryHandlers(registry, tracker),
  };
  return createDispatcher({ handlers, validator, log: pino({ level: "silent" }) }).converse(undefined, undefined);
}

const inScope = rows.filter(([, { scope }]) => scope === "session").map(([name]) => name);

test.each(inScope)("%s waits for its turn in the session, or is refused while another call has it", async (name) => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  const { sessionId } = session;
  const { promptId } = await session.prompting.prompt({ text: "hello", ifRunning: "refuse" });
  await session.prompts.ledger.over(promptId, 20_000, new AbortController().signal);
  const { deliveryId } = await core.tracker.accept({ sessionId, customType: "n", content: "x" });
  await session.pushing.handOver();
  core.tracker.apply(sessionId, deliveryId, { kind: "settled", at: 1, aborted: true, failed: false, held: true });
  await session.scope.run(async () => {});

  const turn = Promise.withResolvers<void>();
  const busy = session.scope.run(() => turn.promise);
  const named = Object.entries({ sessionId, promptId, deliveryId }).filter(([id]) => id in exampleOf(name).params);
  const params = { ...exampleOf(name).params, ...Object.fromEntries(named) };
  let answer: unknown;
  const answered = Promise.resolve(conversation(core).call(name, params)).then((given) => {
    answer = given;
  });
  await expect.poll(() => session.scope.length > 0 || answer !== undefined).toBe(true);
  if (answer === undefined) expect(session.scope.length).toBe(1);
  else expect(answer).toMatchObject({ error: { data: { name: "session_busy" } } });
  turn.resolve();
  await busy;
  await answered;
});

test.each<MethodName>(["session/getState", "session/setModel", "session/rename", "session/getQueue", "delivery/get"])(
  "%s is answered while another call has its turn in the session",
  async (name) => {
    await using core = await startCore();
    const { sessionId, scope } = await core.registry.create({ cwd: core.cwd });
    const { deliveryId } = await core.tracker.accept({ sessionId, customType: "n", content: "x" });
    const turn = Promise.withResolvers<void>();
    const busy = scope.run(() => turn.promise);
    const named = Object.entries({ sessionId, deliveryId }).filter(([id]) => id in exampleOf(name).params);
    const params = { ...exampleOf(name).params, ...Object.fromEntries(named) };
    expect(inScope).not.toContain(name);
    expect(await conversation(core).call(name, params)).toHaveProperty("jsonrpc");
    expect(scope.isBusy).toBe(true);
    turn.resolve();
    await busy;
  },
);
