/**
 * `pi-rpcd/extension`: code that runs inside pi. The default export is the helper, which the daemon loads. The named
 * exports let other extensions, in any pi, deliver messages to the model with confirmation.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { openHelper } from "./open.ts";

export { type DeliveryTicket, deliver } from "./api/deliver.ts";
export * from "./api/errors.ts";
export type { DeliverOptions, DeliveryMessage } from "./api/message.ts";
export { openDelivery } from "./api/open.ts";
export { type PendingEntry, showPending } from "./api/pending.ts";
export { type WaitOptions, waitForMessageDelivered } from "./api/wait.ts";
export type { BackgroundJob } from "./background/job.ts";
export type { CappedText } from "./background/output.ts";
export { type ProcessEnd, type ProcessGroupOptions, runProcessGroup } from "./background/process-group.ts";
export {
  type BackgroundDetails,
  type BackgroundRunner,
  type BackgroundRunnerOptions,
  createBackgroundRunner,
  type RefusedDetails,
} from "./background/runner.ts";
export type { DeliveryProgress } from "./delivery/progress.ts";
export type { DialogEvent } from "./dialog-announcer.ts";
export type {
  ProviderRequestDelivered,
  ProviderRequestEvents,
  ProviderRequestFailed,
  ProviderRequestPrepared,
} from "./provider/bus-events.ts";

/** The helper extension. Does nothing in a pi that was not started by a daemon. */
export default function helper(pi: ExtensionAPI): Promise<void> | undefined {
  return openHelper(pi, { entry: import.meta.url });
}
