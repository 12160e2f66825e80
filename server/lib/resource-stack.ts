import { deferred } from "./deferred.ts";

type Release = () => void | Promise<void>;

/** Releases resources once, in reverse order. A failing release does not prevent the others. */
export class ResourceStack {
  readonly #releases: Release[] = [];
  readonly #released = deferred<void>();
  #releasing = false;

  /** Registers the release of a new resource, and returns the resource. */
  add<T>(resource: T, release: (resource: T) => void | Promise<void>): T {
    this.defer(() => release(resource));
    return resource;
  }

  defer(release: Release): void {
    this.#releases.push(release);
  }

  /** Whether the release has begun. */
  get isReleased(): boolean {
    return this.#releasing;
  }

  /** Resolves when everything is released; rejects with the first failure then. */
  get released(): Promise<void> {
    return this.#released.promise;
  }

  release(): Promise<void> {
    if (!this.#releasing) {
      this.#releasing = true;
      void this.#run();
    }
    return this.#released.promise;
  }

  async #run(): Promise<void> {
    const failures: unknown[] = [];
    for (let release = this.#releases.pop(); release !== undefined; release = this.#releases.pop()) {
      try {
        await release();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) this.#released.reject(failures[0]);
    else this.#released.resolve();
  }
}
