import type { AgentToolResult, ExtensionContext, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { TSchema } from "typebox";
import { isRecord } from "../../../protocol/objects.ts";
import { RECALL_TOOL } from "../../../protocol/optimisation/config.ts";
import type { Recalled } from "./content.ts";
import { pageOf } from "./pages.ts";
import { numberOf, recallIdOf } from "./record.ts";

/** `undefined`: the id is unknown here. */
export type Recaller = (id: string, ctx: ExtensionContext) => Promise<Recalled | undefined>;

const defaultLimit = 2_000;
const maxBytes = 50 * 1_024;
const maxShownId = 64;

const parameters = {
  type: "object",
  properties: {
    id: { type: "string", description: "As the placeholder names it, for example r012." },
    offset: { type: "integer", minimum: 1, description: "First line, from 1. Default 1." },
    limit: { type: "integer", minimum: 1, description: "Lines. Default 2000; at most 50 KiB a call." },
  },
  required: ["id"],
} as unknown as TSchema;

/** The tool with which the model recalls removed content. */
export function recallTool(recaller: Recaller): ToolDefinition {
  return {
    name: RECALL_TOOL,
    label: RECALL_TOOL,
    description:
      "Returns the original of an output that was masked, pruned or cut in this conversation. The placeholder or mark in its place names its id.",
    parameters,
    execute: async (_callId, params, _signal, _onUpdate, ctx) => await answer(params, recaller, ctx),
  };
}

async function answer(params: unknown, recaller: Recaller, ctx: ExtensionContext): Promise<AgentToolResult<undefined>> {
  const given: Readonly<Record<string, unknown>> = isRecord(params) ? params : {};
  const asked = typeof given["id"] === "string" ? given["id"].trim().slice(0, maxShownId).toWellFormed() : "";
  const number = numberOf(asked);
  const id = number === undefined ? asked : recallIdOf(number);
  const found = await recaller(id, ctx);
  if (found === undefined) throw new Error(`${id === "" ? "An empty id" : id} is not available here.`);
  const offset = wholeNumber(given["offset"], 1);
  const page = pageOf(found.text, offset, wholeNumber(given["limit"], defaultLimit), maxBytes);
  if (page === undefined) throw new Error(`${id} has no line ${offset}: it has ${pageOf(found.text, 1, 1, 1)?.total}.`);
  const { first, last, total } = page;
  const isAll = first === 1 && last === total;
  const more = last < total ? `; offset ${last + 1} gives more` : "";
  return {
    content: [
      ...(page.text === "" ? [] : [{ type: "text" as const, text: page.text }]),
      ...(first === 1 ? found.images : []),
      ...(isAll ? [] : [{ type: "text" as const, text: `[${id}: lines ${first}–${last} of ${total}${more}]` }]),
      ...(page.text === "" && found.images.length === 0 ? [{ type: "text" as const, text: `[${id} is empty]` }] : []),
    ],
    details: undefined,
  };
}

function wholeNumber(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 1 ? Math.floor(value) : otherwise;
}
