import { hostname } from "node:os";
import type { Logger } from "pino";
import type { Capability } from "../../protocol/capability.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { WebConsole } from "../rpc/handlers/web.ts";
import type { WebTokens } from "../rpc/web-tokens.ts";
import type { EdgeLoad } from "./edge-load.ts";
import type { WebListener, WebListenerOptions } from "./web/listener.ts";

export interface WebPageLimits extends Pick<WebListenerOptions["limits"], "maxExchangeBytes" | "maxWebCodes"> {
  /** How long a code is valid, and one that a person copies. */
  readonly webCodeMs: number;
  readonly webPrintedCodeMs: number;
  /** The files of the page together. */
  readonly maxWebFilesBytes: number;
}

export interface WebPageOptions {
  /** Read at the first opening. */
  readonly dispatcher: () => Dispatcher;
  readonly tokens: WebTokens;
  readonly load: EdgeLoad;
  /** Where the page's files are, with their list. */
  readonly files: string;
  readonly version: string;
  readonly instance: string;
  readonly stateDir: string;
  /** Whether single letters are commands in the page. */
  readonly letterKeys: boolean;
  readonly limits: WebPageLimits;
  readonly log: Logger;
}

/** The web console. Until it is first opened there is no listener, and nothing of it is loaded. */
export class WebPage implements WebConsole {
  readonly #options: WebPageOptions;
  #listener: WebListener | undefined;
  /** Opening and closing follow one another. */
  #last: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(options: WebPageOptions) {
    this.#options = options;
  }

  open(params: Params<"web/open">): Promise<Result<"web/open">> {
    return this.#next(() => this.#open(params));
  }

  close(): Promise<boolean> {
    return this.#next(() => this.#close());
  }

  /** The daemon ends. */
  async stop(daemonEnds: "stopped" | "restarting"): Promise<void> {
    this.#isStopped = true;
    await this.#next(() => this.#close(daemonEnds));
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #open({
    readOnly = false,
    payload = false,
    bash = false,
    port,
    print = false,
  }: Params<"web/open">): Promise<Result<"web/open">> {
    const { files, tokens, limits, log } = this.#options;
    if (readOnly && bash) {
      const findings = [{ path: "/bash", message: "must not be true if readOnly is" }];
      throw new WireError("invalid_params", "A page that only reads cannot run shell commands.", { findings });
    }
    if (this.#isStopped) throw new WireError("shutting_down", "The daemon is shutting down.");
    const open = this.#listener;
    if (open !== undefined && port !== undefined && port !== open.port) {
      throw new WireError(
        "conflict",
        `The web console listens on port ${open.port} already. Close it first: pi-rpcd web --close`,
        { port: open.port },
      );
    }
    const { readWebFiles } = await import("./web/files.ts");
    const read = await readWebFiles(files, limits.maxWebFilesBytes);
    const listener = open ?? (await this.#listen(port ?? 0));
    listener.serve(read);
    const capabilities: readonly Capability[] = [
      "observe",
      ...(readOnly ? [] : (["prompt"] as const)),
      ...(bash ? (["bash"] as const) : []),
      ...(payload ? (["payload"] as const) : []),
    ];
    const ttlMs = print ? limits.webPrintedCodeMs : limits.webCodeMs;
    const tokenName = tokens.nextName();
    const code = listener.addCode({ tokenName, capabilities }, ttlMs);
    if (open === undefined) log.info({ url: listener.url }, "the web console listens");
    return { url: listener.url, port: listener.port, code, tokenName, expiresAt: Date.now() + ttlMs };
  }

  async #listen(port: number): Promise<WebListener> {
    const { WebListener: Listener } = await import("./web/listener.ts");
    const { dispatcher, tokens, load, version, instance, stateDir, letterKeys, limits, log } = this.#options;
    const listener = await Listener.open(port, {
      ...{ dispatcher: dispatcher(), tokens, load, version, instance, letterKeys, limits, log },
      title: `${hostname()}:${stateDir}`,
      onIdle: () => {
        void this.#next(async () => {
          if (this.#listener === listener && listener.isIdle) await this.#close();
        }).catch((err: unknown) => log.error({ err }, "the web console could not be closed"));
      },
    });
    this.#listener = listener;
    return listener;
  }

  async #close(daemonEnds?: "stopped" | "restarting"): Promise<boolean> {
    const listener = this.#listener;
    if (listener === undefined) return false;
    this.#listener = undefined;
    await listener.stop(daemonEnds);
    this.#options.log.info({ url: listener.url }, "the web console is closed");
    return true;
  }
}
