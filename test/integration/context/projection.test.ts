import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { ContextTarget } from "../../../protocol/context/document.ts";
import { exportContext } from "../../../protocol/context/export.ts";
import { finishContext } from "../../../protocol/context/finish.ts";
import { sessionEntries } from "../../../protocol/context/session-entries.ts";
import { sessionModel } from "../../helpers/pi-session.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { randomSession } from "../../helpers/random-session.ts";
import { Random } from "../../soak/random.ts";

// pi's own reading of session files, against which the export's is held: the same code that runs in every pi.

interface Message {
  readonly role: string;
  readonly [field: string]: unknown;
}
interface SessionReader {
  buildSessionContext(entries: readonly unknown[]): { readonly messages: readonly Message[] };
}
interface Converter {
  convertToLlm(messages: readonly Message[]): readonly Message[];
}
interface Transformer {
  transformMessages(messages: readonly Message[], model: unknown): readonly Message[];
}

const { api, provider, model: id } = sessionModel;
const target: ContextTarget = { api, provider, id, takesImages: true };
const core = join(piUnderTest().cli, "..", "..", "core");
const { buildSessionContext } = await load<SessionReader>(join(core, "session-manager.js"));
const { convertToLlm } = await load<Converter>(join(core, "messages.js"));
// Both versions have the same rules for what goes to a model, in the package that only one of them comes with.
const wire = join(import.meta.dirname, "..", "..", "..", "node_modules/@earendil-works/pi-ai/dist/api");
const { transformMessages } = await load<Transformer>(join(wire, "transform-messages.js"));

test("what is exported and imported again is for pi's own reader what the session was", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = new Random(seed);
    const session = randomSession(random, random.integer(1, 40));
    const { items = [] } = exportContext(session.entries, { includeReasoning: true }).document;
    if (items.length === 0) continue;
    const repaired = { items, nodes: items.length, repairs: { listed: [], counts: {} } };
    const prepared = finishContext(repaired, { budget: null }, target);
    const imported = [...sessionEntries(prepared, { id: "s-2", timestamp: 1_800_000_000_000, cwd: "/" })];

    expect(seen(imported), `seed ${seed}`).toEqual(seen(session.entries));
  }
});

/**
 * What goes to the model, without what no service is told, and without what none would take: results without a call, which
 * are left when an edit or a failure has taken the call. Another model's reasoning is left out of documents.
 */
function seen(entries: readonly unknown[]): readonly unknown[] {
  const written = entries.filter((entry) => (entry as { type: string }).type !== "session");
  const { messages } = buildSessionContext(written);
  const isCarrier = ({ customType }: Message): boolean => customType === "pi-rpcd.carrier";
  const shown = convertToLlm(messages.filter((message) => !isCarrier(message))).map(withoutForeignReasoning);
  const sent = transformMessages(shown, { ...target, input: ["text", "image"] }).filter(
    ({ role }) => role !== "system",
  );
  return withoutOrphans(sent).map(({ role, content, toolCallId, toolName, isError }) => ({
    role,
    content,
    toolCallId,
    toolName,
    isError,
  }));
}

function withoutForeignReasoning(message: Message): Message {
  if (message.role !== "assistant" || message["model"] === id) return message;
  const content = (message["content"] as { type: string }[]).filter(({ type }) => type !== "thinking");
  return { ...message, content };
}

function withoutOrphans(messages: readonly Message[]): readonly Message[] {
  let open = new Set<unknown>();
  return messages.filter(({ role, content, toolCallId }) => {
    if (role === "toolResult") return open.delete(toolCallId);
    if (role === "assistant") open = new Set((content as { id?: string }[]).map(({ id: callId }) => callId));
    return true;
  });
}

async function load<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(path).href)) as Module;
}
