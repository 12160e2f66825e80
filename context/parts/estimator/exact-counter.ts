import { Worker } from "node:worker_threads";
import { messageOf } from "../../../extension/pi-types.ts";

/** How long a count may take, the loading of the vocabulary included. */
const withinMs = 5_000;
const maxHeapMiB = 256;

export interface ExactCounterOptions {
  /** The module that counts in a thread. */
  readonly entry?: URL;
  /** It does not count, and is not asked again. */
  readonly failed: (why: string) => void;
}

/** Counts texts with a vocabulary, in a thread that begins with the first of them. Where it cannot, it counts nothing. */
export class ExactCounter {
  readonly #entry: URL | undefined;
  readonly #failed: (why: string) => void;
  #worker: Worker | undefined;
  #isOver = false;
  #counting: Promise<readonly number[] | undefined> | undefined;

  constructor({ entry, failed }: ExactCounterOptions) {
    this.#entry = entry;
    this.#failed = failed;
  }

  /** `undefined`: it could not be counted, or something else is being counted. Never rejects. */
  async count(texts: readonly string[]): Promise<readonly number[] | undefined> {
    if (this.#isOver || this.#counting !== undefined) return undefined;
    try {
      this.#counting = this.#ask(texts);
      return await this.#counting;
    } catch (thrown) {
      if (!this.#isOver) this.#failed(messageOf(thrown));
      this.close();
      return undefined;
    } finally {
      this.#counting = undefined;
    }
  }

  close(): void {
    this.#isOver = true;
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.terminate().catch(() => {});
  }

  #ask(texts: readonly string[]): Promise<readonly number[]> {
    const worker = this.#start();
    const { promise, resolve, reject } = Promise.withResolvers<readonly number[]>();
    const timer = setTimeout(() => reject(new Error(`It took more than ${withinMs / 1_000} s.`)), withinMs);
    timer.unref();
    const ended = (): void => reject(new Error("Its thread has ended."));
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", ended);
    worker.postMessage(texts);
    return promise.finally(() => {
      clearTimeout(timer);
      worker.off("message", resolve);
      worker.off("error", reject);
      worker.off("exit", ended);
    });
  }

  #start(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(this.#entry ?? besideThis(), {
      name: "tokenizer",
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMiB },
      execArgv: [],
    });
    // pi is to end when it has nothing else to do; and an error between two counts is none of pi's.
    worker.unref();
    worker.on("error", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    this.#worker = worker;
    return worker;
  }
}

/** pi's loader of extensions knows `import.meta.url` alone, written so. */
function besideThis(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./exact-worker.ts" : "./exact-worker.js", import.meta.url);
}
