import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isObject } from "../../../extension/pi-types.ts";
import type { PartContext } from "../optimisation/part-context.ts";

/** How a session's prompt is written, decided once: text that varies would lose the provider's cache. */
export interface PromptForm {
  /** Tools in the order of their names, in the sections that list them too. */
  readonly isSorted: boolean;
  /** How flat sections are set off. */
  readonly sections: "xml" | "markdown";
}

/** The entry by which a session keeps its form. */
const FORM_TYPE = "pi-rpcd.prompt_form";
const plain: PromptForm = { isSorted: false, sections: "xml" };

/**
 * Decides the form where the session has none yet, by the configuration of that moment, and has it written with the first
 * boundary, so that whichever pi the session has next writes the same bytes. A part that is off writes nothing.
 */
export class PromptForms {
  readonly #host: PartContext;
  #form: PromptForm | undefined;
  #isKept = false;

  constructor(host: PartContext) {
    this.#host = host;
    host.onSession((ctx) => {
      const kept = keptForm(ctx.sessionManager);
      this.#isKept = kept !== undefined;
      this.#form = kept ?? this.#decided();
    }, "format");
    host.boundary.contribute("prompt-form", ({ ctx }) => {
      if (this.#isKept || this.#form === undefined || isPlain(this.#form)) return undefined;
      // A draft can be dropped with another extension's: what is in the file tells.
      this.#isKept = keptForm(ctx.sessionManager) !== undefined;
      return this.#isKept
        ? undefined
        : { drafts: [{ type: "custom", customType: FORM_TYPE, data: { v: 1, ...this.#form } }] };
    });
  }

  /** How the coming request's prompt is written. */
  get form(): PromptForm {
    const { cache, format } = this.#host.config();
    const { isSorted, sections } = this.#form ?? plain;
    return { isSorted: isSorted && cache.enabled, sections: format.enabled ? sections : "xml" };
  }

  #decided(): PromptForm {
    const { cache, format } = this.#host.config();
    return {
      isSorted: cache.enabled && cache.sortTools,
      sections: format.enabled ? format.sections : "xml",
    };
  }
}

function isPlain({ isSorted, sections }: PromptForm): boolean {
  return !isSorted && sections === "xml";
}

/** The first of the file holds: what comes later cannot change what is cached. Whoever writes the file can write anything. */
function keptForm(session: Pick<ExtensionContext["sessionManager"], "getEntries">): PromptForm | undefined {
  for (const entry of session.getEntries()) {
    if (entry.type !== "custom" || entry.customType !== FORM_TYPE || !isObject(entry.data)) continue;
    const { v, isSorted, sections } = entry.data;
    if (v !== 1 || typeof isSorted !== "boolean" || (sections !== "xml" && sections !== "markdown")) continue;
    return { isSorted, sections };
  }
  return undefined;
}
