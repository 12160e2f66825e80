import type { Figure } from "../lib/figure.ts";
import { measureRequestLatency } from "../lib/request-latency.ts";

export const requestLatencyPinned: Figure = {
  title: "Added latency of a request, all processes on one core",
  repetitions: 5,
  pinned: true,
  measure: async (setting, resources) => {
    const p50Ratio = { id: "P1", sense: "at most", target: 4.5, stretch: 3.5 } as const;
    const { rows, notes } = await measureRequestLatency(setting, resources, { p50Ratio });
    return { rows, notes: setting.pinned ? notes : [...notes, "taskset is missing: the processes ran on all cores"] };
  },
};
