import { Scene } from "../scene.ts";
import { type ClientOptions, SdkClient } from "./client.ts";

type OpenOptions = Parameters<typeof Scene.open>;

/** A daemon with real pi, and clients of version 2. */
export class SceneOfTwo implements AsyncDisposable {
  readonly #scene: Scene;
  readonly #clients: SdkClient[] = [];

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  get stage(): Scene["stage"] {
    return this.#scene.stage;
  }

  get cwd(): string {
    return this.#scene.cwd;
  }

  /** A client that has sent `initialize`. */
  async client(options: Partial<ClientOptions> = {}): Promise<SdkClient> {
    const client = new SdkClient({ ...this.stage, ...options });
    this.#clients.push(client);
    await client.initialize();
    return client;
  }

  /** An editor of version 1. */
  editor(...options: Parameters<Scene["editor"]>): ReturnType<Scene["editor"]> {
    return this.#scene.editor(...options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = await Promise.allSettled(this.#clients.map((client) => client[Symbol.asyncDispose]()));
    await this.#scene[Symbol.asyncDispose]();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}

export async function openScene(...options: OpenOptions): Promise<SceneOfTwo> {
  return new SceneOfTwo(await Scene.open(...options));
}
