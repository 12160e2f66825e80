import { defaultOptimisation } from "../../../protocol/optimisation/config.ts";
import { Counter } from "./counts.ts";
import type { TokenEstimator } from "./estimator.ts";
import { dot, Factors } from "./factors.ts";

const remembered = 256;

/** An estimator with the factors of an unknown model, for inspection without a running part. */
export function unlearntEstimator(): Pick<TokenEstimator, "text" | "message"> {
  const counter = new Counter(remembered);
  const factors = new Factors(() => 1).of("");
  const { imageTokens } = defaultOptimisation.estimator;
  return {
    text: (text) => Math.ceil(dot(counter.text(text), factors)),
    message: (given) => {
      const { counts, images } = counter.message(given);
      return Math.ceil(dot(counts, factors) + images * imageTokens);
    },
  };
}
