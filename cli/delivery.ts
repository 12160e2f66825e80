import type { Delivery } from "../protocol/delivery.ts";
import { callDaemon } from "./daemon-call.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import type { Output } from "./output.ts";
import { timeline } from "./timeline.ts";
import { ensured } from "./with-client.ts";

/** Shows one delivery, cancels it, or sends it again. */
export async function delivery(invocation: Invocation<"delivery">): Promise<number> {
  const { output, signal } = invocation;
  const [action = "", deliveryId = ""] = invocation.arguments;
  const where = { stateDir: await ensured(invocation), signal };
  switch (action) {
    case "show":
      show(await callDaemon("delivery/get", { deliveryId }, where), output);
      return exitCodes.done;
    case "cancel": {
      const { cancelled, delivery: now } = await callDaemon("delivery/cancel", { deliveryId }, where);
      if (output.json) output.document({ cancelled, delivery: now });
      else if (cancelled) output.print(`${deliveryId} is cancelled: it will not be in the transcript.`);
      else output.print(`Too late: ${deliveryId} is ${now.state}.`);
      return cancelled ? exitCodes.done : exitCodes.unmet;
    }
    case "resend": {
      const now = await callDaemon("delivery/resend", { deliveryId }, where);
      if (output.json) output.document(now);
      else output.print(`${deliveryId} is ${now.state}: a run delivers it now.`);
      return exitCodes.done;
    }
    default:
      throw new UsageError(`ACTION must be show, cancel or resend, not "${action}".`, "delivery");
  }
}

function show(now: Delivery, output: Output): void {
  if (output.json) output.document(now);
  else
    for (const { style, text } of timeline(now, output.columns)) {
      output.print(style === undefined ? text : output.paint(style, text));
    }
}
