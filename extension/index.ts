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
export type { DialogEvent } from "./dialog-news.ts";
export type {
  ProviderRequestDelivered,
  ProviderRequestEvents,
  ProviderRequestFailed,
  ProviderRequestPrepared,
} from "./provider/bus-events.ts";

/** The helper extension. In a pi that no daemon has started it does nothing. */
export default function helper(pi: ExtensionAPI): Promise<void> | undefined {
  return openHelper(pi, { entry: import.meta.url });
}
