import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";

/**
 * Returns `meta.native`, the data of an exported pi entry without a field in the format; `type` is the entry's type. In
 * the view `full` every answer, result and event of pi has it. `undefined`: the entry came from another program.
 */
export function nativeOf({ meta }: { readonly meta?: Meta | undefined }): Meta | undefined {
  const native = meta?.["native"];
  return isRecord(native) && typeof native["type"] === "string" ? native : undefined;
}
