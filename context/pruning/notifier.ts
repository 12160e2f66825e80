import type { HostPort } from "../../extension/engine-port.ts";
import type { PruningConfig } from "../../protocol/pruning/config.ts";
import type { PruningChanged } from "../../protocol/pruning/notices.ts";
import type { PruningServices } from "./pruning-services.ts";

const part = "pruning";
const maxNamed = 20;
/** UTF-16 units of a line of the log. */
const maxFacts = 8 * 1_024;

/** Reports changes by pruning to subscribers and the user at the configured level, and to the debug log. */
export class PruningNotifier {
  readonly #host: HostPort;
  readonly #pruning: () => PruningConfig;
  #isAnswering = false;

  constructor(host: HostPort, pruning: () => PruningConfig) {
    this.#host = host;
    this.#pruning = pruning;
  }

  readonly notify: HostPort["notify"] = (name, data) => {
    const { notification } = this.#pruning();
    if (name.startsWith("pruning/")) this.debug(part, { told: name, ...data });
    const isChange = name === "pruning/changed";
    if (isChange && notification === "off") return;
    this.#host.notify(name, data);
    if (notification === "off" || this.#isAnswering) return;
    const words = isChange ? changed(data as PruningChanged, notification) : other(name, data, notification);
    if (words !== undefined) this.#show(words, name === "pruning/degraded" ? "warning" : "info");
  };

  /** Logs a line if `pruning.debug` is on. */
  readonly debug: HostPort["debug"] = (of, facts) => {
    if (!this.#pruning().debug) return;
    const json = JSON.stringify(facts) ?? "";
    this.#host.debug(of, json.length <= maxFacts ? facts : { cut: json.slice(0, maxFacts / 2).toWellFormed() });
  };

  /** Runs `answer` without UI notifications, because the caller shows its own answer to the user. */
  answering<T>(answer: () => T): T {
    this.#isAnswering = true;
    try {
      return answer();
    } finally {
      this.#isAnswering = false;
    }
  }

  #show(words: string, level: "info" | "warning"): void {
    try {
      this.#host.context()?.ui.notify(words, level);
    } catch {
      // The session was replaced in the meantime.
    }
  }
}

const causes: Readonly<Record<PruningChanged["cause"], string>> = {
  compress: "compressed",
  decompress: "opened",
  recompress: "compressed again",
  strategies: "removed outputs",
  compaction: "left with a compaction",
  mode: "mode",
};

function changed({ cause, blocks, pruned, tokens, mode }: PruningChanged, level: "minimal" | "detailed"): string {
  if (cause === "mode")
    return `Context: compression is ${mode === "manual" ? "up to the user" : "up to the model"} now.`;
  const amount = `${Math.abs(tokens)} tokens ${tokens < 0 ? "more" : "less"}`;
  const what = level === "detailed" ? named([...blocks, ...pruned]) : blocks.length > 0 ? named(blocks) : "";
  return `Context: ${causes[cause]}${what}, about ${amount}.`;
}

function named(ids: readonly string[]): string {
  if (ids.length === 0) return "";
  const more = ids.length > maxNamed ? ` and ${ids.length - maxNamed} more` : "";
  return ` ${ids.slice(0, maxNamed).join(", ")}${more}`;
}

function other(name: string, data: object, level: "minimal" | "detailed"): string | undefined {
  if (name === "pruning/degraded" && "message" in data) return `Context: ${String(data.message)}`;
  if (name !== "pruning/nudged" || level !== "detailed" || !("kind" in data) || !("tokens" in data)) return undefined;
  return `Context: the model was reminded (${String(data.kind)}) at ${String(data.tokens)} tokens.`;
}

type Host = Pick<PruningServices, "pipeline" | "pruning" | "off" | "usage" | "blocks" | "mode" | "debug">;

/** Logs a line for each request if `pruning.debug` is on. */
export function addRequestLog(host: Host): void {
  host.pipeline.use(
    "context_with_system",
    "offer",
    (messages, ctx) => {
      if (!host.pruning().debug) return;
      const off = host.off(ctx);
      const { active } = host.blocks.on(ctx);
      host.debug("pruning", {
        request: messages.length,
        ...(off === undefined ? {} : { off }),
        mode: host.mode.of(ctx),
        blocks: active.length,
        usage: host.usage(ctx) ?? null,
      });
    },
    "pruning-log",
  );
}
