// Runs in a page: the client library, bundled as for a web application.
import { connectTo, isAgentSettled, isTextDelta } from "../../client/browser.ts";

// The used part of a page's globals: the project's types are those of Node.
declare const document: { readonly body: { textContent: string } };

interface Order {
  readonly url: string;
  readonly token: string;
  readonly cwd: string;
}

async function useDaemon({ url, token, cwd }: Order): Promise<object> {
  const client = await connectTo({ url, token, name: "a page", reconnect: false });
  const session = await client.createSession({ cwd });
  const events = session.events();
  await session.prompt("Say something.");
  for await (const { event } of events) {
    if (isTextDelta(event)) document.body.textContent += event.assistantMessageEvent.delta;
    if (isAgentSettled(event)) break;
  }
  const { state } = await session.push({ customType: "page.note", content: "From a page: 世界" }).delivered;
  await client.close();
  return { text: document.body.textContent, state };
}

/** What a page can do with the daemon's HTTP: nothing, not even detect the daemon. */
async function tryHttp({ url, token }: Order): Promise<readonly string[]> {
  const outcomes = await Promise.allSettled([
    fetch(`${url}/v1/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/list", params: {} }),
    }),
    fetch(`${url}/v1/rpc`, { method: "POST", body: "{}" }),
    fetch(`${url}/healthz`),
  ]);
  return outcomes.map((outcome) => (outcome.status === "fulfilled" ? `status ${outcome.value.status}` : "refused"));
}

async function play(): Promise<void> {
  const order = (await (await fetch("/order")).json()) as Order;
  const used = await useDaemon(order).catch((error: unknown) => ({ error: (error as Error).name }));
  const http = await tryHttp(order);
  await fetch("/told", { method: "POST", body: JSON.stringify({ ...used, http }) });
}

void play();
