import type { ReadonlySignal } from "@preact/signals";
import type { SessionInfo } from "../../client/browser.ts";
import type { Choices } from "./choices.ts";
import type { Composer } from "./composer.ts";
import type { ConversationView } from "./conversation.ts";
import type { Question } from "./questions.ts";

/** The session that is shown. */
export interface OpenSession {
  readonly sessionId: string;
  /** Undefined: not known yet. */
  readonly info: ReadonlySignal<SessionInfo | undefined>;
  readonly title: ReadonlySignal<string>;
  /** It was closed or deleted: what was loaded stays. */
  readonly isGone: ReadonlySignal<boolean>;
  readonly conversation: ConversationView;
  readonly composer: Composer;
  readonly choices: Choices;
  /** Its open questions. */
  readonly questions: ReadonlySignal<readonly Question[]>;
}
