import { expect, test } from "vitest";
import { errorCatalogue } from "../../../protocol/errors.ts";
import { METRICS_PATH } from "../../../protocol/wire.ts";
import { startStage } from "../../helpers/stage.ts";

/** The samples of a text in the format of Prometheus, which is checked line by line. */
function samplesOf(text: string): ReadonlyMap<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.trimEnd().split("\n")) {
    if (/^# (HELP|TYPE) [a-z_]+ \S/.test(line)) continue;
    const [, name = "", value = ""] = /^([a-z_]+(?:\{[a-z]+="[^"]*"\})?) (\S+)$/.exec(line) ?? [];
    expect([line, Number.isFinite(Number(value)) && name !== ""]).toEqual([line, true]);
    samples.set(name, Number(value));
  }
  return samples;
}

test("GET /metrics counts events, needs a token, and agrees with daemon/metrics", async () => {
  await using stage = await startStage();
  const { url, token } = stage.daemon.file;
  const get = (headers: Readonly<Record<string, string>>) => fetch(`${url}${METRICS_PATH}`, { headers });
  const refused = await get({});
  expect(refused.status).toBe(errorCatalogue.unauthorized.httpStatus);
  await refused.body?.cancel();

  const session = await stage.session();
  const push = session.push({ customType: "note", content: "Measured." });
  await push.answered;
  const other = await stage.session();
  const response = await get({ authorization: `Bearer ${token}` });
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const samples = samplesOf(await response.text());
  expect(Object.fromEntries(samples)).toMatchObject({
    'pi_rpcd_sessions{state="idle"}': 2,
    'pi_rpcd_sessions{state="crashed"}': 0,
    pi_rpcd_children: 2,
    pi_rpcd_child_starts_total: 2,
    pi_rpcd_child_crashes_total: 0,
    pi_rpcd_delivery_seconds_count: 1,
    'pi_rpcd_delivery_seconds_bucket{le="+Inf"}': 1,
    pi_rpcd_connections: 1,
    pi_rpcd_open_dialogs: 0,
    pi_rpcd_store_unwritten: 0,
  });
  expect(samples.get("pi_rpcd_events_total")).toBeGreaterThan(5);
  expect(samples.get("pi_rpcd_store_commit_seconds_count")).toBeGreaterThan(0);

  const { pid = 0 } = await other.get();
  process.kill(pid, "SIGKILL");
  await expect.poll(async () => (await other.get()).state).toBe("crashed");
  const { metrics } = await stage.client.call("daemon/metrics", {});
  expect(metrics.find(({ name }) => name === "pi_rpcd_child_crashes_total")?.samples).toEqual([{ value: 1 }]);
  expect(metrics.map(({ name }) => name)).toContain("pi_rpcd_event_loop_delay_seconds");
});
