import type { Table } from "../figure.ts";
import type { SessionOutcome } from "./session.ts";

/** The same task in two sessions. */
export interface Pair {
  readonly model: string;
  readonly task: string;
  readonly bare: SessionOutcome;
  readonly lean: SessionOutcome;
}

export type Decision = "yes" | "no" | "undecided";

export interface Verdict {
  readonly decision: Decision;
  readonly reason: string;
  /** Pairs that count: in the others both sessions failed. */
  readonly pairs: number;
  readonly solved: { readonly bare: number; readonly lean: number };
  /** Pairs that only bare pi, or only `lean`, solved. */
  readonly only: { readonly bare: number; readonly lean: number };
  /** The probability that chance alone gives `lean` so many losses, by the sign test. */
  readonly chance: number;
  readonly usd: { readonly bare: number; readonly lean: number };
}

const leastPairs = 30;
const significance = 0.1;

/** The rule, as it is printed before the check begins. */
export const rule = `The profile lean may become the default if, in at least ${leastPairs} pairs of sessions, it does not solve fewer tasks than bare pi by more than chance explains (one-sided sign test of the pairs that only one of both solved, p < ${significance}), and costs less in sum. With fewer pairs, if bare pi solves less than half of them, or if lean removed nothing from the context in more than half of them, the check decides nothing.`;

export function verdictOf(all: readonly Pair[]): Verdict {
  const pairs = all.filter(({ bare, lean }) => !(hasFailed(bare) && hasFailed(lean)));
  const count = (matches: (pair: Pair) => boolean): number => pairs.filter(matches).length;
  const sum = (arm: "bare" | "lean"): number => pairs.reduce((usd, pair) => usd + pair[arm].usd, 0);
  const solved = { bare: count(({ bare }) => isSolved(bare)), lean: count(({ lean }) => isSolved(lean)) };
  const only = {
    bare: count(({ bare, lean }) => isSolved(bare) && !isSolved(lean)),
    lean: count(({ bare, lean }) => !isSolved(bare) && isSolved(lean)),
  };
  const chance = signTest(only.bare, only.lean);
  const usd = { bare: sum("bare"), lean: sum("lean") };
  const idle = count(({ lean }) => lean.removed + lean.compactions === 0);
  const decide = (): readonly [Decision, string] => {
    if (pairs.length < leastPairs) return ["undecided", `${pairs.length} pairs of ${leastPairs}`];
    if (solved.bare < pairs.length / 2) return ["undecided", "bare pi solves less than half of the tasks"];
    if (idle > pairs.length / 2) return ["undecided", `lean removed nothing in ${idle} pairs`];
    if (chance < significance) return ["no", "lean solves fewer tasks than bare pi, by more than chance explains"];
    if (usd.lean >= usd.bare) return ["no", "lean does not cost less"];
    return ["yes", "lean does not solve fewer tasks by more than chance explains, and costs less"];
  };
  const [decision, reason] = decide();
  return { decision, reason, pairs: pairs.length, solved, only, chance, usd };
}

function isSolved({ fault }: SessionOutcome): boolean {
  return fault === undefined;
}

/** Whether the session ended by an error, of the provider for example, and not by a wrong result or a limit. */
export function hasFailed({ ended }: SessionOutcome): boolean {
  return ended === "error";
}

/** The probability of at least `lost` of `lost + won`, where both are equally likely. */
export function signTest(lost: number, won: number): number {
  const count = lost + won;
  let ways = 1;
  let sum = 0;
  for (let chosen = 0; chosen <= count; chosen += 1) {
    if (chosen >= lost) sum += ways;
    ways = (ways * (count - chosen)) / (chosen + 1);
  }
  return sum / 2 ** count;
}

const columns = [
  ...["model", "task", "", "solved", "USD", "requests", "tokens"],
  ...["recalls", "read again", "removed", "compactions", "minutes"],
];

/** A line for each model, task and kind of session: sums over the repetitions. */
export function tableOf(pairs: readonly Pair[]): Table {
  const groups = Map.groupBy(pairs, ({ model, task }) => `${model}\n${task}`);
  const rows = [...groups].flatMap(([key, group]) =>
    (["bare", "lean"] as const).map((arm) => {
      const own = group.map((pair) => pair[arm]);
      const sum = (of: (outcome: SessionOutcome) => number): number => own.reduce((all, one) => all + of(one), 0);
      return [
        ...key.split("\n"),
        arm === "bare" ? "bare pi" : "lean",
        `${own.filter(isSolved).length} of ${own.length}`,
        ...[sum(({ usd }) => usd), sum(({ requests }) => requests), sum(({ tokens }) => tokens)],
        ...[sum(({ recalls }) => recalls), sum(({ readAgain }) => readAgain), sum(({ removed }) => removed)],
        ...[sum(({ compactions }) => compactions), sum(({ minutes }) => minutes)],
      ];
    }),
  );
  return { title: "pairs of sessions, summed over the repetitions", columns, rows };
}

export function verdictText({ decision, reason, pairs, solved, only, chance, usd }: Verdict): string {
  const facts = [
    `solved ${solved.lean} with lean and ${solved.bare} with bare pi, of ${pairs}`,
    `${only.bare} only with bare pi, ${only.lean} only with lean (p = ${chance.toFixed(3)})`,
    `USD ${usd.lean.toFixed(3)} with lean, ${usd.bare.toFixed(3)} with bare pi`,
  ];
  const claims = {
    yes: "lean may become the default",
    no: "lean may not become the default",
    undecided: "the check decides nothing",
  };
  return `verdict: ${claims[decision]}: ${reason}. ${facts.join("; ")}.`;
}
