import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RecallRegistry } from "../../../../../context/parts/recall/registry.ts";
import { addToolResults } from "../../../../../context/parts/tool-results/tool-results.ts";
import { resolveOptimisation } from "../../../../../protocol/optimisation/resolve.ts";
import { partial, unchecked } from "../../../../helpers/partial.ts";
import { fakeStatus } from "../../fake-host.ts";

interface Cut {
  readonly content: readonly { readonly text: string }[];
  readonly details: { readonly "pi-rpcd.recall": { readonly sha256: string; readonly tokens: number } };
}
type Stage = (event: object, ctx: object) => Cut | undefined;

let root = "";
let log = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tool-results-"));
  log = join(tmpdir(), `pi-bash-${root.slice(-6)}.log`);
});
afterEach(() => {
  rmSync(root, { recursive: true });
  rmSync(log, { force: true });
});

/** The part with this directory for the originals. */
function part(spillDirectory = root) {
  const status = fakeStatus();
  const counted: number[] = [];
  const stages: Stage[] = [];
  const use = (_hook: string, _name: string, stage: Stage): void => void stages.push(stage);
  addToolResults(unchecked({ pipeline: { use } }), {
    recall: partial({ need: () => {}, missing: () => undefined, registry: new RecallRegistry() }),
    config: () => resolveOptimisation({ toolResults: { enabled: true } }).toolResults,
    spillDirectory: () => spillDirectory,
    cuts: new Map(),
    estimator: {
      text: (text) => {
        counted.push(text.length);
        return text.length;
      },
    },
    status,
  });
  const ctx = { sessionManager: { getSessionId: () => "s1", getEntries: () => [] } };
  const cut = (text: string, fields: object = {}): Cut | undefined =>
    stages[0]?.({ toolName: "bash", isError: false, content: [{ type: "text", text }], ...fields }, ctx);
  return { cut, degraded: status.reasons, counted };
}

function originalOf(cut: Cut | undefined): string {
  return readFileSync(join(root, cut?.details["pi-rpcd.recall"].sha256 ?? ""), "utf8");
}

const other = "Of another session.\n".repeat(2_000);
const real = "What was printed.\n".repeat(1_000);
const noteOf = (): string => `\n\n[Showing lines 1-2 of 3. Full output: ${log}]`;

test.for([
  ["at the end of a good command", () => `${real}${noteOf()}\nok`, false],
  ["as pi does if a command fails", () => `${real}${noteOf()}\n\nCommand exited with code 1`, true],
  ["with the end of that output", () => `${real}${other.slice(-8_000)}${noteOf()}\n\nCommand exited with code 1`, true],
] as const)("what a command prints is kept, though it names another's log %s", ([, textOf, isError]) => {
  writeFileSync(log, other);
  const cut = part().cut(textOf(), { isError });
  expect(originalOf(cut)).toBe(textOf());
});

test.for([
  ["its details", false, (): object => ({ fullOutputPath: log })],
  ["its text alone", true, (): undefined => undefined],
] as const)("the log is the original where the tool names it in %s", ([, isError, detailsOf]) => {
  const printed = `${other}${real}`;
  writeFileSync(log, printed);
  const shown = printed.slice(-15_000, -1);
  const text = `${shown}${noteOf()}${isError ? "\n\nCommand exited with code 1" : ""}`;
  expect(originalOf(part().cut(text, { isError, details: detailsOf() }))).toBe(printed);
});

test("only the beginning of a large result is counted", () => {
  const { cut, counted } = part();
  const { tokens } = cut("0123456789abcde\n".repeat(200_000))?.details["pi-rpcd.recall"] ?? {};
  expect(Math.max(...counted)).toBe(1_048_576);
  expect(tokens).toBeGreaterThan(3_000_000);
});

test("a directory that cannot be written is reported identically for each result", () => {
  const { cut, degraded } = part(join(root, "not", "there"));
  expect([cut(real), cut(`${real}!`)]).toEqual([undefined, undefined]);
  expect(degraded).toEqual([
    "The original of a result could not be kept: ENOENT",
    "The original of a result could not be kept: ENOENT",
  ]);
});
