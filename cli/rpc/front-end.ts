import type { Readable, Writable } from "node:stream";
import { v7 as uuidv7 } from "uuid";
import type { Client } from "../../client/client.ts";
import { ConnectionClosedError } from "../../client/local-errors.ts";
import type { SessionEnvelope } from "../../client/pi-events.ts";
import type { FeedListener, SessionNotification } from "../../client/session-feed.ts";
import type { SessionHandle } from "../../client/session-handle.ts";
import type { Dialog } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import { within } from "../../server/lib/deadline.ts";
import { Gate } from "../../server/lib/gate.ts";
import { maxLineBytes } from "../editor-client.ts";
import type { CreateOptions } from "./carried-options.ts";
import { beginning, ownViewer, type Place } from "./choose-session.ts";
import { isPassedOn, moving, perform } from "./commands.ts";
import { DeltaText } from "./delta-text.ts";
import { ErrorOutput } from "./error-output.ts";
import { OrderedOutput } from "./ordered-output.ts";
import { failure, type GivenCommand, noticeOf, recordIn, success, unreadable } from "./pi-record.ts";
import { Questions, type Reply } from "./questions.ts";

export interface FrontEndOptions {
  readonly client: Client;
  readonly session: SessionHandle;
  /** From where in the session's log; undefined: from now on. */
  readonly place: Place | undefined;
  /** What to say first. */
  readonly notice?: string;
  /** With which further sessions are created. */
  readonly options: CreateOptions;
  /** Whether this pi says what became of a prompt. */
  readonly saysDisposition: boolean;
  readonly input: Readable;
  readonly output: Writable;
  /** For what the session's pi writes to stderr. */
  readonly errors: Writable;
}

type PiEvent = SessionEnvelope["event"];

/** How long commands may take after the end of stdin. */
const lingerMs = 5_000;
/** Commands that pi answers at once, at the same time. */
const maxPassedOn = 32;
/** One that takes longer waits for something, and lets others pass. */
const longestMs = 10_000;
/** Above it, nothing more is written until stdout has taken it. */
const maxWaitingBytes = 16 * 1024 * 1024;
/** Commands that take as long as the agent or the user wants. */
const unbounded: ReadonlySet<unknown> = new Set(["bash", "compact"]);

const alreadyProcessing =
  "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";

/** Speaks pi's RPC mode on a pair of streams, for one session of the daemon at a time. */
export class FrontEnd {
  readonly #options: FrontEndOptions;
  readonly #output: OrderedOutput;
  readonly #errors: ErrorOutput;
  /** Commands that are not answered yet. */
  readonly #pending = new Set<Promise<void>>();
  /** The front end's ids of its shell commands, by ours. */
  readonly #bashIds = new Map<string, { readonly id: unknown }>();
  readonly #questions = new Questions();
  readonly #ended = Promise.withResolvers<number>();
  #session: SessionHandle;
  #leave: () => void = () => {};
  #listener: FeedListener | undefined;
  /** Resolves the wait for the events that hold, which come with the answer to the subscription. */
  #begun: ((present: readonly PiEvent[]) => void) | undefined;
  #deltas = new DeltaText();
  #isRunning = false;
  /** The place in the session's log, for a session that is followed again. */
  #place: Place | undefined;
  #isPaused = false;
  /** Settles when the front end has moved to another session. */
  #moving: Promise<void> | undefined;
  /** For commands that pi answers at once. */
  readonly #places = new Gate(maxPassedOn, longestMs);
  /** While it gets what it has missed of a session. */
  #catchingUp: Promise<void> | undefined;
  /** The cursor up to which records must be written before the next answer. */
  #caughtUp: { readonly cursor: number; readonly resolve: () => void } | undefined;

  constructor(options: FrontEndOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#output = new OrderedOutput(options.output);
    this.#errors = new ErrorOutput(options.errors);
  }

