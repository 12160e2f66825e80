import { expect, test } from "vitest";
import { metricsText } from "../../../server/edge/metrics-text.ts";

test("metrics are written in the Prometheus text format", () => {
  const text = metricsText([
    { name: "a_total", help: "What it \\ is.\nMore.", type: "counter", samples: [{ value: 3 }] },
    { name: "b", help: "B.", type: "gauge", samples: [{ labels: { state: 'x"y\\z\n' }, value: 0.5 }] },
    { name: "c_seconds", help: "C.", type: "histogram", buckets: [{ le: 0.1, count: 2 }], count: 3, sum: 1.5 },
  ]);
  expect(text).toBe(
    [
      "# HELP a_total What it \\\\ is.\\nMore.",
      "# TYPE a_total counter",
      "a_total 3",
      "# HELP b B.",
      "# TYPE b gauge",
      'b{state="x\\"y\\\\z\\n"} 0.5',
      "# HELP c_seconds C.",
      "# TYPE c_seconds histogram",
      'c_seconds_bucket{le="0.1"} 2',
      'c_seconds_bucket{le="+Inf"} 3',
      "c_seconds_sum 1.5",
      "c_seconds_count 3",
      "",
    ].join("\n"),
  );
});
