import { Random } from "../../../test/soak/random.ts";
import { traceCalls } from "./calls.ts";
import type { Trace, TraceCall, TraceName, TracePrompt, TraceTool } from "./trace.ts";
import { identifier, prose } from "./words.ts";

/** The arrangement of a trace's calls. */
interface Shape {
  readonly seed: number;
  readonly calls: number;
  readonly prompts: number;
  /** Number of calls in one answer. */
  readonly callsAtOnce: number;
  readonly tools: number;
  /** The prompts that begin with a skill, and which. */
  readonly skills: Readonly<Record<number, string>>;
  /** After this many prompts the user takes longer than a cache lives. */
  readonly pauseEvery: number;
}

const shapes: Readonly<Record<TraceName, Shape>> = {
  // Ten turns: two prompts, each with four answers that call tools and one that does not.
  short: { seed: 1, calls: 24, prompts: 2, callsAtOnce: 3, tools: 0, skills: { 1: "review" }, pauseEvery: 100 },
  autonomous: { seed: 2, calls: 60, prompts: 1, callsAtOnce: 1, tools: 0, skills: {}, pauseEvery: 100 },
  dialogue: {
    seed: 3,
    calls: 80,
    prompts: 40,
    callsAtOnce: 1,
    tools: 0,
    skills: { 2: "review", 8: "release", 14: "review", 20: "release", 26: "review", 32: "release" },
    pauseEvery: 9,
  },
  tools: { seed: 4, calls: 36, prompts: 4, callsAtOnce: 1, tools: 100, skills: {}, pauseEvery: 100 },
  "long run": { seed: 5, calls: 300, prompts: 1, callsAtOnce: 1, tools: 0, skills: {}, pauseEvery: 100 },
  "long dialogue": {
    seed: 6,
    calls: 300,
    prompts: 25,
    callsAtOnce: 1,
    tools: 0,
    skills: { 3: "review", 11: "release", 19: "review" },
    pauseEvery: 6,
  },
};

/** More than there are traces, so that no two traces have the same seed. */
const seedsOfVariant = 100;
/** The results' share of all tokens. */
const resultShare = 0.84;
/** Characters per token, in prose and in results. */
const proseChars = 5.13;
const resultChars = 4.18;

/** Creates a trace by its name, always the same. Each variant has the same shape and other texts. */
export function makeTrace(name: TraceName, variant = 0): Trace {
  const shape = shapes[name];
  const random = new Random(shape.seed + variant * seedsOfVariant);
  const tools = Array.from({ length: shape.tools }, (_, at) => makeTool(random, at));
  const calls = traceCalls(random, shape.calls, tools);
  const answers = Math.ceil(shape.calls / shape.callsAtOnce) + shape.prompts;
  const resultTokens = sum(calls.map(({ result }) => result.length)) / resultChars;
  const argTokens = sum(calls.map(({ args }) => JSON.stringify(args).length)) / resultChars;
  const otherTokens = (resultTokens * (1 - resultShare)) / resultShare - argTokens;
  const said = Math.max(40, ((otherTokens / (answers + shape.prompts)) * proseChars) | 0);
  return { name, tools, prompts: makePrompts(random, shape, calls, said) };
}

function makePrompts(random: Random, shape: Shape, calls: readonly TraceCall[], said: number): readonly TracePrompt[] {
  const text = (): string => prose(random, random.integer(said * 0.5, said * 1.5));
  const left = [...calls];
  return Array.from({ length: shape.prompts }, (_, at) => {
    const skill = shape.skills[at];
    const count = Math.round((shape.calls * (at + 1)) / shape.prompts) - Math.round((shape.calls * at) / shape.prompts);
    const own = left.splice(0, count);
    const turns = Array.from({ length: Math.ceil(count / shape.callsAtOnce) }, () => ({
      text: text(),
      calls: own.splice(0, shape.callsAtOnce),
      seconds: random.integer(4, 25),
    }));
    return {
      text: `${skill === undefined ? "" : `/skill:${skill} `}${text().replaceAll("\n", " ")}`,
      pauseSeconds: (at + 1) % shape.pauseEvery === 0 ? 900 : random.integer(20, 200),
      turns: [...turns, { text: text(), calls: [], seconds: random.integer(4, 25) }],
    };
  });
}

/** About 400 tokens, like typical tools of MCP servers. */
function makeTool(random: Random, at: number): TraceTool {
  return {
    name: `${identifier(random).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}_${at}`,
    description: prose(random, 900).replaceAll("\n", " "),
    parameters: {
      type: "object",
      properties: {
        query: { type: "string", description: prose(random, 300).replaceAll("\n", " ") },
        limit: { type: "integer", minimum: 1, maximum: 100, description: "How many." },
        since: { type: "string", description: prose(random, 300).replaceAll("\n", " ") },
        state: { type: "string", enum: ["open", "closed", "late"] },
      },
      required: ["query"],
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
