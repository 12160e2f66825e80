/** What requests took, in pi's own shape: tokens, and USD by what they were paid for. Loaded in pi: no schemas here. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Of the four before, as pi's `get_session_stats` has it, whatever the provider calls its total. */
  readonly totalTokens: number;
  readonly cost: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
    readonly total: number;
  };
}

export const noUsage: Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** Numbers beyond it are nobody's usage, and sums of them would be no numbers any more. */
const maxNumber = 1e15;

/**
 * A usage as an entry of a session file has it, which may hold anything. `undefined` where there is none: pi counts nothing
 * then. What of it is no number counts as 0; a negative one counts, as it does in pi.
 */
export function readUsage(value: unknown): Usage | undefined {
  if (!isFields(value)) return undefined;
  const cost = isFields(value["cost"]) ? value["cost"] : {};
  const tokens = fourOf(value);
  return {
    ...tokens,
    totalTokens: totalOf(tokens),
    cost: { ...fourOf(cost), total: numberOf(cost["total"]) },
  };
}

/** Whether a price was missing: tokens that cost nothing, where the provider has not said that they do. */
export function isUnpriced(value: unknown, usage: Usage): boolean {
  if (usage.totalTokens === 0 || usage.cost.total !== 0) return false;
  const cost = isFields(value) ? value["cost"] : undefined;
  return !(isFields(cost) && cost["totalFromProvider"] === true);
}

export function addUsage(a: Usage, b: Usage): Usage {
  return combine(a, b, 1);
}

/** What is left of `a` without `b`, which is part of it. */
export function withoutUsage(a: Usage, b: Usage): Usage {
  return combine(a, b, -1);
}

/** Whether no token and no USD is in it. */
export function isNoUsage({ input, output, cacheRead, cacheWrite, cost }: Usage): boolean {
  return input === 0 && output === 0 && cacheRead === 0 && cacheWrite === 0 && cost.total === 0;
}

function combine(a: Usage, b: Usage, sign: 1 | -1): Usage {
  const tokens = {
    input: a.input + sign * b.input,
    output: a.output + sign * b.output,
    cacheRead: a.cacheRead + sign * b.cacheRead,
    cacheWrite: a.cacheWrite + sign * b.cacheWrite,
  };
  return {
    ...tokens,
    totalTokens: totalOf(tokens),
    cost: {
      input: a.cost.input + sign * b.cost.input,
      output: a.cost.output + sign * b.cost.output,
      cacheRead: a.cost.cacheRead + sign * b.cost.cacheRead,
      cacheWrite: a.cost.cacheWrite + sign * b.cost.cacheWrite,
      total: a.cost.total + sign * b.cost.total,
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

interface Four {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

function fourOf(fields: Fields): Four {
  return {
    input: numberOf(fields["input"]),
    output: numberOf(fields["output"]),
    cacheRead: numberOf(fields["cacheRead"]),
    cacheWrite: numberOf(fields["cacheWrite"]),
  };
}

function totalOf({ input, output, cacheRead, cacheWrite }: Four): number {
  return input + output + cacheRead + cacheWrite;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Math.abs(value) <= maxNumber ? value : 0;
}

/** Whether a value is an object whose fields can be read. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
