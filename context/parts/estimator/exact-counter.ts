import { Worker } from "node:worker_threads";
import { messageOf } from "../../../extension/pi-types.ts";

/** Timeout of a count, including loading the vocabulary. */
const withinMs = 5_000;
const maxHeapMiB = 256;

export interface ExactCounterOptions {
  /** The module that counts in a thread. */
  readonly entry?: URL;
  /** Called when counting fails; it is not tried again. */
  readonly failed: (why: string) => void;
}

/** Counts texts with a tokenizer in a worker thread, which starts with the first count. */
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

  /** `undefined`: the count failed, or another one is active. Never rejects. */
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
    const worker = new Worker(this.#entry ?? workerUrl(), {
      name: "tokenizer",
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMiB },
      execArgv: [],
    });
    // The worker must not keep pi alive, and an error between two counts must not crash it.
    worker.unref();
    worker.on("error", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    this.#worker = worker;
    return worker;
  }
}

/** pi's extension loader supports `import.meta.url` only in this form. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./exact-worker.ts" : "./exact-worker.js", import.meta.url);
}
