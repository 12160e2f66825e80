import {
  type Client,
  type Delivery,
  DeliveryError,
  type DeliveryHandle,
  type PushParams,
  type SessionHandle,
  stateDirectory,
  type WaitUntil,
} from "../client/index.ts";
import { CommandError, UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { inSeconds } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { messageText } from "./message-text.ts";
import type { Output } from "./output.ts";
import { type ParkedOptions, whyParked } from "./parked.ts";
import { describeStep, StepReader, waitOutcome } from "./receipt.ts";
import { findSession } from "./session-argument.ts";
import { oneLine } from "./text.ts";
import { jsonObject, seconds } from "./values.ts";
import { withClient } from "./with-client.ts";

type Push = Invocation<"push">;

/** A stored push survives its daemon: how long to wait for the next daemon, in milliseconds. */
const reconnect = { maxDelayMs: 500, giveUpAfterMs: 60_000 };

/** Pushes a message to the agent and, if asked, shows its progress. */
export async function push(invocation: Push): Promise<number> {
  const { options, output, env, signal } = invocation;
  const [word = "", ...words] = invocation.arguments;
  const { wait, timeout } = options;
  const timeoutMs = timeout === undefined ? undefined : seconds(timeout, { option: "timeout", command: "push" });
  if (timeout !== undefined && wait === undefined) throw new UsageError("--timeout needs --wait.", "push");
  const settings = settingsOf(options);
  const content = await messageText({ command: "push", words, stdin: process.stdin, signal });
  return withClient({ ...invocation, reconnect }, async (client) => {
    const session = await findSession(client, word, signal);
    const handle = session.push({ ...settings, content }, { signal });
    const accepted = await handle.accepted;
    if (!output.json) output.print(handle.id);
    const where = { stateDir: stateDirectory(options["state-dir"], env), env, signal };
    if (wait !== undefined) {
      try {
        const code = await follow(handle, { until: wait, timeoutMs, output, signal });
        await noteIfParked(handle.current, where, output);
        return code;
      } catch (error) {
        throw await explained(error, where);
      }
    }
    if (output.json) output.document(accepted);
    else await noteIfParked(await soon(client, session, accepted), where, output);
    return exitCodes.done;
  });
}

/** A session without a model cannot carry a push, and parks it at once. */
const parkedWithinMs = 10_000;

/** The delivery after its first run, if that run must fail because the session has no model. */
async function soon(client: Client, session: SessionHandle, accepted: Delivery): Promise<Delivery> {
  const { model } = await session.get();
  const { deliveryId } = accepted;
  if (model !== undefined) return accepted;
  return client
    .call("delivery/wait", { deliveryId, until: "delivered", timeoutMs: parkedWithinMs })
    .catch(() => accepted);
}

/** Says why a push is parked, if it is. The outcome of the command stays if this explanation fails. */
async function noteIfParked(delivery: Delivery | undefined, where: ParkedOptions, output: Output): Promise<void> {
  if (delivery?.state !== "parked") return;
  const why = await whyParked(delivery, where).catch(() => undefined);
  if (why !== undefined) output.note("parked", why);
}

/** An error that says why the push is parked, if it is. */
async function explained(error: unknown, where: ParkedOptions): Promise<unknown> {
  if (!(error instanceof DeliveryError) || error.delivery.state !== "parked") return error;
  const { delivery, until, kind } = error;
  const why = await whyParked(delivery, where).catch(() => undefined);
  if (why === undefined) return error;
  const message = `The delivery did not reach "${until}". ${why}`;
  return new CommandError(kind, message, { exitCode: exitCodes.unmet, data: { delivery, until }, cause: error });
}

function settingsOf(options: Push["options"]): Omit<PushParams, "content"> {
  const { type = "pi-rpcd.push", as, "no-trigger": noTrigger, id, details, expires } = options;
  const { "on-abort": onAbort, "on-clear": onClearQueue } = options;
  return {
    customType: type,
    ...(as !== undefined && { deliverAs: as }),
    ...(noTrigger === true && { triggerTurn: false }),
    ...(id !== undefined && { deliveryId: id }),
    ...(onAbort !== undefined && { onAbort }),
    ...(onClearQueue !== undefined && { onClearQueue }),
    ...(expires !== undefined && { expiresAfterMs: seconds(expires, { option: "expires", command: "push" }) }),
    ...(details !== undefined && { details: jsonObject(details, { option: "details", command: "push" }) }),
  };
}

interface Following {
  readonly until: WaitUntil;
  readonly timeoutMs: number | undefined;
  readonly output: Output;
  readonly signal: AbortSignal;
}

async function follow(handle: DeliveryHandle, { until, timeoutMs, output, signal }: Following): Promise<number> {
  const startedAt = performance.now();
  const deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const either = deadline === undefined ? signal : AbortSignal.any([signal, deadline]);
  const steps = new StepReader();
  const show = (delivery: Delivery): void => {
    if (output.json) output.document(delivery);
    const elapsed = inSeconds(performance.now() - startedAt, 2).padStart(8);
    for (const step of output.json ? [] : steps.read(delivery)) {
      output.print(
        `${elapsed}  ${step.state.padEnd(9)}  ${output.paint("dim", oneLine(describeStep(step, delivery)))}`,
      );
    }
  };
  try {
    for await (const delivery of handle.updates({ signal: either })) {
      show(delivery);
      const outcome = waitOutcome(delivery, until);
      if (outcome === "reached") return exitCodes.done;
      if (outcome === "unmet") throw new DeliveryError(delivery, until);
    }
  } catch (error) {
    if (deadline === undefined || error !== deadline.reason) throw error;
    const { state } = handle;
    throw new CommandError(
      "deadline_exceeded",
      `The delivery did not reach ${until} within ${(timeoutMs ?? 0) / 1_000} s; it is ${state}. Nothing was cancelled.`,
      { exitCode: exitCodes.deadline, data: { delivery: handle.current } },
    );
  }
  throw new DeliveryError(await handle.get({ signal }), until);
}
