import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as r50k } from "gpt-tokenizer/encoding/r50k_base";
import { describe, expect, test } from "vitest";
import { runTrace, share } from "../../helpers/estimator-runs.ts";
import { type Tokenizer, traceClasses } from "../../helpers/token-traces.ts";

/** Encodings that the estimator itself does not have, each with the tokens that its service adds to a message. */
const services: readonly (readonly [name: string, tokenizer: Tokenizer, perMessage: number])[] = [
  ["cl100k_base", cl100k, 7],
  ["r50k_base", r50k, 3],
];

describe.each(services)("where a service counts with %s", (_, tokenizer, perMessage) => {
  test.each(traceClasses)(
    "%s is estimated to within 5 % in the middle and 12 % at worst from the sixth turn on",
    (kind) => {
      const errors = [1, 2, 3].flatMap((seed) => runTrace({ kind, seed, turns: 30, tokenizer, perMessage }).errors);
      expect(errors.length).toBe(75);
      expect(share(errors, 0.5)).toBeLessThan(0.05);
      expect(share(errors, 0.95)).toBeLessThan(0.12);
    },
  );
});
