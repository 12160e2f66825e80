import { expect, test } from "vitest";
import { Histogram } from "../../../server/lib/histogram.ts";

test("a histogram counts up to each bound, and longer values in the total", () => {
  const histogram = new Histogram([0.1, 1]);
  for (const seconds of [0.05, 0.1, 0.5, 2]) histogram.observe(seconds);
  expect(histogram.state).toEqual({
    buckets: [
      { le: 0.1, count: 2 },
      { le: 1, count: 3 },
    ],
    count: 4,
    sum: 2.65,
  });
});
