import { type Delivery, DeliveryState } from "../protocol/delivery.ts";
import { callDaemon } from "./daemon-call.ts";
import { watchDeliveries } from "./delivery-watch.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration, shortId } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { noteLacking } from "./parked.ts";
import { endWithReader } from "./reader-end.ts";
import { describeStep, StepReader } from "./receipt.ts";
import { chooseSession } from "./session-argument.ts";
import { oneLine, table, truncate } from "./text.ts";
import { list, wholeNumber } from "./values.ts";
import { ensured } from "./with-client.ts";

type Deliveries = Invocation<"deliveries">;

/** Lists deliveries, or watches them. */
export async function deliveries(invocation: Deliveries): Promise<number> {
  const { options, output, env, signal } = invocation;
  const limit = wholeNumber(options.limit ?? "20", { option: "limit", command: "deliveries" }, { min: 1, max: 500 });
  const states = statesOf(options.state);
  const stateDir = await ensured(invocation);
  const sessionId = await sessionOf(invocation, stateDir);
  const query = { ...(sessionId !== undefined && { sessionId }), ...states, limit };
  if (options.watch === true) return await watch(invocation, { stateDir, sessionId, states: states.states });
  const { deliveries: found } = await callDaemon("delivery/list", query, { stateDir, signal });
  if (output.json) {
    output.document({ deliveries: found });
    return exitCodes.done;
  }
  if (found.length === 0) {
    output.aside("No deliveries.");
    return exitCodes.done;
  }
  const [head, ...rows] = table(
    [["DELIVERY", "STATE", "AGE", "ATTEMPTS", "TYPE", "SESSION", "REASON"], ...found.map(row)],
    output.columns,
  );
  output.print(output.paint("dim", head ?? ""));
  for (const line of rows) output.print(line);
  await noteLacking(found, { stateDir, env, signal }, output);
  return exitCodes.done;
}

interface Watched {
  readonly stateDir: string;
  readonly sessionId: string | undefined;
  readonly states: readonly DeliveryState[] | undefined;
}

async function watch({ output, env, signal }: Deliveries, { stateDir, sessionId, states }: Watched): Promise<number> {
  endWithReader();
  const seen = new Map<string, StepReader>();
  let isExplained = false;
  for await (const delivery of watchDeliveries({
    stateDir,
    sessionId,
    signal,
    note: (text) => output.note("watch", text),
  })) {
    const reader = seen.get(delivery.deliveryId) ?? new StepReader();
    // Settled deliveries do not change; the newest ones are enough to recognise repeated records.
    seen.delete(delivery.deliveryId);
    seen.set(delivery.deliveryId, reader);
    for (const id of seen.size > maxRemembered ? [...seen.keys()].slice(0, seen.size - maxRemembered) : [])
      seen.delete(id);
    const steps = reader.read(delivery).filter(({ state }) => states === undefined || states.includes(state));
    if (steps.length > 0 && output.json) output.document(delivery);
    for (const step of output.json ? [] : steps) {
      const what = describeStep(step, delivery);
      const line = `${new Date(step.at).toISOString()}  ${shortId(delivery.deliveryId)}  ${step.state.padEnd(9)}  ${what}`;
      output.print(truncate(oneLine(line), output.columns ?? Number.POSITIVE_INFINITY));
    }
    if (isExplained || output.json || steps.length === 0) continue;
    isExplained = await noteLacking([delivery], { stateDir, env, signal }, output);
  }
  return exitCodes.done;
}

const maxRemembered = 10_000;

async function sessionOf({ arguments: [word], signal }: Deliveries, stateDir: string): Promise<string | undefined> {
  if (word === undefined) return undefined;
  const { sessions } = await callDaemon("session/list", {}, { stateDir, signal });
  return chooseSession(sessions, word);
}

const allStates: ReadonlySet<string> = new Set(DeliveryState.enum);

function statesOf(text: string | undefined): { readonly states?: DeliveryState[] } {
  if (text === undefined) return {};
  const states = list(text, { option: "state", command: "deliveries" });
  const wrong = states.find((state) => !allStates.has(state));
  if (wrong === undefined) return { states: states as DeliveryState[] };
  throw new UsageError(`--state takes ${[...allStates].join(", ")}, not "${wrong}".`, "deliveries");
}

function row(delivery: Delivery): readonly string[] {
  const { deliveryId, state, createdAt, attempts, customType, sessionId, reason } = delivery;
  const age = duration(Date.now() - createdAt);
  const why = reason === undefined ? "-" : `${reason.message} (${reason.code})`;
  const ids = [shortId(deliveryId), shortId(sessionId)] as const;
  return [ids[0], state, age, String(attempts.length), customType, ids[1], why].map(oneLine);
}
