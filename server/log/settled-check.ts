import type { Child } from "../pi/child.ts";
import { isRecordObject } from "../pi/records.ts";

/**
 * pi can say `agent_settled` in the middle of a run: on 0.87.1 a run that an extension starts while a prompt is being
 * prepared has a rival, and the loser says so (measured). It is told by pi's agent, which has begun and not ended; pi's
 * state behind it then decides. `onSettled` is called at once where nothing is doubtful.
 */
export function checkSettled(child: Child, isActive: boolean, onSettled: () => void): void {
  if (!isActive) {
    onSettled();
    return;
  }
  const onResponse = ({ data }: { readonly data?: unknown }): void => {
    if (!(isRecordObject(data) && data["isStreaming"] === true)) onSettled();
  };
  // A child that ends before it answers ends the run too.
  child.send({ type: "get_state" }, { onResponse }).catch(() => {});
}
