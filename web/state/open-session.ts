import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { SessionInfo } from "../../client/browser.ts";
import { type Choices, SessionChoices } from "./choices.ts";
import { type Composer, SessionComposer } from "./composer.ts";
import { Conversation, type ConversationView } from "./conversation.ts";
import type { Daemon } from "./daemon.ts";
import type { Draft } from "./drafts.ts";
import type { Figures, SessionFigures } from "./figures.ts";
import type { Page } from "./page.ts";
import type { Question } from "./questions.ts";
import { titleOf } from "./sessions.ts";

export type FiguresCode = Pick<typeof import("./figures.ts"), "SessionFigures">;

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
  /** Undefined until {@link openFigures}. */
  readonly figures: ReadonlySignal<Figures | undefined>;
  /** Begins to read its requests and costs, with code that the page loads later than this. */
  openFigures(code: FiguresCode): void;
  /** Its open questions. */
  readonly questions: ReadonlySignal<readonly Question[]>;
}

export interface OpenSessionOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
  readonly draft: Draft;
  /** Follows the list of sessions. */
  readonly info: () => SessionInfo | undefined;
  readonly questions: ReadonlySignal<readonly Question[]>;
  readonly isConnected: ReadonlySignal<boolean>;
  readonly mayPrompt: ReadonlySignal<boolean>;
}

export class ShownSession implements OpenSession {
  readonly sessionId: string;
  readonly info: ReadonlySignal<SessionInfo | undefined>;
  readonly title: ReadonlySignal<string>;
  readonly isGone = signal(false);
  readonly conversation: Conversation;
  readonly composer: SessionComposer;
  readonly choices: Choices;
  readonly #figures = signal<SessionFigures | undefined>(undefined);
  readonly #options: OpenSessionOptions;
  #isClosed = false;
  readonly questions: ReadonlySignal<readonly Question[]>;

  constructor(options: OpenSessionOptions) {
    this.#options = options;
    const { daemon, page, sessionId, draft, isConnected, mayPrompt } = options;
    this.sessionId = sessionId;
    let last: SessionInfo | undefined;
    // A closed session leaves the list: what was known of it stays.
    this.info = computed(() => {
      last = options.info() ?? last;
      return last;
    });
    this.title = computed(() => (this.info.value === undefined ? sessionId : titleOf(this.info.value)));
    this.questions = computed(() => options.questions.value.filter((question) => question.sessionId === sessionId));
    this.composer = new SessionComposer({
      daemon,
      sessionId,
      draft,
      info: this.info,
      isConnected,
      mayPrompt,
      isGone: this.isGone,
    });
    this.conversation = new Conversation({
      daemon,
      page,
      sessionId,
      info: () => this.info.value,
      resend: (promptId) => this.composer.resend(promptId),
      onNotification: (notification) => this.composer.notified(notification),
      onMissed: () => this.composer.refresh(),
      onGone: () => {
        this.isGone.value = true;
      },
    });
    this.choices = new SessionChoices({ daemon, sessionId, info: this.info });
  }

  get figures(): ReadonlySignal<Figures | undefined> {
    return this.#figures;
  }

  openFigures(code: FiguresCode): void {
    const { daemon, page, sessionId } = this.#options;
    if (!this.#isClosed) this.#figures.value ??= new code.SessionFigures({ daemon, page, sessionId });
  }

  close(): void {
    this.conversation.close();
    this.composer.close();
    this.#figures.peek()?.close();
    this.#isClosed = true;
  }
}