  /** Serves until stdin ends or the client has ended. Resolves with the exit code. */
  async run(): Promise<number> {
    const { client, input, place, session, output, notice } = this.#options;
    const splitter = new JsonlSplitter({
      maxRecordBytes: maxLineBytes,
      onRecord: (line) => this.#take(line.toString("utf8")),
      onEmpty: () => this.#take(""),
      onOversize: (head, bytes) => {
        const { id, type = "parse" } = fieldsIn(head.toString("utf8"));
        const why = `The command has ${bytes} bytes; the daemon takes at most ${maxLineBytes}.`;
        this.#output.write(failure(id, type, why));
      },
    });
    output.on("error", () => this.#ended.resolve(1));
    output.on("drain", () => this.#goOn());
    this.#follow(session, place);
    // The first answer comes after what the front end has missed.
    if (this.#catchingUp !== undefined) this.#moved(this.#catchingUp);
    if (notice !== undefined) this.#output.write(noticeOf(notice, "warning"));
    input.on("data", (chunk: Buffer) => splitter.push(chunk));
    input.on("end", () => {
      if (splitter.rest() !== undefined) splitter.push(Buffer.from("\n"));
      void this.#finish();
    });
    input.on("error", () => void this.#finish());
    client.onConnection((event) => {
      if (event.kind === "connected" && event.daemon === "another") void this.#renewEnvironment();
    });
    void client.closed.then(() => this.#ended.resolve(1));
    const code = await this.#ended.promise;
    this.#listener = undefined;
    this.#leave();
    await client.close();
    if (code === 0) await within(new Promise<void>((resolve) => output.write("", () => resolve())), lingerMs);
    return code;
  }

  /** A daemon has the environment in memory alone: the next one gets it again. */
  async #renewEnvironment(): Promise<void> {
    const { client, options } = this.#options;
    const { id: sessionId } = this.#session;
    if (options.environment === undefined) return;
    // A session that is not open must not be opened.
    await client
      .call("session/get", { sessionId })
      .then(() => client.openSession({ sessionId, environment: options.environment as Record<string, string> }))
      .catch(() => {});
  }

  /** Answers what is under way, as long as it does not take as long as a run. */
  async #finish(): Promise<void> {
    await within(Promise.all(this.#pending), lingerMs);
    await within(this.#output.written(), lingerMs);
    this.#ended.resolve(0);
  }

  #take(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      this.#output.write(unreadable(error));
      return;
    }
    if (value === null) {
      this.#output.write(unreadable(new TypeError("a command is an object")));
      return;
    }
    // pi reads the fields of any value.
    const command = (isRecord(value) ? value : {}) as GivenCommand;
    if (command["type"] === "extension_ui_response") this.#reply(this.#questions.answered(command));
    else this.#perform(command);
  }

  #perform(command: GivenCommand): void {
    const { id, type } = command;
    const bashId = uuidv7();
    if (type === "bash") this.#bashIds.set(`bash:${bashId}`, { id });
    const line = Promise.withResolvers<string>();
    // After a move, the answer follows the other session's first records.
    let hasPlace = false;
    const isMoving = moving.has(type);
    const onAnswer = (): void => {
      if (hasPlace) return;
      hasPlace = true;
      this.#output.writeLater(line.promise);
    };
    const { client, options, saysDisposition } = this.#options;
    const move = (session: SessionHandle, place?: Place): Promise<void> => this.#moveTo(session, place);
    const work = (): Promise<unknown> => {
      const subject = { client, session: this.#session, options, saysDisposition, bashId, move };
      return perform(command, subject, isMoving ? {} : { onAnswer });
    };
    const before = this.#moving;
    const performed = before === undefined ? this.#inTurn(type, work) : before.then(() => this.#inTurn(type, work));
    if (isMoving) this.#moved(performed);
    const done = performed
      .then(
        (data) => line.resolve(success(id, type, data)),
        (error: unknown) => line.resolve(failure(id, type, wordsOf(error, type))),
      )
      .finally(() => {
        // Some commands make several calls, or none.
        onAnswer();
        this.#bashIds.delete(`bash:${bashId}`);
        this.#pending.delete(done);
      });
    if (!unbounded.has(type)) this.#pending.add(done);
  }

  /** Later commands are for the session to which this one moves. */
  #moved(performed: Promise<unknown>): void {
    const moving = performed.then(
      () => {},
      () => {},
    );
    this.#moving = moving;
    void moving.then(() => {
      if (this.#moving === moving) this.#moving = undefined;
    });
  }

  /**
   * The daemon has a limit of unanswered commands. Every command waits for the place of the one before it, so that none
   * overtakes another; those that may take long then leave their places at once.
   */
  async #inTurn<T>(type: unknown, work: () => Promise<T>): Promise<T> {
    return await this.#places
      .pass(async () => {
        const done = work();
        done.catch(() => {});
        if (isPassedOn(type)) await done.catch(() => {});
        return { done };
      })
      .then(({ done }) => done);
  }

  /** Stray and late answers are swallowed, as by pi. */
  #reply(reply: Reply | undefined): void {
    if (reply === undefined) return;
    const { dialogId } = reply;
    const told = "answer" in reply ? this.#session.respond(dialogId, reply.answer) : this.#session.abstain(dialogId);
    told.catch(() => {});
  }

  /** Writes another session's records from now on. Resolves when those are written that it has already. */
  async #moveTo(session: SessionHandle, place: Place | undefined): Promise<void> {
    this.#follow(session, place);
    if (place !== undefined) await this.#caughtUpWith(session);
  }

  async #caughtUpWith(session: SessionHandle): Promise<void> {
    const { cursor } = await session.get();
    if (this.#session !== session) return;
    const caughtUp = Promise.withResolvers<void>();
    this.#caughtUp = { cursor, resolve: caughtUp.resolve };
    this.#note();
    await within(caughtUp.promise, lingerMs);
  }

  /** Some records of the session were written, up to its {@link #place}. */
  #note(): void {
    if (this.#caughtUp === undefined || (this.#place?.after ?? 0) < this.#caughtUp.cursor) return;
    this.#caughtUp.resolve();
    this.#caughtUp = undefined;
  }

  /** Writes the records of this session, and no others. */
  #follow(session: SessionHandle, place: Place | undefined): void {
    this.#session = session;
    this.#begun?.([]);
    this.#catchingUp = undefined;
    this.#deltas = new DeltaText();
    this.#isRunning = false;
    this.#questions.clear();
    this.#place = place;
    const begun = Promise.withResolvers<readonly PiEvent[]>();
    this.#begun = begun.resolve;
    this.#join();
    if (place !== undefined) return;
    // What arrives later waits for it.
    this.#output.writeLater(begun.promise.then(linesOf));
    const catchingUp = this.#caughtUpWith(session).catch(() => {});
    this.#catchingUp = catchingUp;
    void catchingUp.then(() => {
      if (this.#catchingUp === catchingUp) this.#catchingUp = undefined;
    });
    let unseen: readonly Dialog[] = [];
    const questions = this.#openQuestions(session).then((found) => {
      unseen = found;
      return linesOf(found.map(questionOf));
    });
    this.#output.writeLater(questions, () => {
      for (const { requestId } of unseen) this.#questions.written(requestId);
    });
  }

  /** The questions that wait for an answer already. */
  async #openQuestions(session: SessionHandle): Promise<readonly Dialog[]> {
    const open = await session.dialogs().catch(() => []);
    const unseen = open.filter(({ requestId }) => this.#session === session && !this.#questions.has(requestId));
    for (const { requestId, dialogId, method } of unseen) this.#questions.opened(requestId, dialogId, method);
    return unseen;
  }

  /** Follows the session from {@link #place} on. */
  #join(): void {
    const leaveFormer = this.#leave;
    const isCurrent = (): boolean => this.#listener === listener;
    const listener: FeedListener = {
      dialogs: true,
      more: {
        inOrder: true,
        awake: true,
        holdEdits: true,
        stderr: true,
        catchUp: true,
        ...defined({ viewer: ownViewer }),
      },
      stderr: ({ text, omittedBytes }) => {
        if (isCurrent()) this.#errors.write(text, omittedBytes);
      },
      begin: ({ cursor, epoch, present = [] }) => {
        if (!isCurrent()) return;
        this.#isRunning ||= present.some(({ type }) => type === "agent_start");
        this.#begun?.(present);
        this.#place ??= { after: cursor, epoch };
        this.#place.epoch = epoch;
        this.#note();
      },
      // The daemon does not know any more that this front end abstained.
      resume: () => {
        for (const dialogId of this.#questions.abstained) this.#reply({ dialogId, abstain: true });
      },
      gap: ({ to }) => {
        if (!isCurrent() || this.#isPaused) return;
        this.#deltas.lose();
        if (this.#place !== undefined) this.#place.after = to;
        this.#note();
      },
      receive: (notification, frame) => {
        if (isCurrent() && !this.#isPaused) this.#receive(notification, frame);
      },
      end: ({ kind }) => {
        if (isCurrent()) this.#ended.resolve(kind === "session_closed" ? 0 : 1);
      },
    };
    this.#listener = listener;
    this.#leave = this.#session.listen(listener, this.#place);
    // In this order, so that the session is never without this front end.
    leaveFormer();
  }

  #receive(notification: SessionNotification, frame: string): void {
    const { params } = notification;
    if (this.#place !== undefined) this.#place.after = params.seq;
    switch (notification.name) {
      case "session/event":
        this.#write(notification.params.event, frame);
        break;
      case "dialog/opened": {
        const { requestId, dialogId, method } = notification.params.dialog;
        this.#reply(this.#questions.opened(requestId, dialogId, method));
        break;
      }
      case "dialog/resolved":
        this.#questions.resolved(notification.params.requestId);
        break;
      case "session/replaced":
        // A client's fork moves that client alone.
        if (notification.params.cause === "extension")
          this.#follow(this.#options.client.session(notification.params.to), beginning());
        break;
      case "session/updated": {
        const { state, exit } = notification.params.session;
        // An extension has ended pi.
        if (state === "crashed" && exit?.code === 0) this.#ended.resolve(0);
        break;
      }
      case "run/ended":
        if (notification.params.outcome === "interrupted") this.#interrupted();
        break;
      default:
        break;
    }
    this.#note();
    this.#pauseIfFull();
  }

  #write(event: { readonly type: string; readonly [field: string]: unknown }, frame: string): void {
    const { type } = event;
    if (type.startsWith("rpcd_")) return;
    if (type === "agent_start") this.#isRunning = true;
    if (type === "agent_settled") this.#isRunning = false;
    if (type === "bash_execution_update") {
      this.#output.write(JSON.stringify(this.#withOwnId(event)));
      return;
    }
    for (const missing of this.#deltas.before(event)) this.#output.write(JSON.stringify(missing));
    if (!this.#deltas.passes(event) || this.#questions.has(String(event["id"]))) return;
    const record = recordIn(frame);
    const onWritten = this.#questions.asked(event);
    const { id } = event;
    if (onWritten === undefined || this.#catchingUp === undefined) this.#output.write(record, onWritten);
    else {
      // The question may have been answered already: the records up to the present say so.
      const isOpen = this.#catchingUp.then(() => this.#questions.has(String(id)));
      this.#output.writeLater(
        isOpen.then((is) => (is ? record : undefined)),
        onWritten,
      );
    }
  }

  /** The id of the front end's own shell command; others are not its business. */
  #withOwnId({ id, ...event }: Readonly<Record<string, unknown>>): object {
    const own = typeof id === "string" ? this.#bashIds.get(id) : undefined;
    return own?.id === undefined ? event : { ...event, id: own.id };
  }

  /** pi died in a run: its end is written, so that the front end does not wait for ever. */
  #interrupted(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#output.write(JSON.stringify({ type: "agent_end", messages: [], willRetry: false }));
    this.#output.write(JSON.stringify({ type: "agent_settled" }));
    this.#output.write(noticeOf("pi ended during the run. The session goes on with the next prompt.", "error"));
  }

  /** While stdout is not read, what arrives is dropped: the daemon keeps it. */
  #pauseIfFull(): void {
    this.#isPaused ||= this.#output.waitingBytes >= maxWaitingBytes;
  }

  #goOn(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#join();
  }
}

