import { type AuditMemory, Auditor } from "../../../../../context/parts/cache/auditor.ts";
import { ChangeLog } from "../../../../../context/parts/cache/change-log.ts";
import type { Kept } from "../../../../../extension/memory.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";
import type { CacheBroken } from "../../../../../protocol/optimisation/notices.ts";
import { Branch } from "./branch.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Request {
  readonly messages?: readonly Fields[];
  readonly payload?: Fields;
  readonly sections?: Readonly<Record<string, string>>;
  readonly usage?: Fields;
  readonly model?: Fields;
}

/** A session whose requests pass the auditor. The service caches by itself. */
export class AuditedSession {
  readonly branch = new Branch();
  readonly changes = new ChangeLog();
  readonly audit: Kept<AuditMemory> = { value: undefined };
  readonly broken: CacheBroken[] = [];
  readonly varying: string[] = [];
  auditor = this.begin();
  noiseTokens = 1_024;

  begin(): Auditor {
    return new Auditor({
      audit: this.audit,
      changes: this.changes,
      noiseTokens: () => this.noiseTokens,
      broken: (broken) => this.broken.push(broken),
      varies: (section) => this.varying.push(section),
    });
  }

  payload({ messages = [{ role: "user", content: "Go." }], sections = { rules: "Be brief." } }: Request): Fields {
    const system = { role: "system", content: Object.values(sections).join("\n\n") };
    return { max_tokens: 100, messages: [system, ...messages] };
  }

  /** Returns the reported causes. */
  request(request: Request): string[] {
    const ctx = this.branch.context(request.model);
    const from = this.broken.length;
    const { sections = { rules: "Be brief." } } = request;
    this.auditor.listed([{ role: "system", content: "", sections, timestamp: 0 }] as AgentMessage[], ctx);
    this.auditor.sent(request.payload ?? this.payload(request), ctx);
    this.answer(request.usage ?? read(19_968), request.model);
    return this.broken.slice(from).map(({ cause }) => cause);
  }

  answer(usage: Fields, model?: Fields): void {
    const message = { role: "assistant", usage } as unknown as AgentMessage;
    this.auditor.answered(message, this.branch.context(model));
    this.branch.answer({ usage });
  }
}

/** A service's report about a prompt of 20,000 tokens. */
export function read(cacheRead: number, input = 20_000 - cacheRead, cacheWrite = 0): Fields {
  return { input, cacheRead, cacheWrite, output: 1 };
}
