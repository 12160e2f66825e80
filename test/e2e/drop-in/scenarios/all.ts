import type { Scenario } from "../scenario.ts";
import { compaction } from "./compaction.ts";
import { extensions } from "./extensions.ts";
import { prompts } from "./prompts.ts";
import { runs } from "./runs.ts";
import { sessions } from "./sessions.ts";
import { settings } from "./settings.ts";
import { shell } from "./shell.ts";
import { wire } from "./wire.ts";

export const scenarios: readonly Scenario[] = [
  ...prompts,
  ...runs,
  ...settings,
  ...shell,
  ...compaction,
  ...sessions,
  ...extensions,
  ...wire,
];
