import type { Figure } from "../lib/figure.ts";
import { measureRequestLatency } from "../lib/request-latency.ts";

export const requestLatency: Figure = {
  title: "Added latency of a request, on all cores",
  repetitions: 5,
  measure: (setting, resources) =>
    measureRequestLatency(setting, resources, {
      p50Ratio: { id: "P2", sense: "at most", target: 2.5, stretch: 2 },
      addedP99: { id: "P2", sense: "at most", target: 1.5, stretch: 0.6 },
    }),
};
