import type { LogEntry } from "../../provider/log.ts";
import { answer, type Reply } from "../../provider/reply.ts";
import type { ScriptedProvider } from "../../provider/server.ts";
import type { RequestFact } from "./history.ts";

/** The beginning of a push's text. */
const marker = /^\[\[([0-9A-Za-z._:-]+)\]\]/;

/** A planned answer to one request of a session. */
export class Planned {
  /** Resolves with the request that took it; never when it is withdrawn. */
  readonly taken: Promise<LogEntry>;
  readonly reply: Reply;
  readonly #take: (entry: LogEntry) => void;
  #isTaken = false;

  constructor(reply: Reply) {
    this.reply = reply;
    const { promise, resolve } = Promise.withResolvers<LogEntry>();
    this.taken = promise;
    this.#take = resolve;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  take(entry: LogEntry): Reply {
    this.#isTaken = true;
    this.#take(entry);
    return this.reply;
  }
}

type Recorded = { -readonly [K in keyof RequestFact]: RequestFact[K] };

/** Answers the model requests of all sessions, each by its own plan, and keeps the checker's facts about each. */
export class ProviderPlan {
  readonly #textOf: (deliveryId: string) => string | undefined;
  readonly #plans = new Map<string, Planned[]>();
  readonly #sessions = new Map<string, string>();
  readonly #facts: Recorded[] = [];
  #noted = 0;
  #provider: ScriptedProvider | undefined;

  /** `textOf`: the exact text of a push. */
  constructor(textOf: (deliveryId: string) => string | undefined) {
    this.#textOf = textOf;
  }

  attach(provider: ScriptedProvider): void {
    this.#provider = provider;
  }

  /** Assigns a model to a session, from now on. */
  assign(model: string, session: string): void {
    this.#sessions.set(model, session);
    this.#plans.set(model, []);
  }

  /** The next request for this model that is not for a summary gets this reply. */
  add(model: string, reply: Reply): Planned {
    const planned = new Planned(reply);
    this.#plans.get(model)?.push(planned);
    return planned;
  }

  /** Drops the replies that no request has taken, or only this one. */
  withdraw(model: string, one?: Planned): void {
    const kept = one === undefined ? [] : (this.#plans.get(model) ?? []).filter((planned) => planned !== one);
    this.#plans.set(model, kept);
  }

  respond(entry: LogEntry): Reply {
    this.note();
    const plan = this.#plans.get(entry.model ?? "");
    if (plan === undefined || isSummary(entry)) return answer("Summary: much was said.");
    return plan.shift()?.take(entry) ?? answer("Done", ".");
  }

  /** Records the requests since the last time. */
  note(): void {
    const provider = this.#provider;
    if (provider === undefined) return;
    const { requests, droppedRequests } = provider;
    for (const entry of requests.slice(Math.max(0, this.#noted - droppedRequests))) this.#noteOne(entry);
    this.#noted = droppedRequests + requests.length;
  }

  /** All requests of these sessions. */
  facts(): readonly RequestFact[] {
    this.note();
    return [...this.#facts];
  }

  clear(): void {
    this.note();
    this.#facts.length = 0;
  }

  #noteOne(entry: LogEntry): void {
    const carried: Record<string, number> = {};
    const altered: string[] = [];
    for (const { role, texts } of entry.messages) {
      for (const text of role === "user" ? texts : []) {
        const id = marker.exec(text)?.[1];
        if (id === undefined) continue;
        if (text === this.#textOf(id)) carried[id] = (carried[id] ?? 0) + 1;
        else altered.push(id);
      }
    }
    const fact: Recorded = {
      n: entry.n,
      session: this.#sessions.get(entry.model ?? "") ?? "none",
      receivedAt: entry.receivedAt,
      carried,
      altered,
      // A connection that breaks while the provider writes is recorded there too.
      violations: entry.violations.filter((violation) => !violation.startsWith("The provider failed")),
      status: undefined,
      headersSentAt: undefined,
      endedAt: undefined,
      outcome: undefined,
    };
    this.#facts.push(fact);
    void entry.headersSent.then(() => {
      fact.status = entry.status;
      fact.headersSentAt = entry.headersSentAt;
    });
    void entry.ended.then((outcome) => {
      fact.status = entry.status;
      fact.headersSentAt = entry.headersSentAt;
      fact.endedAt = entry.endedAt;
      fact.outcome = outcome;
    });
  }
}

/** Whether pi asks for a summary, to compact a transcript. */
function isSummary({ messages }: LogEntry): boolean {
  const [first] = messages;
  return first?.role === "system" && first.texts.some((text) => /summariz/i.test(text));
}
