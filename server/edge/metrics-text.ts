import type { Metric } from "../../protocol/metrics-methods.ts";

/** The content type of {@link metricsText}. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Returns metrics in the text format of Prometheus. */
export function metricsText(metrics: readonly Metric[]): string {
  return metrics.map(metricText).join("");
}

function metricText({ name, help, type, samples = [], buckets, count = 0, sum = 0 }: Metric): string {
  const lines = [`# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`, `# TYPE ${name} ${type}`];
  for (const { labels = {}, value } of samples) lines.push(`${name}${labelText(labels)} ${value}`);
  if (buckets !== undefined) {
    for (const bucket of buckets) lines.push(`${name}_bucket{le="${bucket.le}"} ${bucket.count}`);
    lines.push(`${name}_bucket{le="+Inf"} ${count}`, `${name}_sum ${sum}`, `${name}_count ${count}`);
  }
  return `${lines.join("\n")}\n`;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
