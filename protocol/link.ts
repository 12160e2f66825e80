/**
 * The link between the daemon and the helper extension inside pi. Internal: not part of the clients' protocol.
 *
 * Inward a frame is the argument of an extension command: a `prompt` record whose message is `/<command> <frame>`.
 * pi runs it at once in every state of the agent. Outward a frame is the text of `ctx.ui.setStatus(statusKey, …)`,
 * which reaches stdout in exact order with pi's own events. `link-inward.ts` and `link-outward.ts` have their schemas.
 *
 * This module is loaded inside every pi: it imports nothing at run time.
 */

import type { McpServer } from "./mcp-servers.ts";
import type { OptimisationConfig } from "./optimisation/config.ts";
import type { PruningConfig } from "./pruning/config.ts";

/**
 * The version of these frames. A new child has the daemon's own version; one that survived a former daemon may have the
 * version before it, whose frames differ in optional fields only.
 */
export const LINK_VERSION = 1;

/** In the `hello` of a helper that cannot continue a link which another version began. */
export const NO_LINK = 0;

/** Names a 0600 file with the {@link HelperConfig}. The helper reads it, deletes it and removes the variable. */
export const HELPER_CONFIG_ENV = "PI_RPCD_HELPER_CONFIG";

/** Marks every process that descends from a child; its value is the child's id, which is no secret. */
export const CHILD_MARKER_ENV = "PI_RPCD_CHILD";

/** Key in a custom message's `details` that holds the delivery's identity, as `{deliveryId}`. */
export const DELIVERY_MARK = "pi-rpcd";

/** `customType` of a carrier: a message that only starts a run and is left out of the request. */
export const CARRIER_TYPE = "pi-rpcd.carrier";

/**
 * `customType` of the entry that records a move of pi's leaf in the session's file, because pi keeps it only in memory.
 */
export const NAVIGATED_TYPE = "pi-rpcd.navigated";

/** `customType` of the root entry of a session file that was written from a context. */
export const CONTEXT_ROOT_TYPE = "pi-rpcd.context";

/** Bounds of the headers in a `requestEnd`: how many, and the UTF-16 units of all names and values together. */
export const MAX_HEADERS = 64;
export const MAX_HEADER_CHARS = 16 * 1024;

/** Of a file's text in a `formerText`, in UTF-8. */
export const MAX_FORMER_TEXT_BYTES = 1024 * 1024;

/** Larger inward frames use a file, because pi needs quadratic time for large records. */
export const MAX_INLINE_FRAME_BYTES = 256 * 1024;

export interface HelperConfig {
  readonly link: number;
  /** The status key of this child's outward frames. Unguessable, so that no other extension can write them by accident. */
  readonly statusKey: string;
  /**
   * A `context` frame follows. Requests wait for it for this many milliseconds, even if an extension starts a run
   * immediately; after that they are made without it. Absent: none follows.
   */
  readonly contextWithinMs?: number;
  /** This pi only answers queries: a run started by an extension is aborted before its request. */
  readonly isOnlyAsked?: boolean;
  /** `ctx.ui.custom()` rejects. Absent: it resolves with `undefined`, as pi documents for RPC mode. */
  readonly customUi?: "throw";
  /** Absent: no part is active. */
  readonly parts?: PartsConfig;
  /** MCP servers that the helper registers in pi, with secrets. Absent: none. */
  readonly mcpServers?: readonly McpServer[];
  /** Variables of pi's environment that are for its start alone. */
  readonly startEnvironment?: StartEnvironment;
}

/** By name: the value while pi loads its extensions, and the one to restore then. Without `before` the variable is removed. */
export type StartEnvironment = Readonly<Record<string, { readonly value: string; readonly before?: string }>>;

/** Configuration of the parts inside pi: optimisation and pruning. */
export interface PartsConfig {
  readonly optimisation: OptimisationConfig;
  /** Absent: it is off. */
  readonly pruning?: PruningConfig;
  /**
   * Directory (mode 0700) of texts that left the transcript. Files have mode 0600 and are named by their SHA-256. The
   * daemon removes them.
   */
  readonly spillDirectory: string;
  /** The session's labels, for conditions. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Why a request leaves out a push of the session. */
export const leftOutReasons = ["compacted", "session_replaced", "removed_by_extension", "off_branch"] as const;
export type LeftOutReason = (typeof leftOutReasons)[number];

/**
 * Whether no later request can have the push. Otherwise its entry is in the session, and a later request can have it
 * again.
 */
export function isLeftOutForGood(reason: LeftOutReason): boolean {
  return reason === "compacted" || reason === "session_replaced";
}
