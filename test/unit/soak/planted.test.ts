import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { plantedBugs } from "../../soak/planted.ts";
import { checkout } from "../../soak/world.ts";

test.each(Object.entries(plantedBugs))("the code that a planted bug replaces occurs once: %s", (_, { file, text }) => {
  expect(readFileSync(join(checkout, file), "utf8").split(text)).toHaveLength(2);
});
