import { isRecord } from "../../protocol/objects.ts";
import type { Child } from "../pi/child.ts";

/**
 * Checks an `agent_settled` event, because pi can send it in the middle of a run: on 0.87.1 a run that an extension
 * starts while a prompt is being prepared competes with it, and the loser reports `agent_settled` (measured). The
 * sign is that pi's agent has started and not ended; pi's state, read after the event, then decides. Without doubt,
 * `onSettled` is called immediately.
 */
export function checkSettled(child: Child, isActive: boolean, onSettled: () => void): void {
  if (!isActive) {
    onSettled();
    return;
  }
  const onResponse = ({ data }: { readonly data?: unknown }): void => {
    if (!(isRecord(data) && data["isStreaming"] === true)) onSettled();
  };
  // A child that ends before it answers also ends the run.
  child.send({ type: "get_state" }, { onResponse }).catch(() => {});
}
