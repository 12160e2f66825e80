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

const shipped = ["acp", "cli", "client", "context", "extension", "protocol", "provider", "server", "package.json"];

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
  "a notification of the daemon takes a number that pi's repeated output has": {
    file: "server/log/journal.ts",
    text: "    if (isReplaying) this.#unsaid.push({ method, params: structuredClone(params) });\n    else this.#say({ method, params });\n",
    replacement: "    this.#say({ method, params });\n",
  },
  "records of a former daemon have their effects again": {
    file: "server/children/child-keeping.ts",
    text: "return left !== undefined && child.handled < left.applied.offset;",
    replacement: "return left !== undefined && child.handled < left.kept.offset;",
  },
  "what a former daemon stored and did not tell is not told": {
    file: "server/children/child-keeping.ts",
    text: "owed: [...journal.unsaid, ...this.#notSaid(owed())]",
    replacement: "owed: []",
  },
} as const satisfies Readonly<Record<string, PlantedBug>>;

/** Not faults: the time between a commit and what is told of it is long, so that kills come between them. */
export const lateNotifications: readonly PlantedBug[] = [
  {
    file: "server/delivery/delivery-notifier.ts",
    text: "    written.then(stored, stored);\n",
    replacement: "    const late = () => void setTimeout(stored, 150);\n    written.then(late, late);\n",
  },
  {
    file: "server/delivery/session-receipts.ts",
    text: "      await before;\n",
    replacement: "      await before;\n      await new Promise((resolve) => setTimeout(resolve, 50));\n",
  },
];

/** A runnable copy of the sources with faults in it, each in its own file. */
export class PatchedSource implements Disposable {
  readonly path: string;

  /** Throws if a text does not occur exactly once: then the fault must be planted in another way. */
  constructor(...bugs: readonly PlantedBug[]) {
    const changed = bugs.map(({ file, text, replacement }) => {
      const source = readFileSync(join(checkout, file), "utf8");
      const found = source.split(text).length - 1;
      if (found !== 1) throw new Error(`${file} has the text of the planted bug ${found} times, not once: ${text}`);
      return { file, text: source.replace(text, () => replacement) };
    });
    this.path = mkdtempSync(join(tmpdir(), "planted-"));
    for (const name of shipped) cpSync(join(checkout, name), join(this.path, name), { recursive: true });
    symlinkSync(join(checkout, "node_modules"), join(this.path, "node_modules"));
    for (const { file, text } of changed) writeFileSync(join(this.path, file), text);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
