import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
const estimator = "context/parts/estimator/";

/** Other ways to count tokens: pi's own counts, the simple form for contexts, tokenizers, quarters of lengths. */
const otherCounts = [
  /\bestimate(?:Tokens|Text|Message|ContextTokens|ProjectedContextTokens)\b/,
  /\bgetContextUsage\b/,
  /\bgpt-tokenizer\b/,
  /\bcountText\b/,
  /\.length\s*\/\s*4\b/,
];

function otherCountsIn(file: string, source: string): readonly string[] {
  if (file.startsWith(estimator)) return [];
  return source.split("\n").flatMap((line, at) => {
    const code = line.replace(/^\s*(?:\/\/|\*|\/\*).*/, "");
    return otherCounts.some((pattern) => pattern.test(code)) ? [`${file}:${at + 1} ${line.trim()}`] : [];
  });
}

test("every decision inside pi uses the one estimator: nothing else in the helper counts tokens", () => {
  const files = globSync("{extension,context/{cost,parts,pruning}}/**/*.ts", { cwd: root }).map((file) =>
    file.replaceAll("\\", "/"),
  );
  expect(files.some((file) => file.startsWith(estimator))).toBe(true);
  expect(files.flatMap((file) => otherCountsIn(file, readFileSync(join(root, file), "utf8")))).toEqual([]);
});

test("another way of counting is found", () => {
  const source =
    "const a = estimateTokens(m);\nconst b = ctx.getContextUsage();\nconst c = text.length / 4;\n// text.length / 4\n";
  expect(otherCountsIn("context/parts/x.ts", source)).toHaveLength(3);
  expect(otherCountsIn(`${estimator}x.ts`, source)).toEqual([]);
});
