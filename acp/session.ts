import { randomUUID } from "node:crypto";
import type { AvailableCommand, SessionUpdate } from "@agentclientprotocol/sdk";
import { WireError } from "../protocol/errors.ts";
import type { Params } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import type { PromptResult } from "../protocol/prompt.ts";
import type { SessionInfo } from "../protocol/session.ts";
import { AcpError } from "./acp-error.ts";
import { type Builtin, builtinIn, builtins } from "./builtins.ts";
import { type Choices, type Chosen, choicesOf, readChosen } from "./choices.ts";
import type { ClientAbilities } from "./client-abilities.ts";
import { LiveUpdates, type LiveUpdatesOptions } from "./live-updates.ts";
import type { Outbox } from "./outbox.ts";
import type { Place, Port, SessionNotification } from "./port.ts";
import { promptContent } from "./prompt-content.ts";
import { Questions } from "./questions.ts";
import { Replay } from "./replay.ts";
import type { Params as Given, RpcPeer } from "./rpc-peer.ts";
import { noUsage, type RunUsage, withAnswer } from "./usage.ts";

export interface SessionOptions {
  readonly sessionId: string;
  readonly cwd: string;
  readonly port: Port;
  readonly peer: RpcPeer;
  readonly outbox: Outbox;
  readonly client: ClientAbilities;
  /** Writes an exported session to a file, and returns its path. Undefined: the client has no files here. */
  readonly saveExport: ((path: string | undefined, html: string) => Promise<string>) | undefined;
  /** The session was closed, or cannot be followed any more. */
  readonly onEnd: () => void;
}

type PiEvent = Readonly<Record<string, unknown>>;

/** How long one wait for a run takes before it is repeated. */
const waitMs = 60_000;

/** The words of providers that refuse a key. */
const refusedKey = /\b(?:401|403)\b|unauthori[sz]ed|invalid (?:x-)?api[ -]key|authentication/i;

/** One session on a client's connection. */
export class AcpSession {
  readonly #options: SessionOptions;
  #live: LiveUpdates;
  readonly #questions: Questions;
  /** Prompts of this client that pi has not taken in, with their texts. */
  readonly #own = new Map<string, string>();
  /** Prompts that the client waits for. */
  readonly #prompts = new Set<AbortController>();
  /** The runs that this client's prompts began, and that have not ended. */
  readonly #runs = new Set<string>();
  /** The tool calls that have not ended. */
  readonly #tools = new Set<string>();
  #leave: (() => void) | undefined;
  #place: Place | undefined;
  /** Nothing is taken: the client gets what it has missed, or does not read. */
  #isPaused = false;
  #isOver = false;
  /** A user's message whose sender is not known yet. */
  #unsent: PiEvent | undefined;
  #chosen: Chosen | undefined;
  /** In the newest run. */
  #spent = noUsage;
  /** The commands that the client knows, as JSON. */
  #commandsText = "";
  #info: Pick<SessionInfo, "name" | "generation"> | undefined;
  /** Waits until events up to a number are out. */
  readonly #waits = new Set<{ readonly cursor: number; readonly resolve: () => void }>();

