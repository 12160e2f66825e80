import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { filled, table } from "./generated-parts.ts";

// The tables of PROTOCOL.md that derive from the code. Each is between two markers. The reference has everything else.

/** PROTOCOL.md with its tables as the code says it. Throws if a table's markers are missing. */
export function withGeneratedParts(document: string): string {
  return filled(document, { deliveryStates: deliveryStateTable, errors: errorTable });
}

function deliveryStateTable(): string {
  return table(
    ["state", "means", "next"],
    Object.entries(deliveryStates).map(([state, { means, next, note }]) => [
      `\`${state}\``,
      means,
      next.length === 0 ? "the end" : [next.map((name) => `\`${name}\``).join(", "), note].filter(Boolean).join("; "),
    ]),
  );
}

function errorTable(): string {
  return table(
    ["name", "code", "HTTP", "retry", "meaning"],
    Object.entries(errorCatalogue).map(([name, { code, httpStatus, retryable, meaning }]) => [
      `\`${name}\``,
      String(code),
      String(httpStatus),
      retryable ? "yes" : "no",
      meaning,
    ]),
  );
}
