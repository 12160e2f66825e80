import type { Case } from "./checker.ts";
import type { Violation, ViolationKind } from "./history.ts";

export interface Report {
  readonly seed: number;
  readonly version: string;
  readonly seconds: number;
  readonly pushes: number;
  /** How often each fault has happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** Operations that could not be carried out, by their kind. */
  readonly missed: Readonly<Record<string, number>>;
  /** How many pushes ended in each state. */
  readonly ends: Readonly<Record<string, number>>;
  readonly requests: number;
  readonly frames: number;
  readonly lives: number;
  /** The daemon's logged errors, by message. */
  readonly logged: Readonly<Record<string, number>>;
  readonly violations: readonly Failure[];
}

/** A violation with all facts about its push. */
export interface Failure extends Violation {
  readonly known?: string;
}

const counted: readonly ViolationKind[] = ["wrong", "lost", "doubled", "seq", "process", "protocol"];

/** A summary of the run, and each failure with the facts needed to investigate it. */
export function reportText(report: Report): string {
  const { seed, version, seconds, pushes, faults, missed, ends, requests, frames, lives, logged, violations } = report;
  const kinds = counted.map((kind) => `${violations.filter((found) => found.kind === kind).length} ${kind}`);
  return [
    ...violations.slice(0, 20).map((failure) => failureText(failure, seed)),
    `soak of pi ${version}: seed ${seed}, ${(seconds / 60).toFixed(1)} min, ${pushes} pushes, ${requests} model requests, ${frames} frames, ${lives} lives of the daemon`,
    `  ends: ${listed(ends)}`,
    "  faults:",
    ...Object.entries(faults).map(([kind, count]) => `    ${String(count).padStart(5)}  ${kind}`),
    ...(Object.keys(missed).length === 0 ? [] : [`  did not happen: ${listed(missed)}`]),
    ...(Object.keys(logged).length === 0 ? [] : [`  logged by the daemon as errors: ${listed(logged)}`]),
    `  ${kinds.join(", ")}`,
  ].join("\n");
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

function failureText({ kind, message, deliveryId, session, known }: Failure, seed: number): string {
  const what = [deliveryId === undefined ? undefined : `push ${deliveryId}`, session && `session ${session}`];
  const head = `${kind.toUpperCase()} (seed ${seed}${what.map((part) => (part ? `, ${part}` : "")).join("")}): ${message}`;
  return known === undefined ? `${head}\n` : `${head}\n${known}\n`;
}

/** All facts about a push. */
export function caseText({ push, final, sightings, claims, requests, entries, deaths }: Case): string {
  const lines = [
    `  pushed: ${push.answer}, ${push.text.length} characters, by ${push.api}`,
    `  last word: ${final === undefined ? "none" : JSON.stringify(final)}`,
    ...sightings.map(
      ({ at, from, life, delivery: { state, reason, history } }) =>
        `  seen ${at} life ${life} ${from}: ${state}${reason === undefined ? "" : `{${reason.code}}`} (${history.length} steps)`,
    ),
    ...claims.map(({ from, state }) => `  ${from} said: ${state}`),
    ...requests.map(
      (request) =>
        `  request ${request.n}: received ${request.receivedAt}, ${request.carried[push.id] ?? 0} times in it, status ${request.status} at ${request.headersSentAt}, ${request.outcome} at ${request.endedAt}`,
    ),
    ...entries.map(
      ({ entryId, onActiveBranch, file }) =>
        `  entry ${entryId}${onActiveBranch ? "" : " (on another branch)"} in ${file.split("/").at(-1)}`,
    ),
    `  deaths: ${deaths.map(({ at, session }) => `${session ?? "daemon"} at ${at}`).join(", ") || "none"}`,
  ];
  return lines.join("\n");
}
