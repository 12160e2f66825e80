import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
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
import type { Outbox } from "./outbox.ts";
import type { Place, Port, SessionNotification } from "./port.ts";
import { promptContent } from "./prompt-content.ts";
import { Questions } from "./questions.ts";
import type { Params as Given, RpcPeer } from "./rpc-peer.ts";
import { LiveUpdates, type LiveUpdatesOptions } from "./updates/live-updates.ts";
import type { ToolPlace } from "./updates/paths.ts";
import { Replay } from "./updates/replay.ts";
import type { Entries } from "./updates/told.ts";
import { noUsage, type RunUsage, withAnswer } from "./updates/usage.ts";

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

/** A prompt that the client waits for. */
interface Waiting {
  /** The client has left the session. */
  readonly left: AbortController;
  isCancelled: boolean;
}

const cancelled = { stopReason: "cancelled" };

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
  /** The prompt that began the run. */
  #started: string | undefined;
  /** Prompts that the client waits for. */
  readonly #prompts = new Set<Waiting>();
  /** The runs that this client's prompts began, and that have not ended. */
  readonly #runs = new Set<string>();
  #lastCancel: Promise<void> = Promise.resolve();
  /** Waits for the last one. */
  #nextCancel: Promise<void> | undefined;
  #leave: (() => void) | undefined;
  #place: Place | undefined;
  /** Otherwise nothing is taken: the client does not read, or gets the history, or what it has missed. */
  #reading: "all" | "full" | "replay" | "missed" = "all";
  #isOver = false;
  /** A user's message whose sender is not known yet. */
  #unsent: PiEvent | undefined;
  #chosen: Chosen | undefined;
  /** In the newest run. */
  #spent = noUsage;
  /** The commands that the client knows, as JSON. */
  #commandsText = "";
  /** Whether the client is being told what is chosen, and whether it has to be told again after that. */
  #telling: "no" | "once" | "again" = "no";
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
      waitingTool: () => this.#live.runningTool,
      update: (update) => this.#update(update),
      onUnasked: (title) => this.#notice("warning", `Nobody could answer an extension's question: ${title}`),
    });
  }

  get id(): string {
    return this.#options.sessionId;
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

  /** Tells the client which thinking level the session has now: pi takes the nearest one that the model has. */
  async tellLevel(): Promise<Choices> {
    const choices = await this.choices();
    this.#update({ sessionUpdate: "current_mode_update", currentModeId: choices.modes.currentModeId });
    return choices;
  }

  /** Sends what happens in the session, from `place` on or from before what is open in its run. */
  follow(place?: Place): void {
    if (this.#isOver) return;
    this.#reading = "all";
    // A question names the tool that waits for its answer, so its events come first.
    void this.#join(place).then(() => this.#openQuestions());
    void this.#tellCommands();
  }

  /**
   * Sends the session's history; live updates wait until {@link resume}. Resolves when the client has taken it, with what
   * can be chosen.
   */
  async replay(): Promise<Choices> {
    const { port, sessionId, outbox, client } = this.#options;
    this.#reading = "replay";
    this.#unsent = undefined;
    this.#live.close();
    this.#questions.withdraw();
    await this.#join();
    const [entries, { runId }, choices] = await Promise.all([
      port.call("session/getEntries", { sessionId }),
      port.call("session/get", { sessionId }),
      this.choices(),
    ]);
    const replay = new Replay(entries, {
      place: this.#toolPlace,
      compaction: client.compaction,
      isRunning: runId !== undefined,
      contextSize: this.#chosen?.model?.contextWindow,
    });
    const release = outbox.hold(entries);
    try {
      for (const update of replay.updates()) {
        this.#update(update);
        await outbox.emptied;
        if (this.#isOver) break;
      }
    } finally {
      release();
    }
    this.#live = this.#translated({ told: replay.told });
    return choices;
  }

  /** Goes on from what the session has, without telling it. Resolves with what can be chosen. */
  async skip(): Promise<Choices> {
    const { port, sessionId } = this.#options;
    const [choices, { name }, { cost, userMessages }] = await Promise.all([
      this.choices(),
      port.call("session/get", { sessionId }),
      port.call("session/getStats", { sessionId }),
    ]);
    // Only the very first message of a session becomes its title.
    const title = name ?? (userMessages === 0 ? undefined : "");
    this.#live = this.#translated({ title, cost });
    return choices;
  }

  /** Goes on after {@link replay}. */
  resume(): void {
    this.follow(this.#place);
  }

  async prompt({ prompt, _meta }: Given, signal: AbortSignal): Promise<object> {
    const { port, sessionId } = this.#options;
    const { text, images } = promptContent(prompt as Parameters<typeof promptContent>[0]);
    const promptId = randomUUID();
    const waiting: Waiting = { left: new AbortController(), isCancelled: false };
    this.#prompts.add(waiting);
    // The run goes on if the client has gone.
    const stop = (): void => void (this.#isOver || this.cancel());
    signal.addEventListener("abort", stop, { once: true });
    try {
      // An abort that was asked for before must not end this prompt's run.
      await (this.#nextCancel ?? this.#lastCancel);
      const builtin = await this.#builtinIn(text);
      if (waiting.isCancelled) return cancelled;
      if (builtin !== undefined) return await this.#perform(builtin);
      this.#own.set(promptId, text);
      const given = isRecord(_meta) && isRecord(_meta["pi-rpcd"]) ? _meta["pi-rpcd"]["ifRunning"] : undefined;
      const ifRunning: Params<"session/prompt">["ifRunning"] =
        given === "followUp" || given === "refuse" ? given : "steer";
      const params = { sessionId, promptId, text, ifRunning, ...(images.length === 0 ? {} : { images: [...images] }) };
      const taken = await port.call("session/prompt", params);
      if (taken.disposition === "started" && taken.runId !== undefined) this.#runs.add(taken.runId);
      // The cancellation may have come before the daemon had the prompt.
      if (waiting.isCancelled) await this.#end(promptId, taken.runId);
      const result = taken.disposition === "handled" ? taken : await this.#settled(promptId, waiting.left.signal);
      await this.#caughtUp();
      return answerTo(waiting.isCancelled ? { ...result, outcome: "aborted" } : result, this.#spent);
    } catch (error) {
      if (!waiting.left.signal.aborted && !waiting.isCancelled) throw error;
      return cancelled;
    } finally {
      this.#own.delete(promptId);
      this.#prompts.delete(waiting);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Cancels the run's questions, then the run, whoever began it. Calls that come during a call share the next one. */
  cancel(): Promise<void> {
    for (const prompt of this.#prompts) prompt.isCancelled = true;
    this.#nextCancel ??= this.#lastCancel.then(() => {
      this.#nextCancel = undefined;
      this.#lastCancel = this.#cancelNow();
      return this.#lastCancel;
    });
    return this.#nextCancel;
  }

  /** The abort cancels the questions first. */
  async #cancelNow(): Promise<void> {
    const { port, sessionId } = this.#options;
    // In this order, but at once: the end of a prompt can wait for the answer to its question.
    const cancels = Array.from(this.#own.keys(), (promptId) => port.call("prompt/cancel", { promptId }));
    await Promise.allSettled([...cancels, port.call("session/abort", { sessionId })]);
  }

  /** Ends the run if nobody else follows the session. Otherwise it ends only the runs that this client began. */
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
    this.#questions.withdraw();
    for (const { left } of this.#prompts) left.abort();
    for (const { resolve } of this.#waits) resolve();
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
      contextSize: () => this.#chosen?.model?.contextWindow,
      send: (update) => this.#update(update),
      ...known,
    });
  }

  /** Ends one prompt, and the run that takes it in. */
  async #end(promptId: string, runId: string | undefined): Promise<void> {
    const { port, sessionId } = this.#options;
    await port.call("prompt/cancel", { promptId }).catch(() => {});
    if (runId !== undefined) await port.call("session/abort", { sessionId, expectedRunId: runId }).catch(() => {});
  }

  /** Resolves when it has begun or ended. */
  #join(place?: Place): Promise<void> {
    const { port, sessionId } = this.#options;
    const begun = Promise.withResolvers<void>();
    const leave = port.follow(
      sessionId,
      {
        begin: ({ cursor, epoch }) => {
          this.#place = { after: cursor, epoch };
          if (this.#reading === "all") this.#advance(cursor);
          begun.resolve();
        },
        resume: ({ epoch }) => {
          if (this.#place !== undefined) this.#place = { ...this.#place, epoch };
        },
        receive: (notification) => this.#receive(notification),
        gap: ({ to, onlyDeltas }) => {
          if (this.#reading !== "all") return;
          this.#live.lose({ onlyDeltas });
          if (onlyDeltas === true) this.#advance(to);
          else void this.#tellMissed({ ...this.#place, after: to });
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
    this.#leave = () => {
      leave();
      begun.resolve();
    };
    return begun.promise;
  }

  #receive(notification: SessionNotification): void {
    if (this.#reading !== "all") return;
    this.#take(notification);
    const { params } = notification;
    if ("seq" in params) this.#advance(params.seq);
    if (this.#options.outbox.isFull) void this.#pause();
  }

  /** What happens meanwhile comes from the session's log, once the client has read the rest. */
  async #pause(): Promise<void> {
    this.#reading = "full";
    await this.#options.outbox.emptied;
    // A replay that has begun meanwhile goes on by itself.
    if (this.#isOver || this.#reading !== "full") return;
    this.#reading = "all";
    void this.#join(this.#place);
  }

  /** The log has lost more than deltas up to this place: pi's entries have the rest. */
  async #tellMissed(place: Place): Promise<void> {
    const { port, sessionId } = this.#options;
    this.#reading = "missed";
    const [entries, info] = await Promise.all([
      port.call("session/getEntries", { sessionId }),
      port.call("session/get", { sessionId }),
    ]).catch(() => []);
    const isStill = (): boolean => !this.#isOver && this.#reading === "missed";
    if (!isStill()) return;
    const isKnown = entries !== undefined && (await this.#tellEntries(entries, isStill));
    if (!isStill()) return;
    if (info?.runId === undefined) this.#live.runEnded();
    if (!isKnown) this.#notice("warning", "Some of what happened in the session cannot be shown here.");
    this.#reading = "all";
    this.#advance(place.after);
    void this.#join(place);
  }

  /** Tells the entries that the client lacks, as fast as it reads. Returns whether it is known which these are. */
  async #tellEntries(entries: Entries, isStill: () => boolean): Promise<boolean> {
    const { outbox } = this.#options;
    const missed = this.#live.missed(entries, (message) => {
      this.#unsent = message;
      this.#sent(false, undefined);
    });
    const release = outbox.hold(entries.entries);
    try {
      for (;;) {
        await outbox.emptied;
        if (!isStill()) return true;
        const told = missed.next();
        if (told.done === true) return told.value;
      }
    } finally {
      release();
    }
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
        const { prompt } = notification.params;
        if (prompt.state === "started") this.#started = prompt.promptId;
        if (prompt.state === "inserted") this.#sent(this.#own.delete(prompt.promptId), prompt.by?.name);
        break;
      }
      case "run/started":
        this.#spent = noUsage;
        break;
      case "run/ended":
        this.#sent(false, undefined);
        this.#runs.delete(notification.params.runId);
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
      case "dialog/resolved":
        this.#questions.resolved(notification.params);
        break;
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
    const { type, message } = event;
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

  /** Shows the last user's message, now that its sender is known, or that nothing more can tell who it was. */
  #sent(isOwn: boolean, by: string | undefined): void {
    const message = this.#unsent;
    this.#unsent = undefined;
    if (message === undefined || isOwn || this.#isOwn(message)) return;
    this.#live.user(message, by === undefined ? undefined : { by });
  }

  #isOwn(message: PiEvent): boolean {
    const text = textOf(message["content"]);
    for (const [promptId, own] of this.#own) if (own === text) return this.#own.delete(promptId);
    // Templates, skills and extensions rewrite texts.
    return this.#started !== undefined && this.#own.delete(this.#started);
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
    if (model === undefined) return;
    if (this.#telling !== "no") this.#telling = "again";
    else if (!isSame) void this.#tellChoices();
  }

  /** What changes while the choices are read may be missing in them. */
  async #tellChoices(): Promise<void> {
    do {
      this.#telling = "once";
      await this.#tellChoicesNow();
    } while (this.#telling !== "once" && !this.#isOver);
    this.#telling = "no";
  }

  async #tellChoicesNow(): Promise<void> {
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

  /** pi's own commands come first. */
  async #builtinIn(text: string): Promise<Builtin | undefined> {
    const builtin = builtinIn(text);
    if (builtin === undefined) return undefined;
    // A session without a pi may not know its commands.
    const commands = await this.#piCommands().catch(() => []);
    return commands.some(({ name }) => name === builtin.name) ? undefined : builtin;
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
  if (outcome === "aborted" || state === "withdrawn") return answer("cancelled");
  if (disposition === "handled") return answer("end_turn");
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
