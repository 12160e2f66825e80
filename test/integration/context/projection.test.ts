import { join } from "node:path";
import { expect, test } from "vitest";
import { readerOfPi } from "../../helpers/pi-reader.ts";
import { sessionTarget } from "../../helpers/pi-session.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { randomSession } from "../../helpers/random-session.ts";
import { throughDocument } from "../../helpers/through-document.ts";
import { Random } from "../../soak/random.ts";

const read = await readerOfPi(join(piUnderTest().cli, "..", "..", "core"), sessionTarget);

test("what is exported and imported again is for pi's own reader what the session was", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = new Random(seed);
    const session = randomSession(random, random.integer(1, 40));
    expect(read(throughDocument(session.entries, sessionTarget)), `seed ${seed}`).toEqual(read(session.entries));
  }
});
