import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Step } from "../../../provider/script.ts";
import { type KillableStage, startKillableStage } from "../../helpers/killable-stage.ts";
import { startStage } from "../../helpers/stage.ts";
import { Editor, type EditorOptions } from "./editor.ts";

const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "extension");

/** A daemon with real pi, and editors of it. */
export class Scene implements AsyncDisposable {
  readonly stage: KillableStage;
  readonly #editors: Editor[] = [];

  private constructor(stage: KillableStage) {
    this.stage = stage;
  }

  /** `isKillable`: the daemon is a process of its own, and a restart kills it. */
  static async open(
    script: readonly Step[] = [],
    {
      isKillable = false,
      settings = {},
    }: { readonly isKillable?: boolean; readonly settings?: Readonly<Record<string, unknown>> } = {},
  ): Promise<Scene> {
    const options = { provider: { script }, agent: { settings } };
    const stage = await (isKillable ? startKillableStage(options) : startStage(options));
    mkdirSync(join(stage.agentDir.path, "extensions"));
    const path = JSON.stringify(join(fixtures, "asking.ts"));
    writeFileSync(join(stage.agentDir.path, "extensions", "asking.ts"), `export { default } from ${path};\n`);
    return new Scene(stage);
  }

  get cwd(): string {
    return this.stage.cwd;
  }

  /** An editor that has sent `initialize`. */
  async editor({
    abilities = {},
    ...options
  }: Partial<EditorOptions> & { readonly abilities?: object } = {}): Promise<Editor> {
    const editor = new Editor({ ...this.stage, ...options });
    this.#editors.push(editor);
    await editor.initialize(abilities as Readonly<Record<string, unknown>>);
    return editor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = await Promise.allSettled(this.#editors.map((editor) => editor[Symbol.asyncDispose]()));
    await this.stage[Symbol.asyncDispose]();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}
