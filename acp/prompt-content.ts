import type { ContentBlock, EmbeddedResource, ResourceLink } from "@agentclientprotocol/sdk";
import type { ImageBlock } from "../protocol/content.ts";
import { AcpError } from "./acp-error.ts";
import { fileOf } from "./updates/paths.ts";
import { fenced } from "./updates/text.ts";

/** A prompt as `session/prompt` of the daemon takes it. */
export interface PromptContent {
  readonly text: string;
  readonly images: readonly ImageBlock[];
}

/** The limit of `session/prompt`. */
const maxImages = 64;

/**
 * Translates the content of a prompt. The blocks' texts are joined by empty lines in their order, so a first block that
 * begins with `/` is still a command of pi. Throws `AcpError` (-32602) for content that pi cannot take.
 */
export function promptContent(blocks: readonly ContentBlock[]): PromptContent {
  const images: ImageBlock[] = [];
  const texts = blocks.flatMap((block, index) => {
    const part = partOf(block, index);
    if (typeof part === "string") return part === "" ? [] : [part];
    images.push(part);
    return [];
  });
  if (images.length > maxImages) throw refused(`A prompt can have ${maxImages} images; this one has ${images.length}.`);
  const text = texts.join("\n\n");
  if (text.trim() === "" && images.length === 0) throw refused("The prompt is empty.");
  return { text, images };
}

function partOf(block: ContentBlock, index: number): string | ImageBlock {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return imageOf(block.data, block.mimeType, index);
    case "resource":
      return resourcePart(block.resource, index);
    case "resource_link":
      return linkText(block);
    case "audio":
      throw refused(`Block ${index} of the prompt is audio, which pi's models do not take. Send it as text.`);
    default:
      throw refused(`Block ${index} of the prompt has an unknown type. Use text, image, resource or resource_link.`);
  }
}

function resourcePart(resource: EmbeddedResource["resource"], index: number): string | ImageBlock {
  const name = nameOf(resource.uri);
  if ("text" in resource) return `${name}\n${fenced(resource.text)}`;
  const { blob, mimeType } = resource;
  if (mimeType?.toLowerCase().startsWith("image/")) return imageOf(blob, mimeType, index);
  return `${name} (${Buffer.byteLength(blob, "base64")} bytes)`;
}

function linkText({ uri, name }: ResourceLink): string {
  return fileOf(uri) === undefined ? `[${name}](${uri})` : nameOf(uri);
}

/** The path of a file with its range of lines, such as `/project/a.ts#L3-9`. Other URIs are left as they are. */
function nameOf(uri: string): string {
  const file = fileOf(uri);
  if (file === undefined) return uri;
  return file.fragment === "" ? file.path : `${file.path}#${file.fragment}`;
}

function imageOf(data: string, mimeType: string, index: number): ImageBlock {
  const type = mimeType.toLowerCase();
  if (!/^image\/[a-z0-9.+-]{1,64}$/.test(type)) {
    throw refused(`Block ${index} of the prompt is an image of the type ${JSON.stringify(mimeType.slice(0, 100))}.`);
  }
  if (data === "") throw refused(`Block ${index} of the prompt is an image without data.`);
  return { type: "image", data, mimeType: type };
}

function refused(message: string): AcpError {
  return new AcpError("invalidParams", message);
}
