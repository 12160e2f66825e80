import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PartsConfig } from "../../../protocol/link.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { answer, call } from "../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type PiOptions, startPi } from "../extension/driver.ts";

const turns = 20;
/** Outputs that the parts would cut and mask, that pi itself does not cut, with a failure in between. */
const commands = ["seq 1 1900", "true", "false", "echo more", "true", "false"];

/** The bodies of a session's requests, without values that differ between starts of pi. */
async function bodiesOf(options: Omit<PiOptions, "provider">, cwd: string): Promise<string[]> {
  await using provider = await startProvider();
  await using pi = await startPi({ ...options, provider });
  script(provider);
  await pi.rpc({ type: "prompt", message: "Do it all." });
  await pi.event("agent_settled");
  await pi.rpc({ type: "prompt", message: "And now?" });
  let settled = 0;
  await pi.log.until(({ type }) => type === "agent_settled" && ++settled === 2);
  return provider.requests.map(({ body }) => JSON.stringify(body).replaceAll(pi.cwd, cwd));
}

/** The first difference between requests, if any: whole bodies would fill the report. */
function differenceOf(bodies: readonly string[], others: readonly string[]): string | undefined {
  if (bodies.length !== others.length) return `${bodies.length} requests, not ${others.length}`;
  const at = bodies.findIndex((body, index) => body !== others[index]);
  const [body, other] = [bodies[at], others[at]];
  if (body === undefined || other === undefined) return undefined;
  const unit = [...body].findIndex((char, index) => char !== other[index]);
  return `request ${at + 1}: ${body.slice(unit - 40, unit + 40)} instead of ${other.slice(unit - 40, unit + 40)}`;
}

function script(provider: ScriptedProvider): void {
  for (let turn = 0; turn < turns - 2; turn += 1) {
    const command = commands[turn % commands.length] ?? "true";
    provider.add(answer(`Turn ${turn}.`, call("bash", { command }, `call_${turn}`)));
  }
  provider.add(answer("Done."), answer("Nothing more."));
}

test.for(["scripted", "scripted-anthropic"] as const)(
  "with every part off the requests of twenty turns at %s equal a plain pi's, byte for byte",
  async (api) => {
    const spillDirectory = mkdtempSync(join(tmpdir(), "spill-"));
    try {
      const partsOf = (options: OptimisationOptions): PartsConfig => ({
        optimisation: resolveOptimisation(options),
        spillDirectory,
        labels: {},
      });
      const bare = await bodiesOf({ api, entry: "none", isConfigured: false }, "/work");
      expect(bare).toHaveLength(turns);
      expect(differenceOf(await bodiesOf({ api }, "/work"), bare)).toBeUndefined();
      // Parts that change no request cause all the others to be loaded, but off.
      const counting = partsOf({ estimator: { enabled: true }, cost: { enabled: true } });
      expect(differenceOf(await bodiesOf({ api, parts: counting }, "/work"), bare)).toBeUndefined();
    } finally {
      rmSync(spillDirectory, { recursive: true });
    }
  },
);
