import type { Figure, Row, Table } from "../lib/figure.ts";
import { chosenPi } from "../lib/real-pi.ts";
import { lean, leanParts, type SessionSettings } from "../lib/traces/parts.ts";
import { caseId, fixed, runCases, type ServiceName, serviceNames, type TraceCase } from "../lib/traces/services.ts";
import type { Bill } from "../lib/traces/spending.ts";
import { traceNames } from "../lib/traces/trace.ts";

const parts: Readonly<Record<string, SessionSettings>> = {
  ...leanParts,
  dynamicTools: { optimisation: { dynamicTools: { enabled: true } } },
  lean,
};

/** A part whose costs exceed those without it by this factor is reported. */
const costIncreaseFactor = 1.005;

/** The savings of each part of the optimisation on each trace: tokens sent, and their cost. Nothing is timed. */
export const optimisation: Figure = {
  title: "Each part of the optimisation on each trace, off and on: tokens sent, and USD",
  goals: [],
  repetitions: 1,
  isCounted: true,
  deadlineSeconds: 600,
  measure: async (setting, resources) => {
    const outcomeOf = await runCases(allCases(), setting, resources);
    const rows: Row[] = [];
    const tables: Table[] = [];
    const notes = [
      `pi ${chosenPi().version}; a mock service with a real prefix cache of 300 s, read at 0.1 and written at 1.25 of the input price`,
      "OpenAI: cache writes are free",
      "lean: the profile, with all its parts together",
      "sent: read, written or neither, including summaries; breaks: requests that read at least 1,024 tokens less than were cached",
      "a smaller prompt delays pi's compaction, so the context stays longer: this can increase the cost of dialogue",
      "dynamicTools: each tool costs a request that finds it and one that describes it before its first call",
      "decisions of a model (recalls, requests for details) are not included",
    ];
    for (const service of serviceNames) {
      for (const trace of traceNames) {
        const of = (part: string): Bill => outcomeOf(caseId(service, trace, part)).bill;
        const off = of("off");
        const on = partsAt(service).map((part) => ({ part, bill: of(part) }));
        tables.push(tableOf(`${trace}, ${service}`, off, on));
        for (const { part, bill } of on) {
          const name = `${trace}, ${service}, ${part}`;
          if (part === "lean") {
            rows.push({
              name: `${name}: tokens sent, on / off`,
              unit: "x",
              values: [bill.tokensSent / off.tokensSent],
            });
            rows.push({ name: `${name}: USD, on / off`, unit: "x", values: [bill.usd / off.usd] });
          }
          if (bill.usd > off.usd * costIncreaseFactor) {
            notes.unshift(
              `MORE EXPENSIVE: ${name} costs ${(bill.usd / off.usd).toFixed(3)} x as much as without the part`,
            );
          }
        }
      }
    }
    return { rows, tables, notes };
  },
};

function allCases(): readonly TraceCase[] {
  return serviceNames.flatMap((service) =>
    traceNames.flatMap((trace) =>
      ["off", ...partsAt(service)].map((part) => ({
        ...{ id: caseId(service, trace, part), service, trace, ...parts[part] },
      })),
    ),
  );
}

/** At the second service, only all parts together. */
function partsAt(service: ServiceName): readonly string[] {
  return service === "Anthropic" ? Object.keys(parts) : ["lean"];
}

function tableOf(title: string, off: Bill, on: readonly { readonly part: string; readonly bill: Bill }[]): Table {
  const columns = ["part", "requests", "sent off", "sent on", "x", "USD off", "USD on", "x"];
  const more = ["hit rate", "write USD", "breaks", "missed", "summaries"];
  const row = (part: string, bill: Bill): readonly (string | number)[] => [
    ...[part, bill.requests, off.tokensSent, bill.tokensSent, fixed(bill.tokensSent / off.tokensSent, 3)],
    ...[fixed(off.usd, 3), fixed(bill.usd, 3), fixed(bill.usd / off.usd, 3)],
    ...[fixed(bill.hitRate, 3), fixed(bill.writeUsd, 3), bill.breaks, bill.missedTokens, bill.summaries],
  ];
  return {
    title,
    columns: [...columns, ...more],
    rows: [row("off", off), ...on.map(({ part, bill }) => row(part, bill))],
  };
}
