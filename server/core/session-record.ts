import { randomBytes } from "node:crypto";
import type { MergedParts } from "../../protocol/configuration/part-options.ts";
import type { ControlPolicy } from "../../protocol/control.ts";
import type { ModelRef, SessionInfo } from "../../protocol/session.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import type { ReadyState } from "../pi/ready-state.ts";
import { isSpawnValue, shownName } from "../pi/safe-values.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { SeqNumbers, type SeqReserve } from "./seq-numbers.ts";

/** Facts that do not depend on a child. */
export type SessionFacts = Pick<
  SessionInfo,
  | "sessionId"
  | "cwd"
  | "name"
  | "file"
  | "generation"
  | "model"
  | "thinkingLevel"
  | "projectTrust"
  | "ephemeral"
  | "profile"
  | "labels"
  | "createdAt"
  | "updatedAt"
>;

/** A session's place in lists, which does not depend on other sessions. */
export type SessionAge = Pick<SessionFacts, "createdAt" | "sessionId">;

/** Negative: the first one is older. Lists begin with the newest. */
export function byAge(a: SessionAge, b: SessionAge): number {
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.sessionId === b.sessionId ? 0 : a.sessionId < b.sessionId ? -1 : 1;
}

/** Each change of a record is another `stored`. */
export function factsOf({
  stored,
  model,
  thinkingLevel,
}: Pick<SessionRecord, "stored" | "model" | "thinkingLevel">): SessionFacts {
  const { sessionId, cwd, name, file, generation, options, createdAt, updatedAt } = stored;
  const { ephemeral, profile, labels } = stored;
  return {
    sessionId,
    cwd,
    ...(name === undefined ? {} : { name }),
    file: ephemeral === true ? "" : file,
    ...(ephemeral === true ? { ephemeral: "living" } : {}),
    ...(profile === undefined ? {} : { profile }),
    ...(labels === undefined ? {} : { labels }),
    generation,
    ...(model === undefined ? {} : { model }),
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    projectTrust: options.approve === true ? "approved" : "not_approved",
    createdAt,
    updatedAt,
  };
}

/**
 * Stores a session's record. Resolves when it is on disk; the store logs a failure. `isAwaited`: an answer waits for it.
 */
type SaveSession = (stored: StoredSession, isAwaited: boolean) => Promise<void>;

/** The stored facts of a session, by which later children are started in the same way. */
export class SessionRecord {
  /** Identifies the session's log: numbers of another epoch cannot be compared. */
  readonly epoch: string;
  /** The environment of its child, or of the next one. Never stored. Default: the daemon's own. */
  environment: ChildEnvironment | undefined;
  /** The MCP servers that clients gave for its child, or for the next one. Never stored. */
  mcpServers: ChildMcpServers;
  readonly #save: SaveSession;
  #stored: StoredSession;
  #model: ModelRef | undefined;
  #thinkingLevel: string | undefined;
  #hasPrices = true;
  #contextWindow: number | undefined;
  #isClosed = false;

  constructor(
    stored: StoredSession,
    save: SaveSession,
    environment?: ChildEnvironment,
    mcpServers = ChildMcpServers.none,
  ) {
    const { logEpoch = randomBytes(6).toString("hex") } = stored;
    this.environment = environment;
    this.mcpServers = mcpServers;
    this.#stored = { ...stored, logEpoch };
    this.epoch = logEpoch;
    this.#save = save;
  }

  get stored(): StoredSession {
    return this.#stored;
  }

  /** Whether the model has a price, as last reported by pi. */
  get hasPrices(): boolean {
    return this.#hasPrices;
  }

  /** The context window of the model in tokens, as last reported by pi. */
  get contextWindow(): number | undefined {
    return this.#contextWindow;
  }

  /** As last reported by pi. */
  get model(): ModelRef | undefined {
    return this.#model;
  }

  /** As last reported by pi. */
  get thinkingLevel(): string | undefined {
    return this.#thinkingLevel;
  }

  /** Increments the generation for another child. */
  nextGeneration(): number {
    this.#stored = { ...this.#stored, generation: this.#stored.generation + 1, updatedAt: Date.now() };
    return this.#stored.generation;
  }

