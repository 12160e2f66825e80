import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { idsOfTags } from "../../extension/message-tag.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";
import { asksForOneToken, viewOf } from "../parts/cache/payload.ts";
import { type Flaw, flawsIn, flawsInPayload } from "./flaws.ts";
import type { PruningServices } from "./pruning-services.ts";

type Host = Pick<PruningServices, "pipeline" | "entries" | "off" | "notify" | "fault">;

const part = "legal";
const maxDepth = 6;

/** The current request. */
interface Attempt {
  /** No extension has changed pi's list before our stages. */
  readonly isWhole: boolean;
  /** The messages before our changes. */
  base: readonly AgentMessage[] | undefined;
  /** Whether services would accept our output. */
  isSound: boolean;
  /** The ids in its message tags. */
  tags: ReadonlySet<string>;
}

/**
 * Validates each request before it is sent. If pruning made a message list that services would refuse, the request is
 * sent unpruned. Flaws made by other extensions are reported and left in place.
 */
export class Legality {
  readonly #host: Host;
  readonly #told = new Set<string>();
  #attempt: Attempt | undefined;
  #isAmbiguous = false;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Register before all parts of pruning that change messages. */
  begin(): void {
    const { pipeline, entries, off } = this.#host;
    pipeline.use("context", "map", (_event, ctx) => this.#tellAmbiguous(ctx), part);
    pipeline.use(
      "context_with_system",
      "head",
      (messages, ctx) => {
        const isWhole = off(ctx) !== undefined || entries.isWhole(messages);
        this.#attempt =
          off(ctx) === undefined ? { isWhole, base: undefined, isSound: true, tags: new Set() } : undefined;
      },
      part,
    );
    pipeline.use(
      "context_with_system",
      "blocks",
      (messages) => {
        if (this.#attempt !== undefined) this.#attempt.base = messages;
      },
      part,
    );
  }

  /** Register after all of them. */
  verify(): void {
    const { pipeline } = this.#host;
    pipeline.use("context_with_system", "bash", (messages) => this.#undo(messages), part);
    pipeline.use("context_with_system", "legal", (messages) => this.#look(messages), part);
    pipeline.use("context_with_system", "audit", (messages) => this.#expect(messages), part);
    pipeline.use("before_provider_request", "audit", (payload) => this.#audit(payload), part);
    pipeline.use("message_end", "strip", (message) => this.#end(message), part);
  }

  /** Notifies once per series of unpruned requests. */
  #tellAmbiguous(ctx: ExtensionContext): void {
    const { entries, off, notify } = this.#host;
    const wasAmbiguous = this.#isAmbiguous;
    this.#isAmbiguous = off(ctx) === undefined && entries.isAmbiguous();
    if (!this.#isAmbiguous || wasAmbiguous) return;
    const message = "The messages of a request cannot be told from each other: it goes out unpruned.";
    notify("pruning/degraded", { reason: "mapping", message });
  }

  #undo(messages: readonly AgentMessage[]): readonly AgentMessage[] | undefined {
    const base = this.#attempt?.base;
    if (base === undefined || base === messages) return undefined;
    const flaws = flawsIn(messages);
    if (flaws.size === 0) return undefined;
    const before = flawsIn(base);
    const made = [...flaws].find((flaw) => !before.has(flaw));
    if (made === undefined) return undefined;
    this.#host.fault(`context_with_system/${part}`, new Error(`Pruning was undone: the request had ${made}.`), part);
    return base;
  }

  #look(messages: readonly AgentMessage[]): void {
    if (this.#attempt === undefined) return;
    const flaws = flawsIn(messages);
    this.#attempt.isSound = flaws.size === 0;
    if (!this.#attempt.isWhole) this.#tellFlaws(flaws);
  }

  /** Remembers the tags, so that the payload shows what a later extension removed. */
  #expect(messages: readonly AgentMessage[]): void {
    if (this.#attempt === undefined) return;
    this.#attempt.tags = new Set(messages.flatMap(tagsOf));
    this.#attempt.base = undefined;
  }

  #audit(payload: unknown): void {
    const attempt = this.#attempt;
    const view = attempt === undefined || asksForOneToken(payload) ? undefined : viewOf(payload);
    if (attempt === undefined || view === undefined) return;
    if (attempt.isSound) this.#tellFlaws(flawsInPayload(view.messages));
    const missing = missingTags(attempt.tags, view.messages);
    if (missing.length === 0) return;
    this.#tell("Another extension has changed or left out messages that pruning has given to pi.");
  }

  #end({ role }: AgentMessage): void {
    if (role === "assistant") this.#attempt = undefined;
  }

  #tellFlaws(flaws: ReadonlySet<Flaw>): void {
    for (const flaw of flaws)
      this.#tell(`Another extension has changed the messages of a request so that it has ${flaw}.`);
  }

  /** Notifies once for each message. */
  #tell(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#host.notify("pruning/degraded", { reason: "foreign_edit", message });
  }
}

/** Tags of messages that pi always sends; it omits failed answers. */
function tagsOf(message: AgentMessage): string[] {
  if (message.role !== "user" && message.role !== "custom" && message.role !== "toolResult") return [];
  const last = typeof message.content === "string" ? undefined : message.content.at(-1);
  return last?.type === "text" ? idsOfTags(last.text, false) : [];
}

function missingTags(tags: ReadonlySet<string>, messages: readonly unknown[]): string[] {
  const missing = new Set(tags);
  // Most texts end with their tag. If an adapter appended text, scan the whole text.
  for (const isWhole of [false, true]) {
    if (missing.size > 0) for (const message of messages) remove(message, missing, isWhole, 0);
  }
  return [...missing];
}

/** Keys of texts and of their containers in the formats of pi's adapters. */
const holders = ["content", "text", "parts", "output", "error", "functionResponse", "response", "toolResult"] as const;

function remove(value: unknown, missing: Set<string>, isWhole: boolean, depth: number): void {
  if (typeof value === "string") for (const id of idsOfTags(value, isWhole)) missing.delete(id);
  else if (depth >= maxDepth) return;
  else if (Array.isArray(value)) for (const inner of value) remove(inner, missing, isWhole, depth + 1);
  else if (isRecord(value)) for (const name of holders) remove(value[name], missing, isWhole, depth + 1);
}
