import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkout } from "./environment.ts";

/** A fault that is put into a copy of the sources, to check that the soak finds it. */
export interface PlantedBug {
  readonly file: string;
  /** Occurs exactly once in the source. */
  readonly text: string;
  readonly replacement: string;
}

const shipped = ["cli", "client", "context", "extension", "protocol", "provider", "server", "package.json"];

/** Faults that the soak must be able to find. */
export const plantedBugs = {
  "any start of an answer counts as delivered": {
    file: "extension/delivery/verdict.ts",
    text: "  if (isFailure(stopReason)) return end(state, withStop(failure, stopReason));\n",
    replacement: '  if (isFailure(stopReason)) return accept(state, "headers", 200);\n',
  },
  "a push is handed over again after a crash": {
    file: "extension/delivery/hand-over.ts",
    text: "const found = findEntries(ctx.sessionManager, new Set(newPushes.map(({ deliveryId }) => deliveryId)));",
    replacement: "const found = findEntries(ctx.sessionManager, new Set<string>());",
  },
  "a daemon begins with numbers that another has used": {
    file: "server/core/seq-numbers.ts",
    text: "    this.#last = store.reserved;\n",
    replacement: "    this.#last = Math.max(0, store.reserved - block);\n",
  },
} as const satisfies Readonly<Record<string, PlantedBug>>;

/** A runnable copy of the sources with one fault in it. */
export class PatchedSource implements Disposable {
  readonly path: string;

  /** Throws if the text does not occur exactly once: then the fault must be planted in another way. */
  constructor({ file, text, replacement }: PlantedBug) {
    const source = readFileSync(join(checkout, file), "utf8");
    const found = source.split(text).length - 1;
    if (found !== 1) throw new Error(`${file} has the text of the planted bug ${found} times, not once: ${text}`);
    this.path = mkdtempSync(join(tmpdir(), "planted-"));
    for (const name of shipped) cpSync(join(checkout, name), join(this.path, name), { recursive: true });
    symlinkSync(join(checkout, "node_modules"), join(this.path, "node_modules"));
    writeFileSync(
      join(this.path, file),
      source.replace(text, () => replacement),
    );
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
