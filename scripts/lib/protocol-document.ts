import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { notifications } from "../../protocol/notifications.ts";
import { filled, table } from "./generated-parts.ts";

// The tables of PROTOCOL.md that are generated from the code. Each is between two markers. The reference has
// everything else.

/** PROTOCOL.md with its generated tables. Throws if the markers of a table are missing. */
export function withGeneratedParts(document: string): string {
  return filled(document, { deliveryStates: deliveryStateTable, errors: errorTable, numberedNotifications });
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

/** The errors of each HTTP status. Their meanings are in the reference. */
function errorTable(): string {
  const groups = new Map<string, string[]>();
  for (const [name, { code, httpStatus, retryable }] of Object.entries(errorCatalogue)) {
    const key = `${httpStatus} ${retryable ? "yes" : "no"}`;
    groups.set(key, [...(groups.get(key) ?? []), `\`${name}\` ${code}`]);
  }
  const rows = [...groups].sort(([a], [b]) => a.localeCompare(b));
  const cells = rows.map(([key, errors]) => [...key.split(" "), errors.join(", ")]);
  return table(["HTTP", "retry", "errors, with their codes"], cells);
}

/** The notifications that share the `seq` of their session. */
function numberedNotifications(): string {
  const numbered = Object.entries(notifications).filter(([name, { params }]) => {
    const { properties } = params as { readonly properties: object };
    // Events of the feed have the feed's own numbers.
    return "seq" in properties && name !== "daemon/event";
  });
  return numbered.map(([name]) => `\`${name}\``).join(" · ");
}
