import fc from "fast-check";
import { expect, test } from "vitest";
import { SeqNumbers } from "../../../server/session/seq-numbers.ts";

test("no number is given before its reservation is on disk, whenever a daemon is killed", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 40_000 }), { maxLength: 6 }), fc.boolean(), (lives, commits) => {
      let onDisk = 0;
      let given = 0;
      for (const count of lives) {
        let noted = onDisk;
        const numbers = new SeqNumbers({
          reserved: onDisk,
          reserve: (upTo) => {
            noted = upTo;
            // Some commits come by themselves, others only when they are forced.
            if (commits) onDisk = noted;
            return new Promise(() => {});
          },
          flush: () => {
            onDisk = noted;
            return true;
          },
        });
        for (let i = 0; i < count; i += 1) {
          const seq = numbers.next();
          expect(seq).toBeGreaterThan(given);
          given = seq;
          if (onDisk < seq) throw new Error(`${seq} was given, and only ${onDisk} is on disk`);
        }
      }
    }),
    { numRuns: 50 },
  );
});
