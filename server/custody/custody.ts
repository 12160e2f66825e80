import { rm } from "node:fs/promises";
import type { Logger } from "pino";
import type { ForeignWriteAction, OnForeignWrite } from "../../protocol/custody.ts";
import { WireError } from "../../protocol/errors.ts";
import type { EntriesReply } from "../../protocol/link-inward.ts";
import type { SessionContext } from "../core/session-context.ts";
import type { Child } from "../pi/child.ts";
import { checkEntries } from "../pi/entry-check.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import { isEntriesReply } from "../pi/outward-frame.ts";
import { removeIfEmpty } from "../pi/session-file.ts";
import { type AskForEntries, FileWatch, type Finding, type OwnMark } from "./file-watch.ts";
import { LeaseHold } from "./lease-hold.ts";

/** A foreign write and the reaction to it, for the session's subscribers. */
export interface ForeignWriteNotice {
  readonly write: Omit<Finding, "ownLeaf" | "canReload">;
  readonly action: ForeignWriteAction;
  /** The session that continues this one's own branch. */
  readonly to?: string;
}

export interface CustodyOptions {
  readonly file: string;
  readonly taker: LeaseTaker;
  /** Whether the file existed before the session. Otherwise it is deleted if it never got a message. */
  readonly isOpened: boolean;
  readonly mark: OwnMark | undefined;
  readonly policy: () => OnForeignWrite;
  /** Stores the mark in the session's record. */
  readonly keep: (mark: OwnMark | undefined) => void;
  readonly tell: (notice: ForeignWriteNotice) => void;
  /** Creates a session from the branch that ends with this entry, and returns its id. */
  readonly branchOff: (leafId: string) => Promise<string>;
  readonly log: Logger;
}

/** One session's custody of pi's session file: the lease on it, and detection of foreign writes. */
export class Custody {
  readonly #options: CustodyOptions;
  readonly #lease: LeaseHold;
  readonly #watch: FileWatch;
  /** The children that may write the file. */
  readonly #writers = new Set<Child>();
  /** Found after a run, and not decided yet. */
  #found: Finding | undefined;
  /** The last reported refusal: a lasting one is reported once. */
  #refused = "";
  /** Serialises checks of the file. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Resolves when children of other sessions have left the file. */
  #given: Promise<unknown> = Promise.resolve();

  constructor(options: CustodyOptions) {
    this.#options = options;
    this.#lease = new LeaseHold({ taker: options.taker, log: options.log });
    this.#watch = new FileWatch(options.mark);
  }

