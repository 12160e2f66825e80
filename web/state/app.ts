import type { ReadonlySignal } from "@preact/signals";
import type { ConnectionState } from "./connection.ts";
import type { OpenSession } from "./open-session.ts";
import type { Questions } from "./questions.ts";
import type { Sessions } from "./sessions.ts";

/** What there is once the page has been connected. It stays when the connection ends. */
export interface Workspace {
  readonly sessions: Sessions;
  readonly questions: Questions;
  readonly selected: ReadonlySignal<OpenSession | undefined>;
  /** Shows a session, or none. Shows the same one again without loading it again. Starts no pi. */
  select(sessionId: string | undefined): void;
}

/** The state of the page, and what people can do. Views read its signals and call its methods; they call nothing else. */
export interface App {
  readonly connection: ReadonlySignal<ConnectionState>;
  /** Undefined until the first connection. */
  readonly workspace: ReadonlySignal<Workspace | undefined>;
  /** For the title of the page: open questions, host and state directory. */
  readonly title: ReadonlySignal<string>;
  /** Ends the token and the connection. */
  signOut(): Promise<void>;
}
