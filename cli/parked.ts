import type { Delivery } from "../protocol/delivery.ts";
import { credentialsAdvice, lackedCredentials } from "./credentials.ts";
import { callDaemon } from "./daemon-call.ts";
import type { Output } from "./output.ts";

export interface ParkedOptions {
  readonly stateDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** Whether its last attempt failed because pi has no credentials. */
export function lacksCredentials({ attempts }: Delivery): boolean {
  return lackedCredentials(attempts.at(-1)?.error) !== undefined;
}

/** Says why a push is parked, and what to do. */
export async function whyParked(delivery: Delivery, options: ParkedOptions): Promise<string> {
  const { deliveryId, reason, attempts } = delivery;
  const error = attempts.at(-1)?.error;
  const then = `pi-rpcd delivery resend ${deliveryId}`;
  return (
    (await advised([delivery], then, options)) ??
    `The push is parked: ${error ?? reason?.message ?? "no reason given"}. The next run sends it. To send it now, fix the problem, then run: ${then}`
  );
}

/** Notes which of the deliveries are parked because pi has no credentials. Returns whether any is. */
export async function noteLacking(
  deliveries: readonly Delivery[],
  options: ParkedOptions,
  output: Output,
): Promise<boolean> {
  // The command's own result counts if this explanation fails.
  const note = await lackingPushes(deliveries, options).catch(() => undefined);
  if (note !== undefined) output.note("parked", note);
  return note !== undefined;
}

/** Describes those of the deliveries that are parked because pi has no credentials; undefined if none is. */
async function lackingPushes(deliveries: readonly Delivery[], options: ParkedOptions): Promise<string | undefined> {
  const lacking = deliveries.filter((delivery) => delivery.state === "parked" && lacksCredentials(delivery));
  const [first] = lacking;
  if (first === undefined) return undefined;
  const id = lacking.length === 1 ? first.deliveryId : "ID";
  return await advised(lacking, `pi-rpcd delivery resend ${id}`, options);
}

/** Undefined if the push is parked for another reason, or if the session now has a model. */
async function advised(
  [delivery, ...more]: readonly Delivery[],
  then: string,
  { stateDir, env, signal }: ParkedOptions,
): Promise<string | undefined> {
  const lacked = lackedCredentials(delivery?.attempts.at(-1)?.error);
  if (delivery === undefined || lacked === undefined) return undefined;
  const { sessionId } = delivery;
  const [{ model }, info] = await Promise.all([
    callDaemon("session/get", { sessionId }, { stateDir, signal }),
    callDaemon("daemon/info", {}, { stateDir, signal }),
  ]);
  if (lacked.provider === undefined && model !== undefined) return undefined;
  const what = more.length === 0 ? "The push is parked" : `${more.length + 1} pushes are parked`;
  return `${what}: ${lacked.message}. ${credentialsAdvice({ info, env })} Then: ${then}`;
}