  /**
   * Before a child is started: takes the lease, and checks for foreign writes. Throws `session_in_use`,
   * `session_file_unusable`, `foreign_write`; otherwise {@link started} or {@link notStarted} must follow.
   */
  async begin(generation: number): Promise<void> {
    await this.#lease.holdForChild(this.#options.file, generation);
    try {
      await this.#next(async () => {
        const finding = await this.#watch.beforeStart(this.#options.file);
        if (finding !== undefined) {
          const decided = await this.#decide(finding);
          if (typeof decided === "object") throw refusal(finding, decided.to);
          await this.#watch.accept(this.#options.file);
        }
        this.#found = undefined;
        this.#options.keep(this.#watch.mark);
      });
    } catch (error) {
      await this.#lease.letGo();
      throw error;
    }
  }

  started(child: Child, generation: number): void {
    this.#writers.add(child);
    const { id: childId, pid, keeper } = child;
    void this.#lease.noteChild({ childId, pid, survives: keeper !== undefined }, generation);
    void child.cleaned.then(() => {
      if (this.#writers.delete(child)) void this.#gone();
    });
  }

  /** Goes on with the child of a former daemon. Throws `session_in_use` and `session_file_unusable`. */
  async resume(child: Child, generation: number): Promise<void> {
    await this.#lease.holdForChild(this.#options.file, generation);
    this.started(child, generation);
  }

  async notStarted(): Promise<void> {
    await this.#gone();
  }

  /**
   * A hello names another session in the child. The child holds the file until `left` resolves, which never rejects.
   */
  gaveAway(child: Child, left: Promise<void>): void {
    if (!this.#writers.delete(child)) return;
    this.#given = Promise.all([this.#given, left.then(() => this.#gone())]);
  }

  /** A child of another session uses this one's file. Throws as {@link begin} does. */
  async tookOver(child: Child, generation: number): Promise<void> {
    // It has loaded the current file.
    this.#watch.forget();
    await this.begin(generation);
    this.started(child, generation);
  }

  /**
   * Checks the file, and returns a function that deletes it. Throws `session_in_use` and `session_file_unusable`
   * where it must not be deleted.
   */
  async toRemove(generation: number): Promise<() => Promise<void>> {
    await this.#lease.hold(this.#options.file, generation).catch((error: unknown) => {
      // Without a directory there is nothing to check.
      if (!(error instanceof WireError && error.data["reason"] === "directory_missing")) throw error;
      return this.#lease.holdNothing();
    });
    return async () => {
      await rm(this.#options.file, { force: true }).catch((error: unknown) =>
        this.#options.log.error({ err: error }, "cannot delete the session's file"),
      );
      await this.#lease.letGo();
    };
  }

  /**
   * Before a run. Returns whether the child must be ended first: to load the file again, or permanently, with the
   * error for the caller. Throws `foreign_write`.
   */
  async check(child: Child): Promise<"ready" | "reload" | WireError> {
    const lost = await this.#lease.confirm();
    if (lost !== undefined) return lost;
    return await this.#next(async () => {
      const found = (await this.#watch.look(this.#options.file, this.#askOf(child), "idle")) ?? this.#found;
      this.#found = found;
      if (found === undefined) return "ready";
      const decided = await this.#decide(found);
      this.#found = undefined;
      if (decided === "allowed") return "ready";
      return decided === "reloaded" ? "reload" : refusal(found, decided.to);
    });
  }

  /** After a run, during which another program may have written. */
  settled(child: Child): void {
    void this.#next(async () => {
      const finding = await this.#watch.look(this.#options.file, this.#askOf(child), "run");
      if (finding !== undefined) this.#notice(finding);
    }).catch((error: unknown) => this.#options.log.warn({ err: error }, "cannot check the session's file"));
  }

  /**
   * Ends the session's child by calling `end`. The session's own file is then deleted if it never got a message; the
   * lease is kept until then. If another daemon has the file, only `end` runs.
   */
  async leave<T>(generation: number, end: () => Promise<T>): Promise<T> {
    const isHeld = await this.#lease.hold(this.#options.file, generation).then(
      () => true,
      () => false,
    );
    try {
      return await end();
    } finally {
      await this.idle();
      if (isHeld) {
        const { file, isOpened } = this.#options;
        if (!isOpened && (await removeIfEmpty(file))) this.forget();
        await this.#lease.letGo();
      }
    }
  }

  /** A former daemon ended together with the session's child: all entries so far are the child's own. */
  async orphaned(): Promise<void> {
    await this.#next(() => this.#lookAtLast());
  }

  /** Accepts the next state of the file, whoever wrote it. */
  forget(): void {
    this.#found = undefined;
    this.#watch.forget();
    this.#options.keep(undefined);
  }

  async #gone(): Promise<void> {
    await this.#next(async () => {
      // Writes of a returning child are not final.
      if (this.#writers.size === 0) await this.#lookAtLast();
    });
    await this.#lease.letGo();
  }

  async #lookAtLast(): Promise<void> {
    try {
      const finding = await this.#watch.ended(this.#options.file);
      if (finding !== undefined) this.#tell(finding, "noticed");
      this.#options.keep(this.#watch.mark);
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot check the session's file");
    }
  }

  /** Resolves when all operations in progress have ended. */
  async idle(): Promise<void> {
    await this.#given;
    await this.#next(async () => {});
    await this.#lease.idle();
  }

  #askOf(child: Child): AskForEntries {
    return async (since) => {
      // If it belongs to another session now, its entries are that session's.
      if (!this.#writers.has(child)) return undefined;
      try {
        const reply = await child.link.send<EntriesReply>({
          kind: "entries",
          ...(since === undefined ? {} : { since }),
        });
        return isEntriesReply(reply) ? reply : undefined;
      } catch {
        return undefined;
      }
    };
  }

  #notice(finding: Finding): void {
    this.#tell(finding, "noticed");
    // Our own branch is the newest: the next start finds it, and pi has it in memory unchanged.
    const isOurs = finding.kind === "grown" && finding.lastEntryId === finding.ownLeaf;
    if (!isOurs || this.#options.policy() === "refuse") this.#found = finding;
  }

  /** Applies the policy. Throws `foreign_write` where the session must not continue. */
  async #decide(finding: Finding): Promise<"reloaded" | "allowed" | { readonly to: string }> {
    const policy = this.#options.policy();
    const isTaken = policy === "allow" || (policy === "reload" && finding.canReload);
    // A file that pi could not load is never loaded.
    if (isTaken && finding.kind !== "removed") await checkEntries(this.#options.file);
    if (policy === "allow") return this.#tell(finding, "allowed");
    if (policy === "reload" && finding.canReload) return this.#tell(finding, "reloaded");
    const to = policy === "fork" && finding.ownLeaf !== undefined ? await this.#fork(finding.ownLeaf) : undefined;
    if (to !== undefined) {
      this.#tell(finding, "forked", to);
      return { to };
    }
    const text = JSON.stringify(finding);
    if (text !== this.#refused) this.#tell(finding, "refused");
    this.#refused = text;
    throw refusal(finding);
  }

  async #fork(leafId: string): Promise<string | undefined> {
    try {
      const to = await this.#options.branchOff(leafId);
      // This session continues with the file as the other program wrote it.
      this.forget();
      return to;
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot move the session's own branch to a new file");
      return undefined;
    }
  }

  #tell<A extends ForeignWriteAction>(finding: Finding, action: A, to?: string): A {
    const { ownLeaf: _leaf, canReload: _can, ...write } = finding;
    this.#options.log.warn({ write, action, to }, "another program wrote to the session's file");
    this.#options.tell({ write, action, ...(to === undefined ? {} : { to }) });
    return action;
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}

function refusal({ ownLeaf: _leaf, canReload: _can, ...write }: Finding, to?: string): WireError {
  const what =
    write.kind === "removed" ? "removed the session's file" : `written ${write.entries} entries to the session's file`;
  const then =
    to === undefined
      ? "session/reload continues with the current file."
      : `The session's own branch continues as the session ${to}.`;
  return new WireError("foreign_write", `Another program has ${what}. ${then}`, {
    write,
    ...(to === undefined ? {} : { to }),
  });
}

/** The custody of a session's file. */
export function custodyOf(
  { record, journal, log }: SessionContext,
  { taker, branchOff }: Pick<CustodyOptions, "taker" | "branchOff">,
): Custody {
  const { file, isOpened, fileMark: mark } = record.stored;
  return new Custody({
    file,
    isOpened: isOpened === true,
    taker,
    mark,
    policy: () => record.stored.onForeignWrite ?? "reload",
    keep: (kept) => record.markFile(kept),
    tell: (notice) => journal.say("session/foreignWrite", { ...notice }),
    branchOff,
    log,
  });
}
