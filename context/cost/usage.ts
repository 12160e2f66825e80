import { isRecord } from "../../protocol/objects.ts";
/** Usage of requests in pi's own shape: tokens, and USD by kind. Loaded in pi, so without schemas. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Sum of the four above, as in pi's `get_session_stats`, regardless of the provider's total. */
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

/** Larger numbers cannot be real usage, and their sums would overflow. */
const maxNumber = 1e15;

/**
 * Reads an untrusted usage of a session entry. `undefined` if there is none, which pi does not count. Invalid numbers
 * count as 0; negative ones count, as in pi.
 */
export function readUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const cost = isRecord(value["cost"]) ? value["cost"] : {};
  const tokens = tokenFieldsOf(value);
  return {
    ...tokens,
    totalTokens: totalOf(tokens),
    cost: { ...tokenFieldsOf(cost), total: numberOf(cost["total"]) },
  };
}

/** Whether a price is missing: tokens without cost that the provider did not report as free. */
export function isUnpriced(value: unknown, usage: Usage): boolean {
  if (usage.totalTokens === 0 || usage.cost.total !== 0) return false;
  const cost = isRecord(value) ? value["cost"] : undefined;
  return !(isRecord(cost) && cost["totalFromProvider"] === true);
}

export function addUsage(a: Usage, b: Usage): Usage {
  return combine(a, b, 1);
}

/** Subtracts `b`, which is part of `a`. */
export function withoutUsage(a: Usage, b: Usage): Usage {
  return combine(a, b, -1);
}

/** Whether it has neither tokens nor USD. */
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

interface TokenFields {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

function tokenFieldsOf(fields: Fields): TokenFields {
  return {
    input: numberOf(fields["input"]),
    output: numberOf(fields["output"]),
    cacheRead: numberOf(fields["cacheRead"]),
    cacheWrite: numberOf(fields["cacheWrite"]),
  };
}

function totalOf({ input, output, cacheRead, cacheWrite }: TokenFields): number {
  return input + output + cacheRead + cacheWrite;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Math.abs(value) <= maxNumber ? value : 0;
}
