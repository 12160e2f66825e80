import type { LogNotification } from "../../client/index.ts";
import {
  isToolExecutionEnd,
  isToolExecutionStart,
  type PiEvent,
  type PiMessage,
  type SessionEnvelope,
  type ToolExecutionEndEvent,
  textOf,
} from "../../client/pi-events.ts";
import type { By } from "../../protocol/client-identity.ts";
import type { NotificationParams } from "../../protocol/notifications.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { gist } from "../notification-gist.ts";
import { type Said, saidByExtension } from "../run-printer.ts";
import { oneLine, shorten } from "../text.ts";
import { type Canvas, elapsed, type ToolResult } from "./canvas.ts";
import { imagesOf, MessageView } from "./message-view.ts";
import { Usage } from "./usage.ts";

export interface SessionViewOptions {
  readonly canvas: Canvas;
  /** Whether to show the model's thinking. */
  readonly thinking: boolean;
  /** Whether another part of the program shows dialogs. */
  readonly asks: boolean;
  /** This user's client: effects of its calls are shown without a name. */
  readonly self?: string | undefined;
  /** The usage of the run that was active before the first notification. */
  readonly usage?: Usage;
}

/** The states of a delivery that are shown. */
const shownStates: ReadonlySet<string> = new Set(["delivered", "parked", "dropped", "cancelled", "expired", "failed"]);
const maxTools = 1_000;
const maxAuthors = 100;
const maxStatuses = 10;

/** Shows a session's notifications in their order, live or replayed. */
export class SessionView {
  readonly #canvas: Canvas;
  readonly #messages: MessageView;
  readonly #asks: boolean;
  readonly #self: string | undefined;
  /** The running tool calls and their start times. */
  readonly #tools = new Map<string, number>();
  readonly #deliveries = new Map<string, string>();
  /** The clients of other users' prompts, by the beginning of the text. */
  readonly #authors = new Map<string, string>();
  /** What extensions report about themselves, by their keys. */
  readonly #statuses = new Map<string, string>();
  #usage: Usage;
  /** What the run waits for, and since when. */
  #activity: { readonly what: string; readonly since: number } | undefined;
  #heardAt = 0;
  #name: string | undefined;
  #state: string | undefined;
  #model: string | undefined;
  #error: string | undefined;
  #isRunning = false;
  #isCompacting = false;
  /** The pushes whose text was shown. */
  readonly #pushed = new Set<string>();

  constructor({ canvas, thinking, asks, self, usage = new Usage() }: SessionViewOptions) {
    this.#canvas = canvas;
    this.#messages = new MessageView({ canvas, thinking });
    this.#asks = asks;
    this.#self = self;
    this.#usage = usage;
  }

  /** What the session does now; undefined while it waits for a prompt. */
  get activity(): { readonly what: string; readonly since: number; readonly heardAt: number } | undefined {
    return this.#activity && { ...this.#activity, heardAt: this.#heardAt };
  }