  /** Resolves when the current record is on disk, for an answer that waits for it. */
  saved(): Promise<void> {
    return this.#keep(true);
  }

  /** The session is closed: later changes do not store it again. */
  close(): void {
    this.#isClosed = true;
  }

  /** The session was created and becomes visible to clients. Resolves when that is on disk. */
  begun(): Promise<void> {
    const { isBeginning: _was, ...stored } = this.#stored;
    this.#stored = stored;
    return this.saved();
  }

  /** Updates the time of the last activity. */
  touch(): void {
    this.#stored = { ...this.#stored, updatedAt: Date.now() };
  }

  /** The numbers of the session's log, reserved in its record. */
  numbers(flush: SeqReserve["flush"]): SeqNumbers {
    const reserve = (upTo: number): Promise<void> => {
      this.#stored = { ...this.#stored, reservedSeq: upTo };
      return this.saved();
    };
    return new SeqNumbers({ reserved: this.#stored.reservedSeq, reserve, flush });
  }

  /** Records the state in which the session's children left the file. The store logs a failed write. */
  markFile(mark: StoredSession["fileMark"]): void {
    const { fileMark: _mark, ...rest } = this.#stored;
    this.#stored = mark === undefined ? rest : { ...rest, fileMark: mark };
    void this.#keep(false);
  }

  /** Records the session's context. */
  givenContext(context: StoredSession["context"]): void {
    this.#stored = { ...this.#stored, ...(context === undefined ? {} : { context }) };
    void this.#keep(false);
  }

  /** Sets the control policy. */
  governedBy(control: ControlPolicy): void {
    this.#stored = { ...this.#stored, control };
    void this.#keep(false);
  }

  /**
   * Sets the configuration of its parts, and the part of it that callers gave. {@link saved} resolves when it is on
   * disk.
   */
  partsBy({ optimisation, pruning }: MergedParts, ownPruning: StoredSession["ownPruning"]): void {
    const { ownPruning: _own, ...stored } = this.#stored;
    const { optimisation: _optimisation, pruning: _pruning, ...options } = stored.options;
    this.#stored = {
      ...stored,
      options: {
        ...options,
        ...(optimisation === undefined ? {} : { optimisation }),
        ...(pruning === undefined ? {} : { pruning }),
      },
      ...(ownPruning === undefined ? {} : { ownPruning }),
      updatedAt: Date.now(),
    };
  }

  /**
   * Sets options of its next start; others stay. With `former`, these options are again as they were there, or absent. The
   * store logs a failed write.
   */
  setStartOptions(options: StoredSession["options"], former?: StoredSession["options"]): void {
    const isOf = (from: object) => Object.entries(from).filter(([name]) => Object.hasOwn(options, name));
    const others = Object.entries(this.#stored.options).filter(([name]) => !Object.hasOwn(options, name));
    const set = former === undefined ? Object.entries(options) : isOf(former);
    this.#stored = { ...this.#stored, options: Object.fromEntries([...others, ...set]), updatedAt: Date.now() };
    void this.#keep(false);
  }

  /** Applies the given fields that pi reports. */
  take(said: Partial<ReadyState>): void {
    if ("model" in said) this.#model = said.model;
    if ("contextWindow" in said) this.#contextWindow = said.contextWindow;
    if (said.hasPrices !== undefined) this.#hasPrices = said.hasPrices;
    if ("thinkingLevel" in said) this.#thinkingLevel = said.thinkingLevel;
    const { name: before, options, ...rest } = this.#stored;
    const name = "sessionName" in said ? shownName(said.sessionName ?? "") : before;
    const model = this.#model === undefined ? "" : `${this.#model.provider}/${this.#model.id}`;
    this.#stored = {
      ...rest,
      ...(name === undefined ? {} : { name }),
      options: {
        ...options,
        ...(isSpawnValue(model) ? { model } : {}),
        ...(isSpawnValue(this.#thinkingLevel ?? "") ? { thinking: this.#thinkingLevel as string } : {}),
      },
      updatedAt: Date.now(),
    };
    // The store logs a failed write.
    void this.#keep(false);
  }

  #keep(isAwaited: boolean): Promise<void> {
    return this.#isClosed ? Promise.resolve() : this.#save(this.#stored, isAwaited);
  }
}
