import { BaseSequencer, type TestSpecification } from "vitest/node";

/** These take a minute or more each, so none of them should start last. */
const longest = [
  "test/e2e/once/soak-planted.test.ts",
  "test/e2e/drop-in/twins.test.ts",
  "test/e2e/soak.test.ts",
  "test/e2e/live-restore/edges.test.ts",
  "test/e2e/matrix/deaths.test.ts",
  "test/e2e/matrix/inside.test.ts",
  "test/unit/tooling/leaks.test.ts",
];

/**
 * Starts the longest files first, whatever their project, then those on pi, then those without one, which are short.
 * Files of one project follow each other, because a worker keeps its loaded modules only from one to the next.
 */
export default class LongestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specifications);
    return Array.from(sorted, (specification) => ({ specification, rank: rankOf(specification) }))
      .sort((a, b) => a.rank - b.rank || a.specification.project.name.localeCompare(b.specification.project.name))
      .map(({ specification }) => specification);
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  const index = longest.findIndex((file) => moduleId.endsWith(`/${file}`));
  if (index >= 0) return index;
  return longest.length + (["unit", "contract"].includes(project.name) ? 1 : 0);
}
