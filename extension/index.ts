/**
 * `pi-rpcd/extension`: what runs inside pi. The default export is the daemon's helper, which the daemon loads itself. The
 * named ones are for other extensions, in any pi: deliver messages to the model and know that they got there.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { openHelper } from "./open.ts";

export { type DeliveryTicket, deliver } from "./api/deliver.ts";
export * from "./api/errors.ts";
export type { DeliverOptions, DeliveryMessage } from "./api/message.ts";
export { openDelivery } from "./api/open.ts";
export { type WaitOptions, waitForMessageDelivered } from "./api/wait.ts";
export type { DeliveryProgress } from "./delivery/progress.ts";

/** The helper extension. In a pi that no daemon has started it does nothing. */
export default function helper(pi: ExtensionAPI): void {
  openHelper(pi, { entry: import.meta.url });
}
