import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

export const TextBlock = Type.Object(
  { type: Type.Literal("text"), text: Type.String({ minLength: 1 }) },
  { additionalProperties: false },
);

export const ImageBlock = Type.Object(
  {
    type: Type.Literal("image"),
    data: Type.String({ minLength: 1, description: "The image's bytes in base64." }),
    mimeType: Type.String({ pattern: "^image/[a-z0-9.+-]{1,64}$" }),
  },
  { additionalProperties: false },
);
export type ImageBlock = Static<typeof ImageBlock>;

/** The content of a push: one text, or blocks of text and images. */
export const Content = Type.Union([
  Type.String({ minLength: 1 }),
  Type.Array(Type.Union([TextBlock, ImageBlock]), { minItems: 1, maxItems: 256 }),
]);
export type Content = Static<typeof Content>;
