import { statSync } from "node:fs";
import type { Logger } from "pino";
import type { LiveRestoreFacts } from "../core/live-restore-facts.ts";
import { within } from "../lib/deadline.ts";
import type { Child, LeftState } from "../pi/child.ts";
import { connectKept, isMortal, type KeptPlace, keptPlaceOf, removeKept } from "../pi/kept-stdio.ts";
import { directoryId } from "../pi/lease.ts";
import { isLeaseHolder, type LeaseHolder, lifeOf } from "../pi/lease-holder.ts";
import { isSpoken } from "../pi/link.ts";
import { endMarked, isStill, signal } from "../pi/processes.ts";
import type { PiProgram } from "../pi/spawn-options.ts";
import type { ChildStdio, KeeperLink } from "../pi/stdio.ts";
import type { ChildPlace, ChildStore, StoredChild } from "../store/children.ts";

/** What the next daemon needs to go on with a child. */
interface ChildFacts {
  readonly sessionId: string;
  readonly generation: number;
  readonly process: LeaseHolder;
  /** The child's state directory. A copy of that has its rows, and not its children. */
  readonly stateDirId?: string | undefined;
  /** Marks the frames of its helper; a secret. */
  readonly statusKey: string;
  readonly left: LeftState;
  readonly program: PiProgram;
  /** pi's files when it was started. */
  readonly programStamp: string;
}

/** A child of a former daemon. Its output is repeated from {@link ChildPlace.kept} on. */
export interface LeftChild extends ChildFacts {
  readonly childId: string;
  readonly place: KeptPlace;
  readonly at: ChildPlace;
  /** Resolves when it has answered; without a `keeper` it has ended and left nothing. Never rejects. */
  readonly connected: Promise<ChildStdio>;
  /** Whether it has answered. */
  readonly hasAnswered: boolean;
  /** Ends one that does not answer. */
  kill(): void;
  /** It cannot go on: ends what is left of it. Resolves when the next daemon does not look for it. */
  forget(): Promise<void>;
}

/** Whether the log has everything that a child wrote and clients were told. */
export function isExact({ at }: LeftChild, { answer, from }: KeeperLink): boolean {
  return from === at.kept.offset && !answer.inexact;
}

/** Why a child only ends its run, as the end of a sentence. Undefined: it goes on. */
export function whyRetired({ left, program, programStamp }: LeftChild): string | undefined {
  if (!isSpoken(left.link.version)) return "its pi has the helper of another version of pi-rpcd";
  return programStamp === "" || stampOf(program.path) !== programStamp ? "its pi was replaced on disk" : undefined;
}

/**
 * Whether the store lacks effects of records that are gone. Later records would contradict it, so the child must end; then
 * its session file decides.
 */
export function lacksRecords({ at }: Pick<LeftChild, "at">, { answer }: KeeperLink): boolean {
  return answer.base > at.applied.offset;
}

export interface SurvivalOptions {
  readonly store: ChildStore;
  readonly facts: LiveRestoreFacts;
  readonly stateDir: string;
  readonly runDirectory: string;
  readonly socketDirectory: string;
  readonly maxStderrBytes: number;
  readonly log: Logger;
}

/** A child that takes longer to answer is waited for while the daemon serves. */
const answerWithinMs = 2_000;
const maxTimeoutMs = 2 ** 31 - 1;

/** Children that survive their daemon. */
export class Survival {
  readonly store: ChildStore;
  readonly facts: LiveRestoreFacts;
  readonly #options: SurvivalOptions;
  readonly #left = new Map<string, LeftChild>();
  /** pi's files when it was started, by the ids of children. */
  readonly #stamps = new Map<string, string>();
  #stateDirId: string | undefined;

  constructor(options: SurvivalOptions) {
    this.#options = options;
    this.store = options.store;
    this.facts = options.facts;
  }

  /** Connects to the children of a former daemon. Those that cannot be continued are forgotten. */
  async find(isSession: (sessionId: string) => boolean): Promise<void> {
    const { store, stateDir, log } = this.#options;
    this.#stateDirId = await directoryId(stateDir);
    const found = await Promise.all(
      store.all().map(async (stored) => {
        const left = await this.#connect(stored, isSession).catch((error: unknown) => {
          log.warn({ err: error, childId: stored.childId }, "cannot connect to the child of a former daemon");
        });
        if (left === undefined) await this.#forget(stored);
        return left ?? [];
      }),
    );
    for (const left of found.flat()) {
      this.#left.set(left.sessionId, left);
      this.#stamps.set(left.childId, left.programStamp);
    }
  }

  /** Ids of the children that go on. */
  get childIds(): ReadonlySet<string> {
    return new Set(Array.from(this.#left.values(), ({ childId }) => childId));
  }

  /** The child that a former daemon left in a session. */
  leftIn(sessionId: string): LeftChild | undefined {
    return this.#left.get(sessionId);
  }

  /** What the next daemon needs; undefined if the child cannot go on without this one. */
  factsOf(child: Child, sessionId: string, generation: number): ChildFacts | undefined {
    const { left, identity, statusKey, program } = child;
    if (left === undefined || identity === undefined) return undefined;
    const programStamp = this.#stamps.get(child.id) ?? stampOf(program.path);
    this.#stamps.set(child.id, programStamp);
    void child.exited.then(() => this.#stamps.delete(child.id));
    const stateDirId = this.#stateDirId;
    return { sessionId, generation, process: identity, stateDirId, statusKey, left, program, programStamp };
  }

  async #connect(stored: StoredChild, isSession: (sessionId: string) => boolean): Promise<LeftChild | undefined> {
    const { childId, place: at } = stored;
    const facts = stored.facts as unknown as ChildFacts;
    if (!isLeaseHolder(facts.process) || !isSession(facts.sessionId)) return undefined;
    if (facts.stateDirId !== this.#stateDirId) return undefined;
    const { process } = facts;
    const place = this.#placeOf(childId);
    // Numbers of processes mean nothing after a boot, or in another container.
    const { pid, startTime } = (await lifeOf(process)) === "elsewhere" ? { pid: 0, startTime: "" } : process;
    if (pid === 0 || isMortal(place) || this.#left.has(facts.sessionId)) return undefined;
    const connected = connectKept(
      place,
      { childId, pid, startTime },
      { from: at.kept.offset, timeoutMs: maxTimeoutMs, maxStderrBytes: this.#options.maxStderrBytes },
    ) as Promise<ChildStdio>;
    const first = await within(connected, answerWithinMs);
    if (first.kind === "done" && (first.value.keeper === undefined || lacksRecords({ at }, first.value.keeper)))
      return undefined;
    const kill = (): void => {
      void isStill({ pid, startTime }).then((isThere) => isThere && signal(-pid, "SIGKILL"));
    };
    const forget = async (): Promise<void> => {
      await endMarked([childId]);
      await this.#forget(stored);
    };
    return { ...facts, childId, place, at, connected, hasAnswered: first.kind === "done", kill, forget };
  }

  async #forget({ childId }: StoredChild): Promise<void> {
    this.facts.lost += 1;
    await this.store.delete(childId).catch(() => {});
    removeKept(this.#placeOf(childId));
  }

  #placeOf(childId: string): KeptPlace {
    const { socketDirectory, runDirectory } = this.#options;
    return keptPlaceOf(childId, socketDirectory, runDirectory);
  }
}

/** Differs when pi is replaced on disk. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return "";
  }
}
