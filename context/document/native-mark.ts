import type { Meta } from "../../protocol/link-context.ts";
import { isObject } from "./measure.ts";

/**
 * What an export has left of an entry of pi's beside the format's fields: `meta.native`, whose `type` is the entry's. In the
 * view `full` every answer, result and event of pi's has it. Undefined: the entry came from elsewhere, or was in the tree of
 * another program.
 */
export function nativeOf({ meta }: { readonly meta?: Meta | undefined }): Meta | undefined {
  const native = meta?.["native"];
  return isObject(native) && typeof native["type"] === "string" ? native : undefined;
}
