import type { DaemonInfo } from "../../client/browser.ts";

/** The page's connection to its daemon. */
export type ConnectionState =
  /** Looks for a token, or makes the first connection. */
  | { readonly kind: "connecting" }
  | { readonly kind: "connected"; readonly daemon: DaemonInfo | undefined }
  /** `since`, `nextTryAt`: Unix time in milliseconds. Shown after a second. */
  | { readonly kind: "lost"; readonly since: number; readonly nextTryAt: number; readonly attempt: number }
  /** It does not come back. All that was loaded stays. The way on is always: run `pi-rpcd web`. */
  | { readonly kind: "ended"; readonly why: EndReason; readonly words: string };

/**
 * `signed_out`: there is no token. `refused`: the daemon does not take the token. `another_daemon`: another process answers
 * at the address. `signed_off`: by "Sign out". `failed`: anything else.
 */
export type EndReason = "signed_out" | "refused" | "another_daemon" | "signed_off" | "failed";
