import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Step } from "../../../provider/script.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";
import { Editor, type EditorOptions } from "./editor.ts";

const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "extension");

/** A daemon with real pi, and editors of it. */
export class Scene implements AsyncDisposable {
  readonly stage: Stage;
  readonly #editors: Editor[] = [];

  private constructor(stage: Stage) {
    this.stage = stage;
  }

  static async open(script: readonly Step[] = [], { config }: { readonly config?: string } = {}): Promise<Scene> {
    const stage = await startStage({ provider: { script }, ...(config === undefined ? {} : { config }) });
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
