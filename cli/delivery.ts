import type { Delivery } from "../protocol/delivery.ts";
import { WireError } from "../protocol/errors.ts";
import { callDaemon } from "./daemon-call.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import type { Output } from "./output.ts";
import { lacksCredentials, noteLacking, whyParked } from "./parked.ts";
import { chooseId } from "./session-argument.ts";
import { timeline } from "./timeline.ts";
import { ensured } from "./with-client.ts";

/** Shows one delivery, cancels it, or sends it again. */
export async function delivery(invocation: Invocation<"delivery">): Promise<number> {
  const { output, env, signal } = invocation;
  const [action = "", word = ""] = invocation.arguments;
  const where = { stateDir: await ensured(invocation), signal };
  const found = await find(word, where);
  const { deliveryId } = found;
  switch (action) {
    case "show":
      show(found, output);
      if (!output.json) await noteLacking([found], { ...where, env }, output);
      return exitCodes.done;
    case "cancel": {
      const { cancelled, delivery: now } = await callDaemon("delivery/cancel", { deliveryId }, where);
      if (output.json) output.document({ cancelled, delivery: now });
      else if (cancelled) output.print(`${deliveryId} is cancelled: it will not be in the transcript.`);
      else output.print(`Too late: ${deliveryId} is ${now.state}.`);
      return cancelled ? exitCodes.done : exitCodes.unmet;
    }
    case "resend": {
      const sent = await callDaemon("delivery/resend", { deliveryId }, where);
      const soon = { deliveryId, until: "delivered", timeoutMs: parkedWithinMs } as const;
      const now = lacksCredentials(found) ? await callDaemon("delivery/wait", soon, where).catch(() => sent) : sent;
      if (output.json) output.document(now);
      if (now.state === "parked") {
        output.note("parked", await whyParked(now, { ...where, env }));
        return exitCodes.unmet;
      }
      const then = now.state === "delivered" || now.state === "answered" ? "." : ": a run delivers it now.";
      if (!output.json) output.print(`${deliveryId} is ${now.state}${then}`);
      return exitCodes.done;
    }
    default:
      throw new UsageError(`ACTION must be show, cancel or resend, not "${action}".`, "delivery");
  }
}

/** Without credentials the next run fails at once, too. */
const parkedWithinMs = 10_000;

/** The number of newest deliveries that a part of an id can mean. */
const maxSearched = 500;

/** Returns the delivery that ID means. Throws `delivery_not_found`, `delivery_ambiguous`. */
async function find(word: string, where: Parameters<typeof callDaemon>[2]): Promise<Delivery> {
  try {
    return await callDaemon("delivery/get", { deliveryId: word }, where);
  } catch (error) {
    if (!(error instanceof WireError) || error.kind !== "delivery_not_found") throw error;
    const { deliveries } = await callDaemon("delivery/list", { limit: maxSearched }, where);
    const ids = deliveries.map(({ deliveryId }) => deliveryId);
    const id = chooseId(ids, word, "delivery");
    const found = deliveries.find(({ deliveryId }) => deliveryId === id);
    if (found === undefined) throw error;
    return found;
  }
}

function show(now: Delivery, output: Output): void {
  if (output.json) output.document(now);
  else
    for (const { style, text } of timeline(now, output.columns)) {
      output.print(style === undefined ? text : output.paint(style, text));
    }
}