  /** The facts of the session that change: its name, its model, what extensions report. */
  get facts(): readonly string[] {
    return [this.#name, this.#model, ...this.#statuses.values()].filter((fact) => fact !== undefined);
  }

  /** Whether a run is active according to the notifications. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Whether a compaction is active. */
  get isCompacting(): boolean {
    return this.#isCompacting;
  }

  /** Takes the session's initial state; shows nothing. */
  begin(session: SessionInfo): void {
    this.#state = session.state;
    this.#model = modelOf(session);
    this.#name = session.name;
    this.#isRunning = session.runId !== undefined;
    if (this.#isRunning) this.#activity ??= { what: "working", since: Date.now() };
    else if (!this.#isCompacting) this.#activity = undefined;
  }

  /** Never throws: a notification of an unknown shape, of an extension or another pi, is shown by its name. */
  show(notification: LogNotification): void {
    this.#heardAt = Date.now();
    try {
      this.#show(notification);
    } catch {
      this.#note(`${notification.name}: cannot be shown`, "yellow");
    }
  }

  #show(notification: LogNotification): void {
    const { name, params } = notification;
    switch (name) {
      case "session/event":
        this.#event(params);
        break;
      case "session/gap":
        // The complete value follows at the end of the stream.
        if (params.onlyDeltas !== true) this.#note(`… a part is missing (${params.reason})`, "yellow");
        break;
      case "run/started":
        this.#usage = new Usage(true);
        this.#isRunning = true;
        this.#does(this.#waiting());
        this.#note(`── run${this.#by(params)} ${time(params.at)} ──`);
        break;
      case "run/ended":
        this.#runEnded(params);
        break;
      case "session/updated":
        this.#updated(params);
        break;
      case "prompt/updated":
        this.#remember(params);
        if (params.prompt.state === "queued") this.#note(`queued${this.#by(params)}: ${params.prompt.text}`);
        else if (params.prompt.state === "lost") this.#note(`✘ lost: ${params.prompt.text}`, "red");
        break;
      case "dialog/opened":
        if (!this.#asks) this.#note(`? ${params.dialog.title}`, "magenta");
        break;
      case "dialog/unsupported":
        this.#note(`an extension called ctx.ui.${params.method}(), which needs a terminal`, "yellow");
        break;
      case "dialog/resolved":
        this.#resolved(params);
        break;
      case "delivery/updated":
        this.#delivery(params);
        break;
      case "pending/updated":
        this.#note(`in the background: ${params.pending.map(({ label }) => label).join(", ") || "nothing"}`);
        break;
      case "context/failed":
        this.#note(`the session started without its context: ${params.error.message}`, "yellow");
        break;
      case "cost/budgetReached":
      case "optimisation/degraded":
      case "pruning/degraded":
        this.#note(`${notification.name}: ${gist(notification)}`, "yellow");
        break;
      case "session/replaced":
        this.#note(`session ${params.to} took over the pi process`, "yellow");
        break;
      case "session/navigated":
        this.#note(`the session continues from another entry of its tree${this.#by(params)}`, "yellow");
        break;
      case "session/foreignWrite":
        this.#note(`another program wrote to the session's file: ${params.action}`, "yellow");
        break;
      case "session/controlChanged":
        this.#note(`control: ${params.change}${this.#by(params)}`);
    }
  }

  /** Shows a complete message. */
  message(message: PiMessage): void {
    if (message.role === "assistant") {
      this.#usage.add(message["usage"]);
      this.#error = message.errorMessage;
    }
    if (message.role === "custom" && this.#isRepeated(message)) return;
    const who = message.role === "user" ? this.#authorOf(textOf(message)) : undefined;
    this.#messages.ended(message, who);
  }

  /** Whether the text of this push was shown before. */
  #isRepeated(message: PiMessage): boolean {
    const { deliveryId } = recordOf(recordOf(message["details"])["pi-rpcd"]);
    if (typeof deliveryId !== "string") return false;
    if (this.#pushed.has(deliveryId)) return true;
    if (this.#pushed.size >= maxTools) this.#pushed.clear();
    this.#pushed.add(deliveryId);
    return false;
  }

  #event({ event, at }: SessionEnvelope): void {
    const message = event["message"] as PiMessage | undefined;
    switch (event.type) {
      case "message_start":
        if (message?.role === "assistant") this.#messages.started();
        break;
      case "message_update":
        this.#does("the model writes");
        this.#messages.updated(event);
        break;
      case "message_end":
        if (typeof message === "object" && message !== null) this.message(message);
        this.#does(this.#waiting());
        break;
      case "entry_appended":
      case "rpcd_entry":
        this.#entry(recordOf(event["entry"]));
        break;
      case "auto_retry_start":
        this.#note(
          `retry ${num(event["attempt"])} of ${num(event["maxAttempts"])}: ${String(event["errorMessage"] ?? "")}`,
          "yellow",
        );
        break;
      case "bash_execution_update":
        if (typeof event["id"] === "string" && typeof event["delta"] === "string")
          this.#canvas.toolOutput(event["id"], event["delta"], true);
        break;
      case "compaction_start":
        this.#isCompacting = true;
        this.#activity = { what: "compacting", since: Date.now() };
        this.#note(`compacting (${String(event["reason"] ?? "")})`);
        break;
      case "compaction_end":
        this.#isCompacting = false;
        this.#activity = undefined;
        this.#does(this.#waiting());
        break;
      case "extension_error":
        this.#note(`✘ an extension failed: ${String(event["error"] ?? "")}`, "red");
        break;
      case "extension_ui_request":
        this.#said(saidByExtension(event));
        break;
      default:
        this.#tool(event, at);
    }
  }

  #entry(entry: PiMessage): void {
    const { type, message } = entry;
    if (isRecord(message)) this.message(message as unknown as PiMessage);
    // A push that is inserted during a run has no other event.
    else if (type === "custom_message" && entry["display"] !== false) this.message({ ...entry, role: "custom" });
  }

  #tool(event: PiEvent, at: number): void {
    const { toolCallId: id } = event;
    if (isToolExecutionStart(event)) {
      if (this.#tools.size >= maxTools) this.#tools.clear();
      this.#tools.set(event.toolCallId, at);
      this.#does(`${event.toolName} runs`);
      this.#canvas.toolStarted({ id: event.toolCallId, name: String(event.toolName), args: event.args });
    } else if (event.type === "tool_execution_update" && typeof id === "string") {
      this.#canvas.toolOutput(id, textOf(recordOf(event["partialResult"])), false);
    } else if (isToolExecutionEnd(event)) {
      const startedAt = this.#tools.get(event.toolCallId);
      this.#tools.delete(event.toolCallId);
      if (this.#tools.size === 0) this.#does(this.#waiting());
      const took = typeof event["durationMs"] === "number" ? event["durationMs"] : startedAt && at - startedAt;
      this.#canvas.toolEnded(resultOf(event, took));
    }
  }

  #said(said: Said | undefined): void {
    if (said === undefined) return;
    const { key, text, style } = said;
    if (key === undefined) {
      this.#note(`• ${text}`, style);
      return;
    }
    this.#statuses.delete(key);
    if (text === "") return;
    if (this.#statuses.size >= maxStatuses) this.#statuses.clear();
    this.#statuses.set(key, shorten(oneLine(text.slice(0, 1_000)), 60));
  }

  /** Notes what the session does, if that has changed. */
  #does(what: string): void {
    if (this.#isRunning && this.#activity?.what !== what) this.#activity = { what, since: Date.now() };
  }

  #waiting(): string {
    return `waiting for ${this.#model ?? "the model"}`;
  }

  #runEnded({ outcome, error, startedAt, at }: NotificationParams<"run/ended">): void {
    this.#isRunning = false;
    this.#activity = undefined;
    const parts = [`${outcome} after ${elapsed(at - startedAt)}`, ...this.#usage.describe()];
    // The failed message has usually reported the error.
    if (error !== undefined && outcome !== "settled" && error !== this.#error) this.#note(`✘ ${error}`, "red");
    this.#note(`── ${parts.join(" · ")} ──`);
  }

  #updated({ session, lostPrompts = [] }: NotificationParams<"session/updated">): void {
    const { state, exit } = session;
    const model = modelOf(session);
    if (model !== this.#model && model !== undefined && this.#model !== undefined) this.#note(`model: ${model}`);
    // Separate notifications report the start and the end of a run.
    const isQuiet = (word: string | undefined): boolean => word === "idle" || word === "running";
    if (state !== this.#state && !(isQuiet(state) && isQuiet(this.#state))) {
      const how = state === "crashed" && exit !== undefined ? ` (code ${exit.code ?? exit.signal})` : "";
      this.#note(`the session is ${state}${how}`, state === "crashed" ? "red" : "dim");
    }
    for (const { text } of lostPrompts) this.#note(`✘ lost: ${text}`, "red");
    this.#state = state;
    this.#model = model;
    this.#name = session.name;
    this.#isRunning = session.runId !== undefined;
    if (!isQuiet(state)) this.#isCompacting = false;
    if (!this.#isRunning && !this.#isCompacting) this.#activity = undefined;
  }

  #remember({ by, prompt }: NotificationParams<"prompt/updated">): void {
    if (by === undefined || by.clientId === this.#self) return;
    if (this.#authors.size >= maxAuthors) this.#authors.clear();
    this.#authors.set(prompt.text, by.name ?? "another client");
  }

  /** Prompts are reported with the first 1,000 characters of their text. */
  #authorOf(text: string): string | undefined {
    const beginning = text.slice(0, 1_000);
    const author = this.#authors.get(beginning);
    this.#authors.delete(beginning);
    return author;
  }

  #resolved({ title, how, by, client }: NotificationParams<"dialog/resolved">): void {
    if (client !== undefined && client.clientId === this.#self) return;
    this.#note(`? ${title}: ${how}${client === undefined ? ` (${by})` : this.#by({ by: client })}`);
  }

  #delivery({
    delivery: { deliveryId, state, customType, reason },
    by: who,
  }: NotificationParams<"delivery/updated">): void {
    if (!shownStates.has(state) || this.#deliveries.get(deliveryId) === state) return;
    if (this.#deliveries.size >= maxTools) this.#deliveries.clear();
    this.#deliveries.set(deliveryId, state);
    this.#note(
      `» [${customType}] ${deliveryId} ${state}${reason === undefined ? "" : `: ${reason.message}`}${this.#by({ by: who })}`,
    );
  }

  /** The client's name, unless it is this user's. */
  #by({ by }: { readonly by?: By | undefined }): string {
    return by === undefined || by.clientId === this.#self ? "" : ` by ${by.name ?? "another client"}`;
  }

  #note(text: string, style: Parameters<Canvas["line"]>[1] = "dim"): void {
    this.#canvas.line(` ${shorten(oneLine(text.slice(0, 4_000)), 400)}`, style);
  }
}

function resultOf(event: ToolExecutionEndEvent, tookMs: number | undefined): ToolResult {
  const result = recordOf(event.result);
  const { diff } = recordOf(result["details"]);
  return {
    id: event.toolCallId,
    name: String(event.toolName),
    text: textOf(result),
    ...(typeof diff === "string" ? { diff } : {}),
    images: imagesOf(result),
    isError: event.isError,
    tookMs,
  };
}

function recordOf(value: unknown): PiMessage {
  return (isRecord(value) ? value : {}) as unknown as PiMessage;
}

function modelOf({ model }: SessionInfo): string | undefined {
  return model === undefined ? undefined : `${model.provider}/${model.id}`;
}

function num(value: unknown): string {
  return typeof value === "number" ? String(value) : "?";
}

function time(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}
