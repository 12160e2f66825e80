/** A context file that pi has read. */
export interface ContextFile {
  readonly path: string;
  readonly content: string;
}

/** pi's name of the prompt section with the context files. */
export const CONTEXT_FILES_SECTION = "project_context";

const opening = "Project-specific instructions and guidelines:";
const fileOpening = '<project_instructions path="';
const fileClosing = "</project_instructions>";

/** The beginning of the section, up to its first file. */
export const contextFilesStart = `<${CONTEXT_FILES_SECTION}>\n${opening}\n\n${fileOpening}`;
export const contextFilesEnd = `\n</${CONTEXT_FILES_SECTION}>`;

/** Renders the section as pi does. */
export function renderContextFiles(files: readonly ContextFile[]): string {
  const written = files.map(({ path, content }) => `${fileOpening}${path}">\n${content}\n${fileClosing}`);
  return `<${CONTEXT_FILES_SECTION}>\n${[opening, ...written].join("\n\n")}${contextFilesEnd}`;
}

/**
 * Parses the files of a section, most distant first. `undefined`: pi would not write these files as this text. A file
 * with pi's own tags is split wrongly, so the caller must check that the files exist.
 */
export function parseContextFiles(section: string): readonly ContextFile[] | undefined {
  const start = `<${CONTEXT_FILES_SECTION}>\n${opening}\n\n`;
  const end = `\n${fileClosing}${contextFilesEnd}`;
  if (!section.startsWith(start + fileOpening) || !section.endsWith(end)) return undefined;
  const between = `\n${fileClosing}\n\n${fileOpening}`;
  const body = section.slice(start.length + fileOpening.length, section.length - end.length);
  const files: ContextFile[] = [];
  for (const part of body.split(between)) {
    const at = part.indexOf('">\n');
    if (at < 0) return undefined;
    files.push({ path: part.slice(0, at), content: part.slice(at + 3) });
  }
  return renderContextFiles(files) === section ? files : undefined;
}
