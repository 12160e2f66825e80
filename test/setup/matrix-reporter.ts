import type { Reporter, TestModule } from "vitest/node";

/** One cell of the matrix of deliveries: the content of its test's `meta`. */
export interface CellResult {
  /** The action of the provider, a client, an extension or a signal. */
  readonly does: string;
  /** The agent's activity, or where the push was. */
  readonly where: string;
  readonly api: string;
  /** State and reason at the end, before anything else carries the push. */
  readonly end: string;
}

declare module "vitest" {
  interface TaskMeta {
    cells?: readonly CellResult[];
  }
}

/** Prints the matrix as text: for each pi and each cell, where the push has ended with each API. */
export default class MatrixReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const projects = new Map<string, Map<string, Map<string, string[]>>>();
    let failed = 0;
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const isPassed = test.result().state === "passed";
        if (test.result().state === "failed") failed += 1;
        const cells = projects.get(module.project.name) ?? new Map<string, Map<string, string[]>>();
        projects.set(module.project.name, cells);
        for (const { does, where, api, end } of test.meta().cells ?? []) {
          const name = `${where}: ${does}`;
          const ends = cells.get(name) ?? new Map<string, string[]>();
          const shown = isPassed ? end : `${end} (WRONG)`;
          cells.set(name, ends.set(shown, [...(ends.get(shown) ?? []), api]));
        }
      }
    }
    for (const [project, cells] of projects) {
      process.stdout.write(`\n${project}: ${cells.size} cells\n`);
      for (const name of [...cells.keys()].sort()) process.stdout.write(`  ${name} → ${shownEnds(cells.get(name))}\n`);
    }
    process.stdout.write(`\n${failed} tests failed\n`);
  }
}

/** One end for all APIs, or several ends with their APIs. */
function shownEnds(ends: ReadonlyMap<string, readonly string[]> | undefined): string {
  const all = [...(ends ?? [])];
  return all.map(([end, apis]) => `${end} [${[...new Set(apis)].join(", ")}]`).join("; ");
}
