import { echo } from "../../provider/echo.ts";
import type { LogEntry } from "../../provider/log.ts";
import { type Responder, Script, type Step } from "../../provider/script.ts";
import type { ScriptedProvider } from "../../provider/server.ts";

export interface ScriptOptions {
  /** Replies for the next requests, one each. Default: none. */
  readonly script?: readonly Step[];
  /** Replies to the requests that no step takes. Default: {@link echo}. */
  readonly otherwise?: Responder;
}

/** A provider that tests share, as one of them sees it. */
export interface TestsProvider extends Pick<ScriptedProvider, "add" | "remainingSteps" | "waitForRequest"> {
  /** Those since the test began. */
  readonly requests: readonly LogEntry[];
}

/** The scripts of tests that share a provider, one after the other: each has its own, and sees its own requests. */
export class Scripts {
  #script = new Script([], echo());

  /** What the provider is to be started with, as `otherwise`. */
  readonly respond: Responder = (request) => this.#script.replyTo(request);

  /** The next test's turn. */
  begin(provider: ScriptedProvider, { script = [], otherwise = echo() }: ScriptOptions): TestsProvider {
    const steps = new Script(script, otherwise);
    this.#script = steps;
    const begin = provider.requests.at(-1)?.n ?? 0;
    return {
      get requests() {
        return provider.requests.filter(({ n }) => n > begin);
      },
      get remainingSteps() {
        return steps.remaining;
      },
      add: (...added) => steps.add(added),
      waitForRequest: (matches = () => true, options = {}) =>
        provider.waitForRequest((request) => request.n > begin && matches(request), options),
    };
  }

  /** Drops what the test has left of its script, and rejects who waits at its gates. */
  end(): void {
    this.#script.abandon(new Error("The test is over"));
    this.#script = new Script([], echo());
  }
}
