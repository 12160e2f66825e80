import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkout } from "../../soak/environment.ts";
import { plantedBugs } from "../../soak/planted.ts";

test.each(Object.entries(plantedBugs))("the code that a planted bug replaces occurs once: %s", (_, { file, text }) => {
  expect(readFileSync(join(checkout, file), "utf8").split(text)).toHaveLength(2);
});
