import type { Params, Result } from "../../../protocol/methods.ts";
import type { webMethods } from "../../../protocol/web-methods.ts";
import type { HandlersOf } from "../call.ts";

/** The web console as its methods use it. */
export interface WebConsole {
  /** Throws `web_not_built`, `port_unavailable`, `conflict`, `overloaded`, `shutting_down`. */
  open(params: Params<"web/open">): Promise<Result<"web/open">>;
  /** Resolves with whether it listened, when its port is closed. */
  close(): Promise<boolean>;
}

export function webHandlers(web: WebConsole): HandlersOf<typeof webMethods> {
  return {
    "web/open": (params) => web.open(params),
    "web/close": async () => ({ wasOpen: await web.close() }),
  };
}
