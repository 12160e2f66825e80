import { isDeepStrictEqual } from "node:util";
import { patience } from "../../helpers/patience.ts";
import { FrontEnd } from "./front-end.ts";
import { Normaliser } from "./normalise.ts";
import type { Program } from "./program.ts";
import { describeRecord, type PiRecord } from "./records.ts";
import type { Scenario } from "./scenario.ts";
import { World } from "./world.ts";

/** One run of a scenario, in a form in which two runs can be compared. */
export interface Run {
  readonly program: string;
  readonly records: readonly PiRecord[];
  readonly stderr: string;
  /** The exit code, or the signal that ended it. */
  readonly exit: number | string | null;
  /** Why the scenario could not be played to its end. */
  readonly problem?: string;
}

export interface RunOptions {
  /** How long each step may take, in milliseconds: only one that hangs takes so long. Default: that of all tests. */
  readonly patienceMs?: number;
}

/** How many records before a difference are shown. */
const shownBefore = 2;

/** How much of a record that differs is shown, in characters. */
const maxShown = 800;

/** Plays a scenario with a program, in directories of its own that are removed afterwards. */
export async function runScenario(scenario: Scenario, program: Program, options: RunOptions = {}): Promise<Run> {
  const world = await World.open(scenario);
  const release: (() => Promise<void>)[] = [() => world[Symbol.asyncDispose]()];
  try {
    const stop = await program.prepare?.(world);
    if (stop !== undefined) release.push(stop);
    const args = (scenario.args ?? []).map((arg) => arg.replaceAll("<root>", world.root));
    const front = new FrontEnd(program, world, { args, patienceMs: options.patienceMs ?? patience.timeout });
    release.push(() => front.destroy());
    const problem = (await play(scenario, front)) ?? program.problem?.(world);
    const { code, signal } = await front.exited;
    const normaliser = new Normaliser(world);
    const records = normaliser.records(front.records);
    const kept = (scenario.allow ?? []).reduce((left, { apply }) => apply(left, program), records);
    const stderr = normaliser.text(front.stderr);
    const exit = signal ?? code;
    const isAllowedEnd = !program.isDropIn && scenario.allow?.some(({ piExit }) => piExit === exit) === true;
    return {
      program: program.name,
      records: kept,
      ...(isAllowedEnd ? { stderr: "", exit: 0 } : { stderr, exit }),
      ...(problem !== undefined && { problem }),
    };
  } finally {
    for (const end of release.reverse()) await end();
  }
}

/** Returns why a scenario was not played to its end. The program has ended in any case. */
async function play(scenario: Scenario, front: FrontEnd): Promise<string | undefined> {
  try {
    await scenario.play(front);
    await front.end();
    return undefined;
  } catch (error) {
    await front.destroy();
    return (error as Error).message;
  }
}

/** The first difference of two runs as a text for people; undefined if there is none. */
export function difference(one: Run, other: Run): string | undefined {
  const length = Math.max(one.records.length, other.records.length);
  const at = Array.from({ length }, (_, index) => index).find(
    (index) => !isDeepStrictEqual(one.records[index], other.records[index]),
  );
  const found = [
    ...(at === undefined ? [] : [describeDifference(one, other, at)]),
    ...(one.exit === other.exit
      ? []
      : [`The exit differs: ${one.exit} (${one.program}), ${other.exit} (${other.program})`]),
    ...(one.stderr === other.stderr
      ? []
      : [
          `stderr differs:\n  ${one.program}: ${JSON.stringify(one.stderr)}\n  ${other.program}: ${JSON.stringify(other.stderr)}`,
        ]),
    ...[one, other].flatMap(({ program, problem }) => (problem === undefined ? [] : [`${program}: ${problem}`])),
  ];
  return found.length === 0 ? undefined : found.join("\n");
}

function describeDifference(one: Run, other: Run, at: number): string {
  const [left, right] = [one.records[at], other.records[at]];
  const where = left === undefined || right === undefined ? "" : ` at ${firstPath(left, right, "")}`;
  const shown = (record: PiRecord | undefined): string => {
    const text = JSON.stringify(record) ?? "no record";
    return text.length > maxShown ? `${text.slice(0, maxShown)}… (${text.length} characters)` : text;
  };
  const before = one.records.slice(Math.max(0, at - shownBefore), at);
  return [
    `Record ${at + 1} differs${where}.`,
    ...before.map((record) => `  both: ${describeRecord(record)}`),
    ...[one, other].flatMap(({ program, records }) => [
      `  ${program}: ${shown(records[at])}`,
      ...records.slice(at + 1, at + 1 + shownBefore).map((record) => `    then ${describeRecord(record)}`),
    ]),
  ].join("\n");
}

/** The path of the first field in which two values differ, with both values. */
function firstPath(left: unknown, right: unknown, path: string): string {
  if (isObject(left) && isObject(right)) {
    const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])];
    const key = keys.find((name) => !isDeepStrictEqual(left[name], right[name]));
    if (key !== undefined) return firstPath(left[key], right[key], `${path}.${key}`);
  }
  const [one = "nothing", other = "nothing"] = [left, right].map((value) => JSON.stringify(value)?.slice(0, maxShown));
  return `${path}: ${one} and ${other}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
