import { expect, test } from "vitest";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, type PiOptions, startPi } from "./driver.ts";

/** pi with an extension that uses the API, without the helper and without a daemon. */
async function startAlone(options: Omit<PiOptions, "entry" | "isConfigured">): Promise<Pi> {
  return await startPi({ ...options, entry: "none", isConfigured: false, after: ["delivering"] });
}

async function run(pi: Pi, command: string, ask: Record<string, unknown>): Promise<void> {
  await pi.rpc({ type: "prompt", message: `/${command} ${JSON.stringify(ask)}` });
}

test("without a daemon, a message of an extension is delivered with evidence and answered", async () => {
  await using provider = await startProvider({ script: ["Understood."] });
  await using pi = await startAlone({ provider });
  await run(pi, "test-deliver", { tag: "a", message: { customType: "build", content: "The build is green." } });
  expect(await pi.told("a.delivered")).toBe("delivered headers");
  expect(await pi.told("a.answered")).toBe("answered headers");
  expect(provider.requests).toHaveLength(1);
  expect(provider.requests[0]?.countText("The build is green.")).toBe(1);
});
