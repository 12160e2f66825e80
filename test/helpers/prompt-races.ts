import type { Disposition, IfRunning, PromptState, RunOutcome } from "../../protocol/prompt.ts";

/** An action of one client. All prompts have different texts. */
export type Move =
  | { readonly kind: "prompt"; readonly n: number; readonly ifRunning: IfRunning; readonly twice: boolean }
  | { readonly kind: "abort" | "clearQueue" | "compact" | "settle" | "crash" };

/** A session to race in. */
export interface Racecourse {
  prompt(promptId: string, text: string, ifRunning: IfRunning): Promise<Answer>;
  /** Resolves or rejects within a time limit. */
  do(kind: Exclude<Move["kind"], "prompt">): Promise<unknown>;
  /** Lets all active work finish. */
  rest(): Promise<void>;
  stateOf(promptId: string): Promise<PromptState | undefined>;
  /** The users' texts in pi's session file. */
  transcript(): Promise<readonly string[]>;
  /** The reported outcomes of the runs; a number for each run that began. */
  runs(): { readonly started: number; readonly ended: readonly RunOutcome[] };
}

interface Answer {
  readonly disposition: Disposition;
  readonly runId?: string;
}

const textOf = (n: number): string => `the text of prompt ${n}.`;
const idOf = (n: number): string => `prompt-${n}`;

/** Errors that a call may get in a race. Anything else is a fault. */
const allowed = new Set([
  "session_busy",
  "child_exited",
  "prompt_lost",
  "refused_by_pi",
  "unsupported_by_pi",
  "deadline_exceeded",
]);

/** Makes all moves of a row at once, row by row, and returns the faults found afterwards. */
export async function race(course: Racecourse, rows: readonly (readonly Move[])[]): Promise<readonly string[]> {
  const wrong: string[] = [];
  const taken = new Map<number, Answer>();
  const make = async (move: Move): Promise<void> => {
    try {
      if (move.kind !== "prompt") {
        await course.do(move.kind);
        return;
      }
      const { n, ifRunning, twice } = move;
      const ask = () => course.prompt(idOf(n), textOf(n), ifRunning);
      const answers = await Promise.allSettled(twice ? [ask(), ask()] : [ask()]);
      for (const answer of answers) {
        if (answer.status === "rejected") throw answer.reason;
        taken.set(n, answer.value);
      }
      const said = new Set(answers.map((answer) => answer.status === "fulfilled" && answer.value.disposition));
      if (said.size > 1) wrong.push(`prompt ${n} had two answers: ${[...said].join(", ")}`);
    } catch (error) {
      const kind = (error as { readonly kind?: string }).kind ?? String(error);
      if (!allowed.has(kind)) wrong.push(`${JSON.stringify(move)} ended with ${kind}`);
    }
  };
  for (const row of rows) await Promise.all(row.map(make));
  await course.rest();
  return [...wrong, ...(await contradictions(course, rows.flat(), taken))];
}

async function contradictions(
  course: Racecourse,
  moves: readonly Move[],
  taken: ReadonlyMap<number, Answer>,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  const transcript = await course.transcript();
  for (const move of moves) {
    if (move.kind !== "prompt") continue;
    const state = await course.stateOf(idOf(move.n));
    const count = transcript.filter((text) => text === textOf(move.n)).length;
    if (count > 1) wrong.push(`prompt ${move.n} stands ${count} times in the transcript`);
    // A refused prompt is forgotten: its acceptance was never reported.
    const said = state ?? "refused";
    if ((said === "inserted") !== (count === 1))
      wrong.push(`prompt ${move.n} is ${said}, and stands there ${count} times`);
    if (!["inserted", "lost", "withdrawn", "refused"].includes(said)) wrong.push(`prompt ${move.n} stays ${said}`);
    if (taken.has(move.n) && said === "refused") wrong.push(`prompt ${move.n} was taken, and nobody knows of it`);
  }
  const starters = Map.groupBy(
    [...taken.values()].filter(({ disposition }) => disposition === "started"),
    ({ runId }) => runId,
  );
  for (const [runId, of] of starters) if (of.length > 1) wrong.push(`run ${runId} was started ${of.length} times`);
  const { started, ended } = course.runs();
  if (started !== ended.length) wrong.push(`${started} runs began, and ${ended.length} ended`);
  return wrong;
}
