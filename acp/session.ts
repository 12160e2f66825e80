import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Dialog } from "../protocol/dialog.ts";
import { WireError } from "../protocol/errors.ts";
import type { MessageOrigin } from "../protocol/event.ts";
import type { NotificationParams } from "../protocol/notifications.ts";
import { isRecord } from "../protocol/objects.ts";
import { AcpError } from "./acp-error.ts";
import { Announcements } from "./announcements.ts";
import type { Choices } from "./choices.ts";
import type { ClientAbilities } from "./client-abilities.ts";
import { Following } from "./following.ts";
import { readHistory, tellHistory, tellMissed } from "./history.ts";
import { acpErrorOf } from "./known-errors.ts";
import type { Outbox } from "./outbox.ts";
import type { Place, Port, SessionNotification } from "./port.ts";
import { Prompts } from "./prompts.ts";
import { Questions } from "./questions.ts";
import type { Params, RpcPeer } from "./rpc-peer.ts";
import type { SessionParts, SessionVersion } from "./session-version.ts";
import type { PiEntry } from "./updates/branch.ts";
import { LiveUpdates, type LiveUpdatesOptions } from "./updates/live-updates.ts";
import { answerChunk, messageIdOf, type PiMessage } from "./updates/messages.ts";
import type { ToolPlace } from "./updates/paths.ts";
import { RunUsages } from "./updates/usage.ts";

export interface SessionOptions {
  readonly sessionId: string;
  readonly cwd: string;
  readonly port: Port;
  readonly peer: RpcPeer;
  readonly outbox: Outbox;
  readonly client: ClientAbilities;
  /** What the client's version of the protocol tells in its own way. */
  readonly version: (parts: SessionParts) => SessionVersion;
  /** Writes an exported session to a file, and returns its path. Undefined: the client has no files here. */
  readonly saveExport: ((path: string | undefined, html: string) => Promise<string>) | undefined;
  /** The session was closed, or cannot be followed any more. */
  readonly onEnd: () => void;
}

type PiEvent = Readonly<Record<string, unknown>>;

/** One session on a client's connection. */
export class AcpSession {
  readonly #options: SessionOptions;
  readonly #version: SessionVersion;
  #live: LiveUpdates;
  readonly #following: Following;
  readonly #prompts: Prompts;
  readonly #questions: Questions;
  readonly #announcements: Announcements;
  readonly #usages = new RunUsages();
  /** The client has left the session. Its reason is the error of prompts that wait. */
  readonly #left = new AbortController();

