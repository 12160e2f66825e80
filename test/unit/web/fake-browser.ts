import type { SignInBrowser } from "../../../web/sign-in.ts";

/** The tabs of one browser at one origin. */
export class FakeTabs {
  readonly #channels = new Set<EventTarget>();
  /** What was posted to the daemon. */
  readonly posts: { readonly path: string; readonly body: unknown; readonly token?: string | undefined }[] = [];
  answer: (path: string, body: unknown) => Response = () => new Response("{}", { status: 404 });

  /** A tab with this fragment, and with the storage of a former tab in its place. */
  tab(
    fragment = "",
    storage = new Map<string, string>(),
  ): SignInBrowser & { readonly kept: Map<string, string>; cleared: number } {
    const channel = new EventTarget();
    this.#channels.add(channel);
    const tab = {
      fragment,
      kept: storage,
      cleared: 0,
      clearAddress: () => {
        tab.cleared += 1;
      },
      storage: {
        getItem: (key: string) => storage.get(key) ?? null,
        setItem: (key: string, value: string) => void storage.set(key, value),
        removeItem: (key: string) => void storage.delete(key),
      },
      channel: {
        postMessage: (data: unknown) => {
          for (const other of this.#channels)
            if (other !== channel)
              other.dispatchEvent(Object.assign(new Event("message"), { data: structuredClone(data) }));
        },
        addEventListener: channel.addEventListener.bind(channel) as BroadcastChannel["addEventListener"],
        removeEventListener: channel.removeEventListener.bind(channel) as BroadcastChannel["removeEventListener"],
      },
      post: async (path: string, body: unknown, token?: string) => {
        this.posts.push({ path, body, token });
        return this.answer(path, body);
      },
    };
    return tab;
  }
}

export const credentials = { token: "secret", instance: "i1", title: "host /state", letterKeys: true };
export const code = "c".repeat(43);

export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });
}