function linesOf(events: readonly unknown[]): string | undefined {
  return events.length === 0 ? undefined : events.map((event) => JSON.stringify(event)).join("\n");
}

/** A question as pi asked it. */
function questionOf({ requestId: id, method, title, options, message, placeholder, prefill }: Dialog): object {
  const fields = { id, method, title, options, message, placeholder, prefill };
  return { type: "extension_ui_request", ...fields };
}

/** What pi would say, or what the daemon says. */
function wordsOf(error: unknown, type: unknown): string {
  if (!(error instanceof WireError)) {
    if (error instanceof ConnectionClosedError) return "The connection to pi-rpcd was lost before the answer.";
    return error instanceof Error ? error.message : String(error);
  }
  const { piError } = error.data as { readonly piError?: unknown };
  if (typeof piError === "string") return piError;
  if (type === "prompt" && error.kind === "session_busy") return alreadyProcessing;
  return error.message;
}

/** The id and type of a command, from its first bytes. */
function fieldsIn(head: string): { readonly id?: unknown; readonly type?: unknown } {
  const found = ["id", "type"].flatMap((name) => {
    const value = new RegExp(
      `[{,]\\s*"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*"|-?[0-9][0-9.eE+-]*|null|true|false)\\s*,`,
    ).exec(head);
    return value === null ? [] : [[name, JSON.parse(value[1] as string)] as const];
  });
  return Object.fromEntries(found);
}
