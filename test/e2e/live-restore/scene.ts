import { expect } from "vitest";
import type { Client, SessionHandle } from "../../../client/index.ts";
import type { Gap } from "../../../protocol/event.ts";
import type { Step } from "../../../provider/script.ts";
import { LogRecorder } from "../../helpers/log-recorder.ts";
import { patience } from "../../helpers/patience.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { RestoreStage, type RestoreStageOptions } from "../../helpers/restore-stage.ts";
import { SessionRecord } from "../../helpers/session-record.ts";
import { type Barrier, Barriers } from "../matrix/barriers.ts";

export interface SceneOptions extends Omit<RestoreStageOptions, "pi" | "provider"> {
  readonly script?: readonly Step[];
  /** Which gaps the client may get. Default: none. */
  readonly allows?: ((gap: Gap) => boolean) | undefined;
}

/** A stage with one session, a client of the library and a client that records the session's log. */
export class Scene implements AsyncDisposable {
  readonly stage: RestoreStage;
  readonly client: Client;
  readonly session: SessionHandle;
  readonly pid: number;
  readonly record: SessionRecord;
  readonly #reader: LogRecorder;
  readonly #barriers: Barriers;
  #isSuspended = false;

  private constructor(
    stage: RestoreStage,
    client: Client,
    session: SessionHandle,
    { barriers, allows }: Pick<SceneOptions, "allows"> & { readonly barriers: Barriers },
  ) {
    this.stage = stage;
    this.client = client;
    this.session = session;
    this.pid = session.info?.pid as number;
    this.record = new SessionRecord(session.id);
    this.#barriers = barriers;
    this.#reader = new LogRecorder({
      name: "a client",
      record: this.record,
      listening: () => stage.listening,
      ...(allows === undefined ? {} : { allows }),
    });
  }

  static async open({ script = [], allows, ...options }: SceneOptions = {}): Promise<Scene> {
    const stage = await RestoreStage.open({
      pi: piUnderTest(),
      provider: { script },
      extensions: ["asking", "matrix-pi", "emitting"],
      ...options,
    });
    try {
      const client = await stage.client();
      const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1" });
      return new Scene(stage, client, session, { barriers: await Barriers.open(), allows });
    } catch (error) {
      await stage[Symbol.asyncDispose]();
      throw error;
    }
  }

  barrier(): Barrier {
    return this.#barriers.make();
  }

  /** Stops pi's process: what is written to it waits. */
  suspend(): void {
    process.kill(this.pid, "SIGSTOP");
    this.#isSuspended = true;
  }

  resume(): void {
    if (this.#isSuspended) process.kill(this.pid, "SIGCONT");
    this.#isSuspended = false;
  }

  /** How often each request has a text as a user's message. */
  carried(text: string): readonly number[] {
    return this.stage.provider.requests.map((request) => request.countText(text, { roles: ["user"] }));
  }

  /** Resolves when the recording client has everything so far. */
  async caughtUp(): Promise<void> {
    await this.#reader.reached((await this.session.get()).cursor);
  }

  /**
   * Checks that the session has the same pi, and that clients were told everything once, as pi wrote it. `mayLack`: a
   * record of which they were promised no more than a gap.
   */
  async check(mayLack?: (record: string) => boolean): Promise<void> {
    const { record, pid } = this;
    await this.session.waitForIdle();
    await record.untilEnds(patience.timeout);
    expect(await this.session.get()).toMatchObject({
      pid,
      generation: 1,
      state: "idle",
      pendingDialogs: [],
      lostPrompts: [],
    });
    await this.caughtUp();
    record.checkNumbers();
    record.checkEvents(this.stage.records(pid), mayLack);
    record.checkReceipts();
    record.checkEnds();
    record.checkStates();
    expect(record.faults).toEqual([]);
    for (const { violations } of this.stage.provider.requests) expect(violations).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.resume();
    } catch {
      // It has ended.
    }
    await this.#reader[Symbol.asyncDispose]();
    await this.#barriers[Symbol.asyncDispose]();
    await this.stage[Symbol.asyncDispose]();
  }
}
