import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";

type FormConfig = () => Pick<OptimisationConfig, "cache" | "format">;

/** The form of a session's prompt, decided once, because varying text would lose the provider's cache. */
export interface PromptForm {
  /** Whether tools are sorted by name, also in sections that list them. */
  readonly isSorted: boolean;
  /** Markup of flat sections. */
  readonly sections: "xml" | "markdown";
}

/** `customType` of the entry with the form. */
const FORM_TYPE = "pi-rpcd.prompt_form";
const plain: PromptForm = { isSorted: false, sections: "xml" };

/**
 * Decides the form of a session without one by the current configuration, and records it at the first boundary, so that
 * the session's next pi writes the same bytes. Records nothing while both parts are off.
 */
export class PromptForms {
  readonly #config: FormConfig;
  #form: PromptForm | undefined;
  #isKept = false;

  constructor({ onSession, boundary }: Pick<HostPort, "onSession" | "boundary">, config: FormConfig) {
    this.#config = config;
    onSession((ctx) => {
      const kept = keptForm(ctx.sessionManager);
      this.#isKept = kept !== undefined;
      this.#form = kept ?? this.#decided();
    }, "format");
    boundary.contribute("prompt-form", ({ ctx }) => {
      if (this.#isKept || this.#form === undefined || isPlain(this.#form)) return undefined;
      // pi can drop the draft together with another extension's, so the file decides.
      this.#isKept = keptForm(ctx.sessionManager) !== undefined;
      return this.#isKept
        ? undefined
        : { drafts: [{ type: "custom", customType: FORM_TYPE, data: { v: 1, ...this.#form } }] };
    });
  }

  /** The form of the next request's prompt. */
  get form(): PromptForm {
    const { cache, format } = this.#config();
    const { isSorted, sections } = this.#form ?? plain;
    return { isSorted: isSorted && cache.enabled, sections: format.enabled ? sections : "xml" };
  }

  #decided(): PromptForm {
    const { cache, format } = this.#config();
    return {
      isSorted: cache.enabled && cache.sortTools,
      sections: format.enabled ? format.sections : "xml",
    };
  }
}

function isPlain({ isSorted, sections }: PromptForm): boolean {
  return !isSorted && sections === "xml";
}

/** Returns the first valid form in the file; later ones must not change cached text. The file is untrusted. */
function keptForm(session: Pick<ExtensionContext["sessionManager"], "getEntries">): PromptForm | undefined {
  for (const entry of session.getEntries()) {
    if (entry.type !== "custom" || entry.customType !== FORM_TYPE || !isRecord(entry.data)) continue;
    const { v, isSorted, sections } = entry.data;
    if (v !== 1 || typeof isSorted !== "boolean" || (sections !== "xml" && sections !== "markdown")) continue;
    return { isSorted, sections };
  }
  return undefined;
}