  constructor(options: SessionOptions) {
    const { sessionId, port, peer, client } = options;
    this.#options = options;
    this.#live = this.#translated({});
    this.#questions = new Questions({
      sessionId,
      port,
      peer,
      hasForms: client.forms,
      waitingTool: () => (this.#tools.size === 1 ? this.#tools.values().next().value : undefined),
      update: (update) => this.#update(update),
      onUnasked: (title) => this.#notice("warning", `Nobody could answer an extension's question: ${title}`),
    });
  }

  /** Reads what can be chosen. */
  async choices(): Promise<Choices> {
    this.#chosen = await readChosen(this.#options.port, this.#options.sessionId);
    return choicesOf(this.#chosen);
  }

  get hasModel(): boolean {
    return this.#chosen?.models.length !== 0;
  }

  /** Tells the user of this client alone. */
  warn(title: string): void {
    this.#notice("warning", title);
  }

  /** Tells what is chosen now, where the client may take another choice for the session's. */
  async tellLevel(): Promise<void> {
    const { modes } = await this.choices();
    this.#update({ sessionUpdate: "current_mode_update", currentModeId: modes.currentModeId });
  }

  /** Sends what happens in the session, from `place` on or from before what is open in its run. */
  follow(place?: Place): void {
    this.#isPaused = false;
    void this.#join(place);
    void this.#tellCommands();
    void this.#openQuestions();
  }

  /** Sends the session's history; live updates wait until {@link follow}. Resolves when the client has taken it. */
  async replay(): Promise<void> {
    const { port, sessionId, cwd, outbox, client } = this.#options;
    this.#isPaused = true;
    this.#place = undefined;
    await this.#join();
    const [entries, { runId }] = await Promise.all([
      port.call("session/getEntries", { sessionId }),
      port.call("session/get", { sessionId }),
    ]);
    const replay = new Replay(entries, {
      place: { cwd },
      compaction: client.compaction,
      isRunning: runId !== undefined,
      contextSize: this.#chosen?.model?.contextWindow,
    });
    const release = outbox.hold(entries);
    for (const update of replay.updates()) {
      this.#update(update);
      await outbox.emptied;
      if (this.#isOver) break;
    }
    release();
    this.#live.close();
    this.#live = this.#translated({ told: replay.told });
  }

  /** The client has the session without its history. */
  async resumeWithout(name: string | undefined): Promise<void> {
    const { port, sessionId } = this.#options;
    const { cost } = await port.call("session/getStats", { sessionId });
    this.#live.close();
    // The next prompt is not the first: it gives no title.
    this.#live = this.#translated({ title: name ?? "", cost });
  }

  /** Goes on after {@link replay}. */
  resume(): void {
    this.follow(this.#place);
  }

  async prompt({ prompt, _meta }: Given, signal: AbortSignal): Promise<object> {
    const { port, sessionId } = this.#options;
    const { text, images } = promptContent(prompt as Parameters<typeof promptContent>[0]);
    const promptId = randomUUID();
    const cancelled = new AbortController();
    this.#prompts.add(cancelled);
    // The run goes on if the client has gone.
    const stop = (): void => void (this.#isOver || this.cancel().catch(() => {}));
    signal.addEventListener("abort", stop, { once: true });
    try {
      const builtin = text.startsWith("/") ? builtinIn(text, await this.#piCommands()) : undefined;
      if (builtin !== undefined) return await this.#perform(builtin);
      this.#own.set(promptId, text);
      const given = isRecord(_meta) && isRecord(_meta["pi-rpcd"]) ? _meta["pi-rpcd"]["ifRunning"] : undefined;
      const ifRunning: Params<"session/prompt">["ifRunning"] =
        given === "followUp" || given === "refuse" ? given : "steer";
      const params = { sessionId, promptId, text, ifRunning, ...(images.length === 0 ? {} : { images: [...images] }) };
      const taken = await port.call("session/prompt", params);
      if (taken.disposition === "started" && taken.runId !== undefined) this.#runs.add(taken.runId);
      const result = taken.disposition === "handled" ? taken : await this.#settled(promptId, cancelled.signal);
      await this.#caughtUp();
      return answerTo(result, this.#spent);
    } catch (error) {
      if (!cancelled.signal.aborted) throw error;
      return { stopReason: "cancelled" };
    } finally {
      this.#own.delete(promptId);
      this.#prompts.delete(cancelled);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Ends the run, whoever began it, after its questions. */
  async cancel(): Promise<void> {
    const { port, sessionId } = this.#options;
    const { dialogs } = await port.call("dialog/list", { sessionId });
    const answer = { cancelled: true } as const;
    await Promise.allSettled(dialogs.map(({ dialogId }) => port.call("dialog/respond", { dialogId, answer })));
    await Promise.allSettled(Array.from(this.#own.keys(), (promptId) => port.call("prompt/cancel", { promptId })));
    await port.call("session/abort", { sessionId });
  }

  /** Ends the run, if nobody else follows the session or this client began it. */
  async close(): Promise<void> {
    const { port, sessionId } = this.#options;
    try {
      await port.call("session/abort", { sessionId, ifAlone: true });
    } catch (error) {
      if (!(error instanceof WireError) || error.kind !== "session_busy") throw error;
      for (const expectedRunId of this.#runs)
        await port.call("session/abort", { sessionId, expectedRunId }).catch(() => {});
    }
  }

  /** This client leaves the session, which goes on. */
  leave(): void {
    this.#isOver = true;
    this.#leave?.();
    this.#live.close();
    this.#questions.close();
    for (const prompt of this.#prompts) prompt.abort();
    for (const { resolve } of this.#waits) resolve();
  }

  #translated(known: Pick<LiveUpdatesOptions, "told" | "title" | "cost">): LiveUpdates {
    const { cwd, client } = this.#options;
    return new LiveUpdates({
      place: { cwd },
      client,
      contextSize: () => this.#chosen?.model?.contextWindow,
      send: (update) => this.#update(update),
      ...known,
    });
  }

  /** Resolves when it has begun. */
  #join(place?: Place): Promise<void> {
    const { port, sessionId } = this.#options;
    const begun = Promise.withResolvers<void>();
    this.#leave = port.follow(
      sessionId,
      {
        begin: ({ cursor, epoch }) => {
          this.#place = { after: cursor, epoch };
          begun.resolve();
        },
        receive: (notification) => this.#receive(notification),
        gap: ({ to, onlyDeltas }) => {
          if (this.#isPaused) return;
          this.#live.lose({ onlyDeltas });
          this.#advance(to);
          if (onlyDeltas !== true)
            this.#notice("warning", "Some of what happened in the session cannot be shown here.");
        },
        end: () => {
          begun.resolve();
          if (this.#isOver) return;
          this.#live.runEnded();
          this.leave();
          this.#options.onEnd();
        },
      },
      place,
    );
    return begun.promise;
  }

  #receive(notification: SessionNotification): void {
    if (this.#isPaused) return;
    this.#take(notification);
    const { params } = notification;
    if ("seq" in params) this.#advance(params.seq);
    if (this.#options.outbox.isFull) void this.#pause();
  }

  /** What happens meanwhile comes from the session's log, once the client has read the rest. */
  async #pause(): Promise<void> {
    this.#isPaused = true;
    await this.#options.outbox.emptied;
    if (this.#isOver) return;
    this.#isPaused = false;
    void this.#join(this.#place);
  }

  #advance(seq: number): void {
    this.#place = { ...this.#place, after: seq };
    for (const wait of this.#waits) {
      if (wait.cursor > seq) continue;
      this.#waits.delete(wait);
      wait.resolve();
    }
  }

  /** Resolves when everything is out that the session has said until now. */
  async #caughtUp(): Promise<void> {
    const { cursor } = await this.#options.port.call("session/get", { sessionId: this.#options.sessionId });
    if (this.#isOver || (this.#place?.after ?? 0) >= cursor) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waits.add({ cursor, resolve });
    await promise;
  }

  #take(notification: SessionNotification): void {
    switch (notification.name) {
      case "session/event":
        this.#event(notification.params.event, notification.params.at);
        break;
      case "prompt/updated": {
        const { prompt, by } = notification.params;
        if (prompt.state === "inserted") this.#sent(this.#own.delete(prompt.promptId), by?.name);
        break;
      }
      case "run/started":
        this.#spent = noUsage;
        break;
      case "run/ended":
        this.#sent(false, undefined);
        this.#runs.delete(notification.params.runId);
        this.#tools.clear();
        this.#live.runEnded();
        break;
      case "session/formerText": {
        const { toolCallId, text } = notification.params;
        this.#live.formerText(toolCallId, text);
        break;
      }
      case "dialog/opened":
        this.#questions.opened(notification.params.dialog);
        break;
      case "dialog/resolved": {
        const { dialogId, how, title } = notification.params;
        this.#questions.resolved(dialogId, how, title);
        break;
      }
      case "session/updated":
        this.#updated(notification.params.session);
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

  #event(event: PiEvent, at: number): void {
    const { type, toolCallId, message } = event;
    if (type === "tool_execution_start") this.#tools.add(String(toolCallId));
    if (type === "tool_execution_end") this.#tools.delete(String(toolCallId));
    if (type === "message_start" || type === "rpcd_entry") this.#sent(false, undefined);
    if (type === "extension_ui_request" && event["method"] === "notify") {
      const severity =
        event["notifyType"] === "error" || event["notifyType"] === "warning" ? event["notifyType"] : "info";
      this.#notice(severity, String(event["message"]));
      return;
    }
    this.#live.event(event, at);
    const said = type === "message_end" ? message : messageInEntry(event);
    if (!isRecord(said)) return;
    if (said["role"] === "user") this.#unsent = said;
    else if (said["role"] === "assistant") this.#spent = withAnswer(this.#spent, said["usage"]);
  }

  /** The sender of the last user's message is known, or nobody will say who it was. */
  #sent(isOwn: boolean, by: string | undefined): void {
    const message = this.#unsent;
    this.#unsent = undefined;
    if (message === undefined || isOwn || this.#isOwn(message)) return;
    this.#live.user(message, by === undefined ? undefined : { by });
  }

  #isOwn(message: PiEvent): boolean {
    const text = textOf(message["content"]);
    for (const [promptId, own] of this.#own) if (own === text) return this.#own.delete(promptId);
    return false;
  }

  #updated(session: SessionInfo): void {
    const { name, generation, model, thinkingLevel, updatedAt } = session;
    const former = this.#info;
    this.#info = { generation, ...(name === undefined ? {} : { name }) };
    if (name !== undefined && name !== former?.name)
      this.#update({ sessionUpdate: "session_info_update", title: name, updatedAt: new Date(updatedAt).toISOString() });
    if (former !== undefined && generation !== former.generation) void this.#tellCommands();
    const { model: knownModel, level } = this.#chosen ?? {};
    const isSame = model?.id === knownModel?.id && model?.provider === knownModel?.provider && thinkingLevel === level;
    if (model !== undefined && !isSame) void this.#tellChoices();
  }

  async #tellChoices(): Promise<void> {
    const former = this.#chosen?.level;
    const choices = await this.choices().catch(() => undefined);
    if (choices === undefined || this.#isOver) return;
    const { configOptions, modes } = choices;
    this.#update({ sessionUpdate: "config_option_update", configOptions });
    if (modes.currentModeId !== former)
      this.#update({ sessionUpdate: "current_mode_update", currentModeId: modes.currentModeId });
  }

  async #tellCommands(): Promise<void> {
    const commands = await this.#piCommands().catch(() => []);
    const names = new Set(commands.map(({ name }) => name));
    const own = builtins.filter(({ name }) => !names.has(name) && this.#canPerform(name));
    const availableCommands = [...commands, ...own];
    const text = JSON.stringify(availableCommands);
    if (this.#isOver || text === this.#commandsText) return;
    this.#commandsText = text;
    this.#update({ sessionUpdate: "available_commands_update", availableCommands });
  }

  #canPerform(builtin: string): boolean {
    return builtin !== "export" || this.#options.saveExport !== undefined;
  }

  async #piCommands(): Promise<AvailableCommand[]> {
    const { commands } = await this.#options.port.call("session/getCommands", { sessionId: this.#options.sessionId });
    return commands.map(({ name, description = "" }) => ({ name, description, input: { hint: "arguments" } }));
  }

  async #openQuestions(): Promise<void> {
    const { port, sessionId } = this.#options;
    const { dialogs } = await port.call("dialog/list", { sessionId }).catch(() => ({ dialogs: [] }));
    for (const dialog of dialogs) if (!this.#isOver) this.#questions.opened(dialog);
  }

  async #settled(promptId: string, signal: AbortSignal): Promise<PromptResult> {
    for (;;) {
      try {
        return await this.#options.port.call("prompt/wait", { promptId, timeoutMs: waitMs }, signal);
      } catch (error) {
        if (!(error instanceof WireError && error.kind === "deadline_exceeded")) throw error;
      }
    }
  }

  async #perform(builtin: Builtin): Promise<object> {
    const words = await builtin.perform(this.#options);
    if (words !== undefined)
      this.#update({
        sessionUpdate: "agent_message_chunk",
        messageId: randomUUID(),
        content: { type: "text", text: words },
      });
    await this.#caughtUp();
    return { stopReason: "end_turn" };
  }

  #notice(severity: "info" | "warning" | "error", title: string): void {
    this.#live.notice({ severity, title });
  }

  #update(update: SessionUpdate): void {
    if (!this.#isOver) this.#options.outbox.update(this.#options.sessionId, update);
  }
}

/** The answer to a prompt whose run has ended. Throws {@link AcpError} for a run that failed. */
function answerTo(result: PromptResult, spent: RunUsage): object {
  const { promptId, runId, state, outcome, stopReason, error, disposition } = result;
  const answer = (reason: string): object => ({
    stopReason: reason,
    _meta: { "pi-rpcd": { promptId, ...(runId === undefined ? {} : { runId, ...spent }) } },
  });
  if (disposition === "handled") return answer("end_turn");
  if (outcome === "aborted" || state === "withdrawn") return answer("cancelled");
  if (outcome === "failed" || stopReason === "error") {
    const words = error ?? "The model's provider failed.";
    throw new AcpError(refusedKey.test(words) ? "authRequired" : "internalError", words, { promptId, runId });
  }
  if (outcome !== "settled")
    throw new AcpError("internalError", "pi ended in the middle of the run.", { promptId, runId, state });
  return answer(stopReason === "length" ? "max_tokens" : "end_turn");
}

/** The message of an entry that pi has written and not reported. */
function messageInEntry({ type, entry }: PiEvent): unknown {
  return type === "rpcd_entry" && isRecord(entry) && entry["type"] === "message" ? entry["message"] : undefined;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block) => (isRecord(block) && block["type"] === "text" ? [String(block["text"])] : []))
    .join("");
}
