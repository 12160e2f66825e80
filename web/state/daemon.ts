import type { Client, SessionHandle } from "../../client/browser.ts";

/** What the state uses of the client library, so that tests can pass a daemon of their own. */
export interface Daemon extends Pick<Client, "id" | "call" | "onConnection" | "onSessionChanged"> {
  session(sessionId: string): Pick<SessionHandle, "listen">;
}
