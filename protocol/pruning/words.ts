import { type Mistake, type Place, schemaMistakes } from "../configuration/mistakes.ts";
import { PruningOptions, pruningWords } from "./options.ts";

const leastTokens = 1_000;
const mostTokens = 100_000_000;
const percent = /^(?:100|[0-9]{1,2})(?:\.[0-9]{1,3})?$/;

/** The mistakes of a value as a configuration of pruning, named by its keys. */
export function pruningMistakes(value: unknown, place: Place = ["pruning"]): Mistake[] {
  return schemaMistakes(PruningOptions, value, place, pruningWords).map((mistake) => {
    const inside = mistake.place.slice(place.length);
    return isLimit(inside) ? { place: mistake.place, why: limitMistake(valueAt(value, inside), inside) } : mistake;
  });
}

function isLimit(inside: Place): boolean {
  const [first, , third] = inside;
  if (inside.length === 1) return first === "maxContext" || first === "minContext";
  if (inside.length === 2) return first === "blocks" && inside[1] === "maxTokens";
  return inside.length === 3 && first === "models" && (third === "maxContext" || third === "minContext");
}

function limitMistake(value: unknown, [key]: Place): string {
  const auto = key === "blocks" ? "" : '"auto", ';
  if (typeof value !== "number" || !Number.isFinite(value)) {
    const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 64).toWellFormed()) : kindOf(value);
    return `${shown} is not a limit; write ${auto}0.8, "80%" or at least ${leastTokens} tokens`;
  }
  if (value < 0) return `${value} is below 0`;
  if (value > mostTokens) return `${value} is above ${mostTokens}`;
  if (value >= leastTokens) return `${value} is not a whole number of tokens`;
  const said = String(value);
  const meant = value <= 100 && percent.test(said) ? `${shareOf(value)}, "${said}%"` : '0.8, "80%"';
  return `${said} is ambiguous; write ${meant} or at least ${leastTokens} tokens`;
}

/** Rounds away the error of binary fractions. */
function shareOf(value: number): number {
  return Number((value / 100).toFixed(5));
}

function kindOf(value: unknown): string {
  if (value === null || typeof value === "boolean") return String(value);
  return Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : String(value);
}

function valueAt(value: unknown, place: Place): unknown {
  let found = value;
  for (const key of place) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key];
  }
  return found;
}
