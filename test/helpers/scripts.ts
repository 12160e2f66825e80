import { echo } from "../../provider/echo.ts";
import type { LogEntry } from "../../provider/log.ts";
import { type Responder, Script, type Step } from "../../provider/script.ts";
import type { ScriptedProvider } from "../../provider/server.ts";

export interface ScriptOptions {
  /** Replies for the next requests, one each. Default: none. */
  readonly script?: readonly Step[];
  /** Replies to requests without a step. Default: {@link echo}. */
  readonly otherwise?: Responder;
}

/** A provider shared by tests, as one of them sees it. */
export interface TestsProvider extends Pick<ScriptedProvider, "add" | "remainingSteps" | "waitForRequest"> {
  /** Requests since the test began. */
  readonly requests: readonly LogEntry[];
}

/** The scripts of tests that share a provider in sequence: each has its own, and sees its own requests. */
export class Scripts {
  #script = new Script([], echo());

  /** The `otherwise` with which the provider must be started. */
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

  /** Drops the rest of the test's script, and rejects waits at its gates. */
  end(): void {
    this.#script.abandon(new Error("The test is over"));
    this.#script = new Script([], echo());
  }
}
