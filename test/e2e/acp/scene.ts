import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Step } from "../../../provider/script.ts";
import type { EdgeLimits } from "../../../server/edge/limits.ts";
import { type KillableStage, startKillableStage } from "../../helpers/killable-stage.ts";
import { startStage } from "../../helpers/stage.ts";
import { openAcp } from "./connection.ts";
import { Editor, type EditorOptions } from "./editor.ts";

/** How an editor reaches the agent: `pi-rpcd acp`, or the daemon's own `/acp`. */
export const transports = ["stdin and stdout", "/acp"] as const;
export type Transport = (typeof transports)[number];

const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "extension");

export interface SceneOptions {
  /** The daemon is a process of its own, and a restart kills it. */
  readonly isKillable?: boolean;
  /** pi's settings. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Whether pi has models. */
  readonly hasModels?: boolean;
  /** Other bounds of the daemon's edge than the usual ones. Not of one that is killable. */
  readonly edgeLimits?: Partial<EdgeLimits>;
  /** Of editors that do not say another. Default: stdin and stdout. */
  readonly over?: Transport;
}

/** A daemon with real pi, and editors of it. */
export class Scene implements AsyncDisposable {
  readonly stage: KillableStage;
  readonly #over: Transport;
  readonly #editors: Editor[] = [];

  private constructor(stage: KillableStage, over: Transport) {
    this.stage = stage;
    this.#over = over;
  }

  static async open(
    script: readonly Step[] = [],
    {
      isKillable = false,
      settings = {},
      hasModels = true,
      edgeLimits = {},
      over = "stdin and stdout",
    }: SceneOptions = {},
  ): Promise<Scene> {
    const options = { provider: { script }, agent: { settings, ...(hasModels ? {} : { models: [] }) } };
    const stage = await (isKillable ? startKillableStage(options) : startStage({ ...options, edgeLimits }));
    mkdirSync(join(stage.agentDir.path, "extensions"));
    const path = JSON.stringify(join(fixtures, "asking.ts"));
    writeFileSync(join(stage.agentDir.path, "extensions", "asking.ts"), `export { default } from ${path};\n`);
    return new Scene(stage, over);
  }

  get cwd(): string {
    return this.stage.cwd;
  }

  /** An editor that has sent nothing yet. */
  async connect({
    over = this.#over,
    ...options
  }: Partial<EditorOptions> & { readonly over?: Transport } = {}): Promise<Editor> {
    const isOpen = over === "stdin and stdout" || options.socket !== undefined;
    const editor = new Editor({
      ...this.stage,
      ...(isOpen ? {} : { socket: (await openAcp(this.stage)).socket }),
      ...options,
    });
    this.#editors.push(editor);
    return editor;
  }

  /** An editor that has sent `initialize`. */
  async editor({
    abilities = {},
    ...options
  }: Parameters<Scene["connect"]>[0] & { readonly abilities?: object } = {}): Promise<Editor> {
    const editor = await this.connect(options);
    await editor.initialize(abilities as Readonly<Record<string, unknown>>);
    return editor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = await Promise.allSettled(this.#editors.map((editor) => editor[Symbol.asyncDispose]()));
    await this.stage[Symbol.asyncDispose]();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}