  constructor(options: SessionOptions) {
    const { sessionId, port, peer, outbox, client, saveExport } = options;
    const update = (each: SessionUpdate): void => this.#update(each);
    const left = this.#left.signal;
    this.#options = options;
    const version = options.version({
      sessionId,
      port,
      update,
      send: (each) => this.#send(each),
      say: (words) => update(answerChunk("text", words, randomUUID())),
      caughtUp: () => this.#following.caughtUp(),
      runningTools: () => this.#live.runningTools,
      usageOf: (runId) => this.#usages.of(runId),
      left,
    });
    this.#version = version;
    this.#live = this.#translated({});
    this.#announcements = new Announcements({ sessionId, port, canExport: saveExport !== undefined, update, left });
    this.#questions = new Questions({
      sessionId,
      port,
      peer,
      hasForms: client.forms,
      version,
      waitingTool: () => this.#live.runningTool,
      update,
      retell: (toolCallId) => this.#live.retellTool(toolCallId),
      onUnasked: (title) => this.#notice("warning", `Nobody could answer an extension's question: ${title}`),
    });
    this.#prompts = new Prompts({ sessionId, port, saveExport, answers: version.answers, left });
    this.#following = new Following({
      sessionId,
      port,
      outbox,
      receive: (notification) => this.#receive(notification),
      lose: (gap) => this.#live.lose(gap),
      tellMissed: (isWanted) => this.#tellMissed(isWanted),
      onEnd: (end) => {
        this.#live.abandon();
        this.#end(acpErrorOf("error" in end ? end.error : new WireError("session_closed", "The session was closed.")));
        options.onEnd();
      },
    });
  }

  get id(): string {
    return this.#options.sessionId;
  }

  /** Reads what can be chosen. */
  choices(): Promise<Choices> {
    return this.#announcements.choices();
  }

  get hasModel(): boolean {
    return this.#announcements.hasModel;
  }

  /** Tells the user of this client alone. */
  warn(title: string): void {
    this.#notice("warning", title);
  }

  /** Tells the client which thinking level the session has now: pi takes the nearest one that the model has. */
  tellLevel(): Promise<Choices> {
    return this.#announcements.tellLevel();
  }

  /** Sends what happens in the session after `place`. */
  follow(place: Place): void {
    if (!this.#isOver) this.#ask(this.#following.start(place));
  }

  /**
   * Sends the session's history; live updates wait until {@link resume}. Resolves when the client has taken it, with what
   * can be chosen.
   */
  async replay(): Promise<Choices> {
    const { port, sessionId, outbox, client } = this.#options;
    this.#live.close();
    this.#questions.withdraw();
    await this.#hold();
    const choices = await this.choices();
    const history = await readHistory({ port, sessionId, outbox });
    this.#version.restart?.();
    const told = await tellHistory(history, {
      outbox,
      update: (update) => this.#update(update),
      left: this.#left.signal,
      place: this.#toolPlace,
      compaction: client.compaction,
      contextSize: this.#announcements.contextSize,
    });
    this.#live = this.#translated({ told });
    this.#version.attached?.(history.isRunning);
    return choices;
  }

  /** Sends what happened in the session since {@link replay} or {@link skip}, and what happens. */
  resume(): void {
    if (!this.#isOver) this.#ask(this.#following.resume());
  }

  /**
   * Leaves out the session's history, but for what is open in its run; live updates wait until {@link resume}. Resolves with
   * what can be chosen.
   */
  async skip(): Promise<Choices> {
    const { port, sessionId } = this.#options;
    await this.#hold();
    const [choices, { name, runId }, { cost, userMessages }] = await Promise.all([
      this.choices(),
      port.call("session/get", { sessionId }),
      port.call("session/getStats", { sessionId }),
    ]);
    // Only the very first message of a session becomes its title.
    const title = name ?? (userMessages === 0 ? undefined : "");
    this.#live = this.#translated({ title, cost });
    this.#version.attached?.(runId !== undefined);
    return choices;
  }

  /** The client has the session already. Resolves with what can be chosen. */
  async again(): Promise<Choices> {
    const choices = await this.choices();
    this.#version.attached?.();
    return choices;
  }

  prompt(params: Params, signal: AbortSignal): Promise<object> {
    return this.#prompts.prompt(params, signal);
  }

  /** Cancels the run's questions, then the run, whoever began it. */
  cancel(): Promise<void> {
    return this.#prompts.cancel();
  }

  /**
   * Ends this client's prompts, and the run if no other client follows the session. Otherwise it ends only the runs that these
   * prompts began.
   */
  async close(): Promise<void> {
    await this.#prompts.close();
    await this.#version.closing?.();
  }

  /** This client leaves the session, which goes on. */
  leave(): void {
    this.#end(new AcpError("internalError", "The session is not open on this connection any more."));
  }

  /** Follows the session, and keeps its updates back. Throws if it cannot be followed. */
  async #hold(): Promise<void> {
    await this.#following.hold();
    this.#left.signal.throwIfAborted();
  }

  #end(why: AcpError): void {
    this.#left.abort(why);
    this.#following.leave();
    this.#live.close();
    this.#questions.withdraw();
  }

  get #isOver(): boolean {
    return this.#left.signal.aborted;
  }

  /** pi has the environment of this program or of the daemon, with the same home. */
  get #toolPlace(): ToolPlace {
    return { cwd: this.#options.cwd, home: homedir() };
  }

  #translated(known: Pick<LiveUpdatesOptions, "told" | "title" | "cost">): LiveUpdates {
    const { client } = this.#options;
    return new LiveUpdates({
      place: this.#toolPlace,
      client,
      contextSize: () => this.#announcements.contextSize,
      send: (update, block) => this.#update(update, block),
      ...known,
    });
  }

  /** A question names the tool that waits for its answer, so its events come first. */
  #ask(begun: Promise<void>): void {
    void begun.then(() => this.#openQuestions());
    void this.#announcements.tellCommands();
  }

  async #openQuestions(): Promise<void> {
    const { port, sessionId } = this.#options;
    const { dialogs } = await port.call("dialog/list", { sessionId }).catch(() => ({ dialogs: [] }));
    for (const dialog of dialogs) if (!this.#isOver) this.#opened(dialog);
  }

  #opened(dialog: Dialog): void {
    this.#questions.opened(dialog);
    this.#version.asked?.(dialog.dialogId);
  }

  async #tellMissed(isWanted: () => boolean): Promise<void> {
    const { port, sessionId, outbox } = this.#options;
    const live = this.#live;
    const isLast = (entry: PiEntry): boolean => live.isLast(entry);
    const history = await readHistory({ port, sessionId, outbox, isLast }).catch(() => undefined);
    if (!isWanted()) return history?.branch.close();
    const user = (message: PiMessage, origin: MessageOrigin): void => this.#user(message, origin);
    const isKnown =
      history !== undefined && (await tellMissed(history, { outbox, live, user, isWanted }).catch(() => false));
    if (!isWanted()) return;
    if (history?.isRunning !== true) this.#live.abandon();
    this.#version.missed?.(history?.isRunning === true);
    void this.#openQuestions();
    if (!isKnown) this.#notice("warning", "Some of what happened in the session cannot be shown here.");
  }

  #receive(notification: SessionNotification): void {
    this.#tell(notification);
    this.#version.received?.(notification);
  }

  #tell(notification: SessionNotification): void {
    switch (notification.name) {
      case "session/event":
        this.#event(notification.params);
        break;
      case "run/ended":
        this.#usages.ended(notification.params);
        this.#prompts.runEnded(notification.params.runId);
        this.#live.runEnded(notification.params);
        break;
      case "session/formerText": {
        const { toolCallId, text } = notification.params;
        this.#live.formerText(toolCallId, text);
        break;
      }
      case "dialog/opened":
        this.#opened(notification.params.dialog);
        break;
      case "dialog/resolved":
        this.#questions.resolved(notification.params);
        break;
      case "session/updated":
        this.#announcements.updated(notification.params.session);
        break;
      case "session/foreignWrite":
        this.#notice("warning", "Another program has written to the session's file.");
        break;
      case "session/navigated":
        this.#notice("info", "The session continues from another message. Load it again to see its history.");
        break;
      case "session/replaced":
        this.#notice("info", `pi continues in another session: ${notification.params.to}`);
        break;
      default:
    }
  }

  #event(envelope: NotificationParams<"session/event">): void {
    const { event, at, generation, promptId, by } = envelope;
    this.#usages.event(envelope);
    const { type, method, notifyType, message: said }: PiEvent = event;
    if (type === "extension_ui_request" && method === "notify") {
      this.#notice(notifyType === "error" || notifyType === "warning" ? notifyType : "info", String(said));
      return;
    }
    this.#live.event(event, at, { generation, by });
    const message = type === "message_end" ? said : messageInEntry(event);
    if (!isRecord(message)) return;
    if (message["role"] === "assistant") this.#usages.answered(message["usage"]);
    if (message["role"] === "user") this.#user(message, { ...(promptId && { promptId }), ...(by && { by }) });
  }

  #user(message: PiMessage, { promptId, by }: MessageOrigin): void {
    const isOwn = promptId !== undefined && this.#prompts.isOwn(promptId);
    if (!isOwn || this.#version.echoes) this.#live.user(message, isOwn ? undefined : by);
    if (promptId === undefined) return;
    this.#prompts.takenIn(promptId);
    this.#version.inserted?.(promptId, messageIdOf(message));
  }

  #notice(severity: "info" | "warning" | "error", title: string): void {
    this.#live.notice({ severity, title });
  }

  #update(update: SessionUpdate, block?: number): void {
    for (const each of this.#version.encode?.(update, block) ?? [update]) this.#send(each);
  }

  #send(update: object): void {
    if (!this.#isOver) this.#options.outbox.update(this.#options.sessionId, update);
  }
}

/** The message of an entry that pi has written and not reported. */
function messageInEntry({ type, entry }: PiEvent): unknown {
  return type === "rpcd_entry" && isRecord(entry) && entry["type"] === "message" ? entry["message"] : undefined;
}
