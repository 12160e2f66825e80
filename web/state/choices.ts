import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { type Result, type SessionInfo, WireError } from "../../client/browser.ts";
import type { Daemon } from "./daemon.ts";
import { done, type Outcome, outcomeOf, wordsOf } from "./outcome.ts";
import { textOf } from "./pi-values.ts";
import { act, read, readModels } from "./reading.ts";

/** Something that only pi knows. */
export type Known<Value> =
  | { readonly kind: "unknown" }
  | { readonly kind: "asking" }
  | { readonly kind: "known"; readonly value: Value }
  | { readonly kind: "refused"; readonly words: string };

export interface ModelChoice {
  readonly provider: string;
  readonly id: string;
  readonly name: string;
  /** Tokens. Undefined: not known. */
  readonly contextWindow?: number | undefined;
}

export interface CommandChoice {
  /** Without its slash. */
  readonly name: string;
  readonly description: string;
  readonly source: string;
}

/** The model, the level of thinking and the commands of a session: what is known, without starting a pi. */
export interface Choices {
  readonly model: ReadonlySignal<ModelChoice | undefined>;
  readonly level: ReadonlySignal<string | undefined>;
  readonly models: ReadonlySignal<Known<readonly ModelChoice[]>>;
  /** When pi said these models (Unix time in milliseconds). Undefined: it was not asked, or by {@link ask}. */
  readonly modelsAt: ReadonlySignal<number | undefined>;
  readonly levels: ReadonlySignal<Known<readonly string[]>>;
  readonly commands: ReadonlySignal<Known<readonly CommandChoice[]>>;
  /** Whether {@link ask} would start the session's pi. */
  readonly isAsleep: ReadonlySignal<boolean>;
  /** Asks pi for all three; starts it if it sleeps. */
  ask(): Promise<Outcome>;
  setModel(model: ModelChoice): Promise<Outcome>;
  setLevel(level: string): Promise<Outcome>;
}

export interface ChoicesOptions {
  readonly daemon: Daemon;
  readonly sessionId: string;
  readonly info: ReadonlySignal<SessionInfo | undefined>;
}

/** What is known of pi's choices. What pi answered once stays known while the session is shown. */
export class SessionChoices implements Choices {
  readonly #options: ChoicesOptions;
  readonly #models = signal<Known<readonly ModelChoice[]>>({ kind: "unknown" });
  readonly modelsAt = signal<number | undefined>(undefined);
  readonly #levels = signal<Known<readonly string[]>>({ kind: "unknown" });
  readonly #commands = signal<Known<readonly CommandChoice[]>>({ kind: "unknown" });
  readonly model: ReadonlySignal<ModelChoice | undefined>;
  readonly level: ReadonlySignal<string | undefined>;
  readonly isAsleep: ReadonlySignal<boolean>;

  constructor(options: ChoicesOptions) {
    this.#options = options;
    const { info } = options;
    this.model = computed(() => this.#model());
    this.level = computed(() => info.value?.thinkingLevel);
    this.isAsleep = computed(() => info.value?.state === "hibernated" || info.value?.state === "crashed");
    void this.#readKnown();
    void this.#readModels();
  }

  get models(): ReadonlySignal<Known<readonly ModelChoice[]>> {
    return this.#models;
  }

  get levels(): ReadonlySignal<Known<readonly string[]>> {
    return this.#levels;
  }

  get commands(): ReadonlySignal<Known<readonly CommandChoice[]>> {
    return this.#commands;
  }

  async ask(): Promise<Outcome> {
    const { daemon, sessionId } = this.#options;
    for (const known of [this.#models, this.#levels, this.#commands])
      if (known.value.kind !== "known") known.value = { kind: "asking" };
    const models = await outcomeOf(() => act(daemon, "model/list", { sessionId }));
    if (models.kind === "done") this.#takeModels(models.value);
    else if (this.#models.value.kind !== "known") this.#models.value = models;
    // pi is there now, so that these two know their answers.
    await this.#readKnown();
    return models.kind === "refused" ? models : done;
  }

  setModel({ provider, id }: ModelChoice): Promise<Outcome> {
    const { daemon, sessionId } = this.#options;
    return outcomeOf(async () => {
      await act(daemon, "session/setModel", { sessionId, provider, modelId: id });
      // Another model can have other levels.
      await this.#readLevels();
      return undefined;
    });
  }

  setLevel(level: string): Promise<Outcome> {
    const { daemon, sessionId } = this.#options;
    return outcomeOf(async () => {
      await act(daemon, "session/setThinkingLevel", { sessionId, level: level as "off" });
      return undefined;
    });
  }

  #model(): ModelChoice | undefined {
    const model = this.#options.info.value?.model;
    if (model === undefined) return undefined;
    const { provider, id } = model;
    const models = this.#models.value;
    const listed = models.kind === "known" ? models.value : [];
    return listed.find((each) => each.provider === provider && each.id === id) ?? { provider, id, name: id };
  }

  async #readKnown(): Promise<void> {
    await Promise.all([this.#readLevels(), this.#readCommands()]);
  }

  async #readModels(): Promise<void> {
    const { daemon, sessionId } = this.#options;
    const known = await knownOf(() => readModels(daemon, sessionId));
    // pi may have been asked meanwhile.
    if (known.kind === "known" && this.#models.value.kind === "unknown") this.#takeModels(known.value);
  }

  #takeModels({ models, cachedAt }: Result<"model/list">): void {
    this.modelsAt.value = cachedAt;
    this.#models.value = {
      kind: "known",
      value: models.map(({ provider, id, name = id, contextWindow }) => ({ provider, id, name, contextWindow })),
    };
  }

  async #readLevels(): Promise<void> {
    const { daemon, sessionId } = this.#options;
    const known = await knownOf(() => read(daemon, "session/getThinkingLevels", { sessionId }));
    this.#levels.value = known.kind === "known" ? { kind: "known", value: known.value.levels } : known;
  }

  async #readCommands(): Promise<void> {
    const { daemon, sessionId } = this.#options;
    const known = await knownOf(() => read(daemon, "session/getCommands", { sessionId }));
    this.#commands.value =
      known.kind === "known"
        ? {
            kind: "known",
            value: known.value.commands.map((each) => ({ ...each, description: textOf(each.description) })),
          }
        : known;
  }
}

/** What pi was never asked is unknown. */
async function knownOf<Value>(call: () => Promise<Value>): Promise<Known<Value>> {
  try {
    return { kind: "known", value: await call() };
  } catch (error) {
    if (error instanceof WireError && ["session_asleep", "answer_unknown"].includes(error.kind))
      return { kind: "unknown" };
    return { kind: "refused", words: wordsOf(error) };
  }
}
