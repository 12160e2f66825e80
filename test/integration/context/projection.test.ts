import { join } from "node:path";
import { expect, test } from "vitest";
import { readerOfPi } from "../../helpers/pi-reader.ts";
import { sessionTarget } from "../../helpers/pi-session.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { randomSession } from "../../helpers/random-session.ts";
import { throughDocument } from "../../helpers/through-document.ts";
import { Random } from "../../soak/random.ts";

const read = await readerOfPi(join(piUnderTest().cli, "..", "..", "core"), sessionTarget);

test.each(["projected", "full"] as const)(
  "pi's reader sees the same session after an export (%s) and import",
  (view) => {
    let compared = 0;
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed);
      const session = randomSession(random, random.integer(1, 40));
      const { entries, repairs } = throughDocument(session.entries, sessionTarget, { view });
      // After an edit has removed the first question.
      if (repairs.some(({ code }) => code === "leading_assistant")) continue;
      expect(read(entries), `seed ${seed}`).toEqual(read(session.entries));
      compared += 1;
    }
    expect(compared).toBeGreaterThan(200);
  },
);
