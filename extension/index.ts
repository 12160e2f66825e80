import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { openHelper } from "./open.ts";

/** The helper extension. In a pi that no daemon has started it does nothing. */
export default function helper(pi: ExtensionAPI): void {
  openHelper(pi, { entry: import.meta.url });
}
