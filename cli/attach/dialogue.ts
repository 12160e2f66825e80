import type { Client, SessionHandle, SessionInfo } from "../../client/index.ts";
import { homeRelative, shortId } from "../format.ts";
import { completion } from "./completion.ts";
import { Conversation } from "./conversation.ts";
import { LocalCommands } from "./local-commands.ts";
import { Questions } from "./questions.ts";
import type { Screen } from "./screen.ts";
import type { SessionView } from "./session-view.ts";

export interface DialogueOptions {
  readonly client: Client;
  readonly session: SessionHandle;
  readonly info: SessionInfo;
  readonly view: SessionView;
  readonly screen: Screen;
  readonly env: NodeJS.ProcessEnv;
  readonly ifRunning: "steer" | "followUp";
  /** Whether the session is removed when the user leaves. */
  readonly isTemporary: boolean;
  /** Called when the user leaves, or switches to another session. */
  readonly leave: (sessionId?: string) => void;
  /** Aborted when the session is no longer shown. */
  readonly left: AbortSignal;
}

/** Connects a screen with a session. Returns the function to call after each change of the view. */
export function beginDialogue({ client, session, info, view, screen, left, ...options }: DialogueOptions): () => void {
  const { env, ifRunning, isTemporary, leave } = options;
  const questions = new Questions(screen);
  const commands = new LocalCommands({
    ...{ client, session, screen, env, isTemporary },
    ...{ onSwitch: leave, onLeave: () => leave() },
  });
  const conversation = new Conversation({
    ...{ session, view, screen, questions, commands, ifRunning },
    ...{ isTemporary, onActivity: () => refresh() },
  });
  let lostAt: number | undefined;
  const refresh = (): void => {
    const activity = conversation.activity ?? view.activity;
    screen.activity =
      lostAt === undefined
        ? activity && { ...activity, hint: "Esc aborts" }
        : { what: "no daemon answers", since: lostAt, hint: "pi-rpcd start starts one" };
    screen.footer = [...view.facts, shortId(info.sessionId), homeRelative(info.cwd, env["HOME"])];
  };
  const removeListener = client.onConnection(({ kind }) => {
    lostAt = kind === "connected" ? undefined : (lostAt ?? Date.now());
    conversation.isConnected = kind === "connected";
    refresh();
  });
  left.addEventListener("abort", () => {
    removeListener();
    screen.isReady = false;
  });
  void conversation.left.then(() => leave());
  session.onDialog((dialog, { signal }) => questions.ask(dialog, signal), { signal: left }).ready.catch(() => {});
  void commands.load().then(() => {
    if (left.aborted) return;
    screen.editor.setAutocompleteProvider(completion({ commands: commands.completions(), cwd: info.cwd, env }));
  });
  screen.onKey = conversation.onKey;
  screen.isReady = true;
  refresh();
  return refresh;
}
