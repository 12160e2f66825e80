import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { CONTEXT_ROOT_TYPE } from "../protocol/link.ts";
import type { HelperContext } from "../protocol/link-context.ts";
import type { HostPort, Part } from "./engine-port.ts";

/** Subject under which the part takes a context of the daemon. */
export const CONTEXT_SUBJECT = "context";
/** Name of the kept context. */
export const KEPT_CONTEXT = "context";

export type LoadPart = () => Promise<Part>;

/**
 * Loads the part that puts a context before a session's conversation once the session has one, so that other sessions do
 * not pay for its modules. Requests wait while it loads.
 */
export class SessionContextLoader {
  readonly #host: HostPort;
  readonly #load: LoadPart;
  #loading: Promise<void> | undefined;
  #isLoaded = false;

  constructor(host: HostPort, load: LoadPart) {
    this.#host = host;
    this.#load = load;
    host.pipeline.wait(() => (this.#isLoaded ? undefined : this.#loading));
  }

  /** Loads the part if this process keeps or expects a context. `undefined`: nothing to wait for. */
  processStarted(): Promise<void> | undefined {
    const { contextDueBy, kept } = this.#host.memory;
    return contextDueBy !== undefined || kept.has(KEPT_CONTEXT) ? this.#loaded() : undefined;
  }

  /** Loads the part if the session's file was written from a context. `undefined`: nothing to wait for. */
  sessionStarted({ sessionManager }: ExtensionContext): Promise<void> | undefined {
    const root = sessionManager.getEntries()[0];
    return root?.type === "custom" && root.customType === CONTEXT_ROOT_TYPE ? this.#loaded() : undefined;
  }

  /** Gives the part a context of the daemon, and returns its reply. Rejects if the part cannot be loaded. */
  async take(context: HelperContext, ask: (about: string, params: unknown) => unknown): Promise<unknown> {
    await this.#loadOnce();
    return ask(CONTEXT_SUBJECT, context);
  }

  #loaded(): Promise<void> | undefined {
    if (this.#isLoaded) return undefined;
    return this.#loadOnce().catch((thrown: unknown) => this.#host.fault("context", thrown));
  }

  #loadOnce(): Promise<void> {
    this.#loading ??= this.#load().then((part) => {
      part(this.#host);
      this.#isLoaded = true;
    });
    return this.#loading;
  }
}
