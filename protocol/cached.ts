import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Fields of a result that can be answered without the session's pi. Absent where pi itself has answered. */
export const cachedFields = {
  cached: Type.Optional(
    Type.Boolean({
      description:
        "`true`: the session has no pi and none was started; this is from the session's file, or what pi said last.",
    }),
  ),
  cachedAt: Type.Optional({
    ...Timestamp,
    description: "With `cached`: when the file was last written, or when pi said this.",
  }),
};
